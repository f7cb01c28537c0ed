/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_requester.c - goes back to the oldest packet that was not acknowledged, after a NAK, a gap or a time-out; for a
 * peer that keeps what arrives behind a gap, to the lost packets alone. */
#include "roce/rc_requester.h"

#include <assert.h>
#include <stddef.h>

#include "roce/psn.h"

static struct rc_request *request_at(const struct rc_requester *q, uint32_t i)
{
    return &q->ring[i & q->mask];
}

void rc_requester_init(struct rc_requester *q, const struct rc_requester_attr *attr, struct rc_request *ring,
                       uint32_t slots)
{
    uint64_t first = psn_first(attr->psn);
    uint32_t most = attr->window && attr->window < RC_WINDOW_MAX ? attr->window : RC_WINDOW_MAX;

    assert(slots && !(slots & (slots - 1)));
    *q = (struct rc_requester){
        .attr = *attr,
        .ring = ring,
        .mask = slots - 1,
        .una = first,
        .next = first,
        .max = first,
        .end = first,
        .asked = first,
        .congestion = {.window = most < RC_WINDOW_FIRST ? most : RC_WINDOW_FIRST, .threshold = most},
        .deadline_us = RC_NEVER,
        .resend_us = RC_NEVER,
    };
    q->attr.window = most;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static void requester_finish(struct rc_requester *q, enum rc_end why, uint64_t position)
{
    q->why = why;
    q->blamed = position;
    q->deadline_us = q->resend_us = RC_NEVER;
    q->wait_us = 0;
}

/* --- progress --------------------------------------------------------------------------------------------------- */

static void restart_resend(struct rc_requester *q, uint64_t now_us)
{
    q->resend_us = q->una == q->max || !q->attr.timeout_us ? RC_NEVER : now_us + rc_resend_us(q);
}

static void restart_timers(struct rc_requester *q, uint64_t now_us)
{
    q->deadline_us = q->una == q->max || !q->attr.timeout_us ? RC_NEVER : now_us + q->attr.timeout_us;
    restart_resend(q, now_us);
}

static uint64_t request_end(const struct rc_requester *q, uint32_t i)
{
    return request_at(q, i)->psn + request_at(q, i)->packets;
}

/* Goes forward to this position, or to the request whose response it is part of. */
static void go_forward(struct rc_requester *q, uint64_t position)
{
    while (q->cursor != q->head && request_end(q, q->cursor) <= position)
        q->cursor++;
    if (q->cursor != q->head && request_at(q, q->cursor)->kind != RC_MESSAGE)
        position = request_at(q, q->cursor)->psn;
    q->next = position;
}

/* A packet that was lost draws a NAK, if any arrives behind it. So if a peer acknowledges more than what was sent again
 * after a time-out, the packets of before had arrived, and their acknowledgement was late (as RFC 5682 for TCP): the
 * time-out is undone. */
static void undo_timeout(struct rc_requester *q)
{
    q->congestion = q->before.congestion;
    go_forward(q, q->max);
    q->before.max = 0;
    q->counters.undone++;
}

static void skip_kept(struct rc_requester *q)
{
    q->skip.due = false;
    go_forward(q, q->skip.to > q->next ? q->skip.to : q->next);
}

/* What does an acknowledgement of everything before `to` say of the peer? */
static void learn_of_peer(struct rc_requester *q, uint64_t to)
{
    bool once = q->skip.to && !q->skip.due, back = q->gap == q->una && q->next > q->una;

    if (once ? to > q->skip.from : back && to > q->next) {
        q->skip.keeps = true;
        q->skip.vain = 0;
    }
    if (q->skip.due) { /* the packet was late, and not lost */
        skip_kept(q);
        q->skip.to = 0;
    }
    if (to >= q->skip.to)
        q->skip.to = 0;
}

/* Everything before `to` is done. */
static void advance(struct rc_requester *q, uint64_t to, uint64_t now_us)
{
    if (to <= q->una)
        return;
    if (q->before.max && to > q->next)
        undo_timeout(q);
    if (to >= q->before.max)
        q->before.max = 0;
    learn_of_peer(q, to);
    rc_window_grow(q, to - q->una);
    q->una = to;
    if (q->rtt.timed && q->rtt.timed <= to)
        rc_rtt_measure(&q->rtt, now_us);
    while (q->tail != q->head && request_end(q, q->tail) <= to)
        q->tail++;
    if (q->next < to) {
        q->next = to;
        q->cursor = q->tail;
    }
    q->tries = q->rnr_tries = q->backoff = 0;
    q->gap = 0;
    q->is_late = false;
    restart_timers(q, now_us);
}

/* Returns the first position before `to` at which a response is missing, or `to`. */
static uint64_t requester_answered(const struct rc_requester *q, uint64_t to)
{
    for (uint32_t i = q->tail; i != q->head && request_at(q, i)->psn < to; i++)
        if (request_at(q, i)->kind != RC_MESSAGE)
            return request_at(q, i)->psn > q->una ? request_at(q, i)->psn : q->una;
    return to;
}

static void go_back(struct rc_requester *q)
{
    q->next = q->asked = q->una;
    q->cursor = q->tail;
    q->is_silent = false;
    q->rtt.timed = 0;
    q->marks.count = 0;
    q->marks.due = 0;
    q->skip = (struct rc_skip){.keeps = q->skip.keeps, .vain = q->skip.vain};
}

/* Goes back for one packet. */
static void go_back_once(struct rc_requester *q)
{
    bool message = request_at(q, q->tail)->kind == RC_MESSAGE;
    uint64_t kept = q->una + RC_KEEP_SPAN + 1;

    q->next = q->una;
    q->skip.from = message ? q->una + 1 : request_end(q, q->tail);
    q->cursor = q->tail;
    q->is_silent = false;
    q->rtt.timed = 0;
    q->skip.due = true;
    q->skip.to = q->max < kept ? q->max : kept;
}

/* A peer of which nothing is known may keep packets: it says so when it sees that new ones follow the lost one, and
 * some will, if the window is used up. If two are lost each time it has no chance to. */
static bool may_keep(const struct rc_requester *q)
{
    bool follow = q->end > q->max || q->max - q->una >= q->congestion.window / 2;

    return q->skip.keeps || (follow && (q->skip.vain < RC_VAIN || !(q->skip.vain % RC_VAIN_GAPS)));
}

/* Is it quicker to go back for one packet? Each takes a round trip: not if so few have come since the last one that
 * among the rest another is expected to be missing. If none came but that one, the peer may not have kept any. */
static bool is_once_enough(struct rc_requester *q)
{
    if (q->skip.to && q->una == q->skip.from) {
        q->skip.keeps = false;
        q->skip.vain++;
    }
    return may_keep(q) && q->max > q->una + 1 && (!q->skip.to || q->skip.to - q->una <= q->una - q->skip.from + 1);
}

/* Packets or responses from `una` on were lost: goes back, once for each gap. `counts`: as a retry. */
static void lost(struct rc_requester *q, bool counts, bool once, uint64_t now_us)
{
    if (q->gap == q->una)
        return;
    if (counts && q->tries++ >= q->attr.retries) {
        requester_finish(q, RC_RETRY_EXCEEDED, q->una);
        return;
    }
    q->before.max = 0;
    q->skip.vain += !once && q->skip.vain >= RC_VAIN;
    if (!q->skip.to)
        rc_rtt_measure_nak(&q->rtt, &q->marks, q->una, now_us);
    rc_window_shrink(q, 0);
    if (once)
        go_back_once(q);
    else
        go_back(q);
    q->gap = q->una;
    restart_timers(q, now_us);
}

/* --- leaving ---------------------------------------------------------------------------------------------------- */

uint64_t rc_requester_add(struct rc_requester *q, enum rc_kind kind, uint32_t length, uint32_t name, enum rc_ask ask)
{
    assert(q->head - q->tail <= q->mask);
    *request_at(q, q->head) = (struct rc_request){
        .psn = q->end,
        .packets = kind == RC_ATOMIC ? 1 : psn_packets(length, q->attr.mtu),
        .length = length,
        .name = name,
        .kind = kind,
        .ask = ask,
    };
    q->end += request_at(q, q->head++)->packets;
    return q->end;
}

bool rc_requester_next_is_empty(const struct rc_requester *q)
{
    return !request_at(q, q->cursor)->length;
}

static void cut_packet(const struct rc_requester *q, const struct rc_request *r, struct rc_outgoing *out)
{
    uint32_t i = (uint32_t)(q->next - r->psn), rest;

    out->offset = r->kind == RC_ATOMIC ? 0 : i * q->attr.mtu;
    rest = r->length - out->offset;
    out->length = r->kind == RC_MESSAGE && rest > q->attr.mtu ? q->attr.mtu : rest;
    out->first = r->kind != RC_MESSAGE || !i;
    out->last = r->kind != RC_MESSAGE || i == r->packets - 1;
}

/* Its acknowledgement says what the peer has kept. */
static void send_once(struct rc_requester *q, struct rc_outgoing *out)
{
    out->ask = request_at(q, q->cursor)->kind == RC_MESSAGE;
    q->counters.resent++;
    q->next = q->skip.from;
    skip_kept(q);
    q->asked = q->next;
    q->is_silent = false;
}

bool rc_requester_next(struct rc_requester *q, struct rc_outgoing *out, uint64_t now_us)
{
    const struct rc_request *r = request_at(q, q->cursor);

    if (!rc_requester_has_output(q, now_us))
        return false;
    out->name = r->name;
    out->position = q->next;
    cut_packet(q, r, out);
    q->wait_us = 0;
    if (q->skip.due) {
        send_once(q, out);
        return true;
    }
    if (q->next >= q->marks.due)
        rc_marks_set(&q->marks, q->next, q->congestion.window, now_us);
    q->counters.resent += q->next < q->max;
    q->next = r->kind == RC_MESSAGE ? q->next + 1 : r->psn + r->packets;
    if (q->next == r->psn + r->packets)
        q->cursor++;
    out->ask = rc_ask(q, r, out->last, now_us);
    if (q->next > q->max) {
        q->max = q->next;
        if (out->ask && !q->rtt.timed) {
            q->rtt.timed = q->max;
            q->rtt.timed_us = now_us;
        }
    }
    if (q->resend_us == RC_NEVER)
        restart_timers(q, now_us);
    return true;
}

uint32_t rc_requester_train(const struct rc_requester *q, uint32_t most, struct rc_outgoing *out, uint64_t now_us)
{
    const struct rc_request *r = request_at(q, q->cursor);
    uint64_t window = rc_window_end(q), asks = rc_ask_next(q) < window ? rc_ask_next(q) : window, end;

    if (!rc_requester_has_output(q, now_us) || q->wait_us || q->skip.due || r->kind != RC_MESSAGE || q->next == r->psn)
        return 0;
    end = asks < r->psn + r->packets ? asks - 1 : r->psn + r->packets - 1;
    if (end <= q->next || !most)
        return 0;
    end = end - q->next < most ? end : q->next + most;
    *out = (struct rc_outgoing){.name = r->name, .position = q->next};
    out->offset = (uint32_t)(q->next - r->psn) * q->attr.mtu;
    out->length = (uint32_t)(end - q->next) * q->attr.mtu;
    return (uint32_t)(end - q->next);
}

void rc_requester_took_train(struct rc_requester *q, uint32_t packets, uint64_t now_us)
{
    for (uint64_t end = q->next + packets; q->next != end;) {
        uint64_t rest;

        if (q->next >= q->marks.due)
            rc_marks_set(&q->marks, q->next, q->congestion.window, now_us);
        rest = end < q->marks.due ? end : q->marks.due;
        if (q->next < q->max)
            q->counters.resent += (rest < q->max ? rest : q->max) - q->next;
        q->next = rest;
    }
    if (q->next > q->max)
        q->max = q->next;
}

/* --- acknowledgements ------------------------------------------------------------------------------------------- */

static void not_ready(struct rc_requester *q, unsigned timer, uint64_t now_us)
{
    q->counters.not_ready++;
    if (q->attr.rnr_retries != RC_RNR_ENDLESS && q->rnr_tries++ >= q->attr.rnr_retries) {
        requester_finish(q, RC_RNR_EXCEEDED, q->una);
        return;
    }
    go_back(q);
    q->wait_us = now_us + rc_rnr_us(timer);
    restart_timers(q, q->wait_us);
}

static void requester_refused(struct rc_requester *q, unsigned reason, uint64_t position, uint64_t now_us)
{
    q->counters.naks++;
    if (reason == NAK_SEQUENCE) {
        lost(q, true, position == q->una && is_once_enough(q), now_us);
        return;
    }
    q->reason = reason < NAK_REASONS ? (enum bth_nak)reason : NAK_INVALID_REQUEST;
    requester_finish(q, RC_NAK, position);
}

void rc_requester_acknowledged(struct rc_requester *q, uint32_t psn, uint8_t syndrome, uint64_t now_us)
{
    uint64_t position = psn_unwrap(q->una, psn), to = position + ((syndrome & AETH_KIND) == AETH_ACK), done,
             before = q->una;

    if (q->why || position < q->una || position >= q->max)
        return;
    done = requester_answered(q, to);
    advance(q, done, now_us);
    if (done < to && (syndrome & AETH_KIND) != AETH_NAK) {
        lost(q, true, false, now_us); /* what is acknowledged lies behind a response that was lost */
        return;
    }
    switch (syndrome & AETH_KIND) {
    case AETH_RNR_NAK:
        not_ready(q, syndrome & AETH_VALUE, now_us);
        break;
    case AETH_NAK:
        requester_refused(q, syndrome & AETH_VALUE, position, now_us);
        break;
    default:
        if (q->una > before && q->skip.to)
            lost(q, true, is_once_enough(q), now_us); /* another packet of those that it was to keep */
        break;
    }
}

/* --- responses -------------------------------------------------------------------------------------------------- */

/* The request that a response at this position is for: the oldest that waits for one, after messages that it
 * acknowledges. NULL: none is expected there. */
static const struct rc_request *expecting(const struct rc_requester *q, uint64_t position)
{
    for (uint32_t i = q->tail; i != q->head && request_at(q, i)->psn <= position; i++)
        if (request_at(q, i)->kind != RC_MESSAGE)
            return request_at(q, i);
    return NULL;
}

/* Do its opcode and length fit this place of the response? A Read that was asked for again from the middle on begins
 * there with a First. */
static bool fits(const struct rc_requester *q, const struct rc_request *r, uint32_t i, const struct bth *b)
{
    bool last = i == r->packets - 1;
    uint32_t length = last ? r->length - i * q->attr.mtu : q->attr.mtu;

    if (r->kind == RC_ATOMIC || b->op == BTH_ATOMIC_ACKNOWLEDGE)
        return r->kind == RC_ATOMIC && b->op == BTH_ATOMIC_ACKNOWLEDGE;
    return last == !!(b->flags & BTH_LAST) && (i || b->flags & BTH_FIRST) && b->length == length;
}

bool rc_requester_expects(struct rc_requester *q, const struct bth *b, uint32_t *offset, uint64_t now_us)
{
    uint64_t position = psn_unwrap(q->una, b->psn), due;
    const struct rc_request *r;

    if (q->why || position < q->una || position >= q->max)
        return false;
    r = expecting(q, position);
    if (!r)
        return false;
    due = r->psn > q->una ? r->psn : q->una;
    advance(q, due, now_us); /* it acknowledges what was before it */
    if (position > due) {
        lost(q, false, false, now_us);
        return false;
    }
    if (!fits(q, r, (uint32_t)(due - r->psn), b)) {
        requester_finish(q, RC_BAD_RESPONSE, position);
        return false;
    }
    *offset = r->kind == RC_ATOMIC ? 0 : (uint32_t)(due - r->psn) * q->attr.mtu;
    return true;
}

void rc_requester_took(struct rc_requester *q, uint64_t now_us)
{
    advance(q, q->una + 1, now_us);
}

void rc_requester_left(struct rc_requester *q, uint64_t now_us)
{
    advance(q, q->next, now_us);
}

void rc_requester_forget(struct rc_requester *q, uint64_t now_us)
{
    q->tail = q->cursor = q->head;
    q->una = q->next = q->end = q->max;
    restart_timers(q, now_us);
}

bool rc_requester_blamed(const struct rc_requester *q, uint32_t *name)
{
    for (uint32_t i = q->tail; i != q->head; i++)
        if (q->blamed - request_at(q, i)->psn < request_at(q, i)->packets) {
            *name = request_at(q, i)->name;
            return true;
        }
    return false;
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static void sent_in_vain(struct rc_requester *q)
{
    if (!q->before.max)
        q->before = (struct rc_before){.max = q->max, .congestion = q->congestion};
    q->congestion.recover = 0;
    rc_window_shrink(q, RC_WINDOW_MIN);
    go_back(q);
    q->marks.from = q->max;
    q->gap = 0;
}

void rc_requester_tick(struct rc_requester *q, uint64_t now_us)
{
    if (q->wait_us && now_us >= q->wait_us)
        q->wait_us = 0;
    if (q->is_silent && (now_us >= q->deadline_us || now_us >= q->resend_us)) {
        rc_requester_ask(q);
        restart_timers(q, now_us);
    } else if (now_us >= q->deadline_us) {
        q->counters.timeouts++;
        if (q->tries++ >= q->attr.retries) {
            requester_finish(q, RC_RETRY_EXCEEDED, q->una);
            return;
        }
        sent_in_vain(q);
        restart_timers(q, now_us);
    } else if (now_us >= q->resend_us + RC_LATE_US && !q->is_late) {
        q->is_late = true; /* so is what arrived meanwhile: look at that first */
        q->resend_us = now_us + RC_LATE_US;
    } else if (now_us >= q->resend_us) {
        sent_in_vain(q);
        q->backoff++;
        restart_resend(q, now_us);
    }
}
