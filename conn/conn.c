/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - the pump of one connection: octets to segments to the queue pair, and back; and how it ends. */
#include "conn/conn.h"

#include <assert.h>
#include <string.h>

#include "conn/conn_inner.h"

/* Below this a payload is copied behind its header: a span of its own costs more than the copy. */
enum { GATHER_MIN = 16384 };

static bool in_startup(const struct conn *c)
{
    return c->state <= CONN_WAIT_REPLY;
}

/* --- the end ------------------------------------------------------------------------------------------------- */

/* Nothing arrives any more, and nothing new leaves. The application learns of it once. */
static void flush(struct conn *c, const struct fault_note *note)
{
    if (c->note.fault == FAULT_NONE)
        c->note = *note;
    if (c->qp)
        qp_fail(c->qp, note);
    if (c->out)
        out_own(c->out);
    c->news |= c->established ? CONN_NEWS_DISCONNECTED : CONN_NEWS_FAILED;
}

static void end(struct conn *c, const struct fault_note *note, enum conn_state state, uint64_t now_us)
{
    if (c->state >= CONN_TERMINATING)
        return;
    flush(c, note);
    c->state = state;
    c->startup_deadline_us = c->stall_deadline_us = 0;
    c->close_deadline_us = now_us + c->attr.close_us;
}

void conn_fail(struct conn *c, const struct fault_note *note, const struct seg *seg, uint64_t now_us)
{
    /* A responder may say nothing before the initiator's first FPDU, not even this (RFC 5044 7.1.2 rule 4). */
    bool framed = !in_startup(c) && (!c->hold || seg);

    if (c->state >= CONN_TERMINATING)
        return;
    if (framed)
        c->term_due = c->wire->terminate(&c->w, note, seg, &c->term, c->term_room);
    end(c, note, c->term_due ? CONN_TERMINATING : CONN_ENDING, now_us);
}

void conn_lost(struct conn *c, enum fault fault)
{
    struct fault_note note = {.fault = fault};

    if (c->state < CONN_TERMINATING)
        flush(c, &note);
    if (c->out)
        out_drop(c->out);
    c->state = CONN_OVER;
}

void conn_rx_end(struct conn *c, size_t rest, uint64_t now_us)
{
    struct fault_note note = {.fault = rest || in_startup(c) ? FAULT_CUT : FAULT_NONE};

    switch (c->state) {
    case CONN_WAIT_REQUEST:
    case CONN_WAIT_ANSWER:
    case CONN_WAIT_REPLY:
        conn_lost(c, FAULT_CUT);
        break;
    case CONN_READY:
    case CONN_DRAINING:
        end(c, &note, CONN_ENDING, now_us);
        if (c->out)
            out_drop(c->out);
        c->rtr_due = false;
        c->peer_ended = true;
        break;
    case CONN_TERMINATING:
        c->peer_ended = true;
        break;
    case CONN_ENDING:
        c->peer_ended = true;
        if (c->fin_sent)
            c->state = CONN_OVER;
        break;
    case CONN_OVER:
        break;
    }
}

void conn_close(struct conn *c, uint64_t now_us)
{
    if (in_startup(c)) {
        conn_lost(c, FAULT_LOST);
    } else if (c->state == CONN_READY) {
        c->state = CONN_DRAINING;
        c->stall_deadline_us = 0;
        c->close_deadline_us = now_us + c->attr.close_us;
    }
}

void conn_detach(struct conn *c, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_NONE};

    if (in_startup(c))
        conn_lost(c, FAULT_LOST);
    else
        end(c, &note, CONN_ENDING, now_us);
    c->qp = NULL;
}

void conn_fin(struct conn *c, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_NONE};

    if (c->state == CONN_DRAINING)
        end(c, &note, CONN_ENDING, now_us);
    c->state = c->peer_ended ? CONN_OVER : CONN_ENDING;
    c->fin_sent = true;
}

/* --- octets in ----------------------------------------------------------------------------------------------- */

static void terminated(struct conn *c, const struct seg *seg, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_TERMINATED, .op = SEG_TERMINATE};
    struct wire_blame blame;

    c->wire->explain(seg, &blame);
    c->peer_term = blame.code;
    c->peer_term_text = blame.text;
    note.got = blame.code;
    if (c->qp && blame.op != SEG_OPS)
        qp_blame(c->qp, blame.op, blame.access ? RDDP_WC_REM_ACCESS_ERR : RDDP_WC_REM_OP_ERR);
    end(c, &note, CONN_ENDING, now_us);
    if (c->out)
        out_drop(c->out);
}

/* A ready-to-receive message that is a Send is not visible to the consumer (RFC 6581 5). */
static bool is_ready_send(const struct conn *c, const struct seg *seg)
{
    return c->hold && c->rtr & MPA_RTR_SEND && seg->op == SEG_SEND && seg->flags == SEG_LAST && seg->msg == 1 &&
           !seg->offset && !seg->length;
}

/* The initiator's first FPDU was valid: now the responder may send (RFC 5044 7.1.2 rule 4). */
static void release(struct conn *c)
{
    c->hold = false;
    if (!c->rtr)
        return;
    c->startup_deadline_us = 0;
    c->established = true;
    c->news |= CONN_NEWS_ESTABLISHED;
}

/* The segment has to wait until the queue pair has cut a response. It is taken as if it had not come. */
static int hold_back(struct conn *c, const struct seg *seg)
{
    c->w.rx_pos = seg->begin;
    c->held = true;
    c->held_tail = c->qp->answer_tail;
    return 0;
}

/* Octets eaten, 0 for more, or minus a fault that has been dealt with. */
static int segment(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    struct seg seg;
    size_t need;
    int eaten = c->gap_at ? gap_close(c, &seg, p, n) : c->wire->decode(&c->w, &seg, p, n, &need);
    struct fault_note note = {.fault = FAULT_NONE};
    enum fault fault;

    if (eaten == 0)
        return 0;
    if (eaten < 0) {
        note = (struct fault_note){
            .fault = (enum fault) - eaten,
            .op = seg.op,
            .key = seg.key,
            .offset = seg.offset,
            .length = seg.length,
            .msg = seg.msg,
        };
        conn_fail(c, &note, &seg, now_us);
        return eaten;
    }
    c->stall_deadline_us = 0;
    if (seg.op == SEG_TERMINATE) {
        terminated(c, &seg, now_us);
        return eaten;
    }
    if (is_ready_send(c, &seg)) {
        qp_skip_receive(c->qp);
        qp_advance(c->qp, seg.end);
    } else if (c->rtr_answer_due && seg.op == SEG_READ_RESP && !seg.length) {
        c->rtr_answer_due = false;
        qp_advance(c->qp, seg.end);
    } else if ((fault = qp_place(c->qp, &seg))) {
        if (fault == FAULT_NOT_NOW)
            return hold_back(c, &seg);
        note = c->qp->note;
        conn_fail(c, &note, &seg, now_us);
        return eaten;
    }
    if (c->hold)
        release(c);
    return eaten;
}

static int step(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    switch (c->state) {
    case CONN_WAIT_REQUEST:
    case CONN_WAIT_REPLY:
        return start_rx(c, p, n, now_us);
    case CONN_READY:
    case CONN_DRAINING:
        return segment(c, p, n, now_us);
    case CONN_WAIT_ANSWER:
        return 0;
    default:
        return (int)n; /* dropped */
    }
}

void conn_check(struct conn *c, uint64_t now_us)
{
    if (!c->qp || c->qp->state != QP_ERROR)
        return;
    qp_settle(c->qp);
    conn_fail(c, &c->qp->note, NULL, now_us);
}

size_t conn_rx(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    size_t eaten = 0;

    c->held = false;
    while (eaten < n) {
        int k = step(c, p + eaten, n - eaten, now_us);

        if (k < 0)
            continue; /* the state has changed: the rest is looked at with new eyes */
        if (k == 0)
            break;
        eaten += (size_t)k;
    }
    conn_check(c, now_us);
    if (eaten < n && !c->stall_deadline_us && c->attr.stall_us && c->state >= CONN_READY)
        c->stall_deadline_us = now_us + c->attr.stall_us;
    return eaten;
}

/* What decides is in the octets themselves: the Connection ID, the header, the number, and the CRC. If any of it is not
 * as it must be, this is no segment, or not whole, and waits for its turn. */
size_t conn_rx_early(struct conn *c, uint8_t *p, size_t n, uint64_t pos)
{
    struct wire_state w = c->w;
    size_t placed = 0, need;

    if ((c->state != CONN_READY && c->state != CONN_DRAINING) || !c->qp || !w.id_known || pos <= w.rx_pos)
        return 0;
    w.rx_pos = pos;
    while (placed < n) {
        struct seg seg;
        int k = c->wire->decode(&w, &seg, p + placed, n - placed, &need);

        if (k <= 0 || qp_place(c->qp, &seg))
            break;
        placed += (size_t)k;
    }
    return placed;
}

/* --- octets out ---------------------------------------------------------------------------------------------- */

static bool may_send(const struct conn *c, uint64_t now_us)
{
    return (c->state == CONN_READY || c->state == CONN_DRAINING) && !c->hold && !c->rtr_answer_due &&
           now_us >= c->tx_after_us;
}

/* Our ready-to-receive message leaves however the connection ends, and nothing before it: siw 6.1 does not survive an
 * end without it. */
static bool rtr_waits(const struct conn *c, uint64_t now_us)
{
    return c->rtr_due && now_us < c->tx_after_us;
}

/* Posted requests and the peer's reads, all of it. */
static bool is_drained(const struct conn *c)
{
    const struct qp *qp = c->qp;

    return !qp || qp->state == QP_ERROR || (qp->sq_head == qp->sq_tail && qp->answer_head == qp->answer_tail);
}

static bool still_held(const struct conn *c)
{
    return (c->state == CONN_READY || c->state == CONN_DRAINING) && c->qp && c->qp->answer_tail == c->held_tail;
}

unsigned conn_wants(const struct conn *c, uint64_t now_us)
{
    unsigned wants = 0;
    bool out = c->out && c->out->octets;

    if (c->state == CONN_OVER)
        return 0;
    if (c->held && !still_held(c))
        wants |= CONN_AGAIN;
    else if (c->state != CONN_WAIT_ANSWER && !c->peer_ended && !c->held)
        wants |= CONN_RX;
    if (out || c->frame_length || ((c->rtr_due || c->term_due) && !rtr_waits(c, now_us)) ||
        (may_send(c, now_us) && c->qp && qp_has_output(c->qp)))
        return wants | CONN_TX;
    if (c->fin_sent || c->rtr_due)
        return wants;
    if (c->state >= CONN_TERMINATING || (c->state == CONN_DRAINING && is_drained(c)))
        wants |= CONN_FIN;
    return wants;
}

/* May the payload leave from where it lies? Not if it could change between its CRC and the socket. */
static bool may_borrow(const struct conn *c, const struct emit *e)
{
    bool can_change = e->volatile_data || (e->may_change && c->w.crc);

    return e->seg.length >= GATHER_MIN && !can_change && !e->seg.control_length && !c->wire->interleaves(&c->w);
}

/* Frames one segment into `out`, by copy or by reference. */
static void encode(struct conn *c, struct emit *e)
{
    struct out *out = c->out;
    uint8_t *head = out_space(out), *tail = head + WIRE_HEAD_MAX;
    size_t head_length, tail_length;

    if (!may_borrow(c, e)) {
        out_commit(out, c->wire->frame(&c->w, &e->seg, e->span, e->spans, head));
        return;
    }
    c->wire->wrap(&c->w, &e->seg, e->span, e->spans, head, &head_length, tail, &tail_length);
    out_commit(out, head_length);
    for (uint32_t i = 0; i < e->spans; i++)
        out_borrow(out, e->span[i], e->region[i]);
    memmove(out_space(out), tail, tail_length);
    out_commit(out, tail_length);
}

static void fill_rtr(struct conn *c)
{
    struct emit e = {.seg = {.flags = SEG_LAST, .msg = 1, .key = 1, .read = {.sink_key = 1, .source_key = 1}}};

    c->rtr_due = false;
    switch (c->rtr) {
    case MPA_RTR_SEND:
        e.seg.op = SEG_SEND;
        if (c->qp)
            c->qp->tx_send_msg++;
        break;
    case MPA_RTR_WRITE:
        e.seg.op = SEG_WRITE;
        break;
    default:
        e.seg.op = SEG_READ_REQ;
        if (c->qp)
            c->qp->tx_read_msg++;
        c->rtr_answer_due = true;
        break;
    }
    encode(c, &e);
}

static void fill_segments(struct conn *c)
{
    uint32_t tagged_max = c->wire->payload_max(&c->w, true, c->attr.emss);
    uint32_t untagged_max = c->wire->payload_max(&c->w, false, c->attr.emss);
    struct emit e;

    while (out_has_room(c->out) && qp_emit(c->qp, &e, tagged_max, untagged_max)) {
        encode(c, &e);
        qp_queued(c->qp, c->w.tx_pos);
    }
}

void conn_fill(struct conn *c, uint64_t now_us)
{
    struct emit e = {.spans = 0};

    if (c->frame_length) {
        memcpy(out_space(c->out), c->frame, c->frame_length);
        out_commit(c->out, c->frame_length);
        c->frame_length = 0;
    }
    if (c->rtr_due && !rtr_waits(c, now_us))
        fill_rtr(c);
    if (may_send(c, now_us) && c->qp) {
        fill_segments(c);
        conn_check(c, now_us);
    }
    if (c->term_due && !c->rtr_due) {
        e.seg = c->term;
        e.span[0] = (struct span){c->term.data, c->term.length};
        e.spans = 1;
        encode(c, &e);
        c->term_due = false;
    }
}

void conn_sent(struct conn *c, size_t octets, uint64_t now_us)
{
    out_sent(c->out, octets);
    if (c->close_deadline_us)
        c->close_deadline_us = now_us + c->attr.close_us;
    if (c->qp && c->w.tx_pos >= c->out->octets)
        qp_sent(c->qp, c->w.tx_pos - c->out->octets);
    /* A completion without room fails the queue pair, and perhaps nothing more comes or goes. */
    conn_check(c, now_us);
}

/* --- time ---------------------------------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

uint64_t conn_deadline(const struct conn *c, uint64_t now_us)
{
    uint64_t at = UINT64_MAX;

    if (c->state == CONN_OVER)
        return at;
    at = earlier(at, c->startup_deadline_us);
    at = earlier(at, c->stall_deadline_us);
    at = earlier(at, c->close_deadline_us);
    if (c->tx_after_us > now_us)
        at = earlier(at, c->tx_after_us);
    return at;
}

bool conn_is_at_rest(const struct conn *c)
{
    return c->state == CONN_READY && c->qp && c->qp->state == QP_READY && !c->out && !c->news &&
           conn_wants(c, UINT64_MAX) == CONN_RX && conn_deadline(c, UINT64_MAX) == UINT64_MAX;
}

static bool is_past(uint64_t deadline_us, uint64_t now_us)
{
    return deadline_us && now_us >= deadline_us;
}

void conn_tick(struct conn *c, uint64_t now_us)
{
    struct fault_note stalled = {.fault = FAULT_STALLED};

    if (is_past(c->startup_deadline_us, now_us)) {
        c->startup_deadline_us = 0;
        if (in_startup(c))
            conn_lost(c, FAULT_STALLED);
        else
            conn_fail(c, &stalled, NULL, now_us);
    }
    if (is_past(c->stall_deadline_us, now_us)) {
        c->stall_deadline_us = 0;
        conn_fail(c, &stalled, NULL, now_us);
    }
    if (is_past(c->close_deadline_us, now_us))
        conn_lost(c, FAULT_STALLED);
}
