/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.c - how a connection ends: with one reported reason, within its time limits. */
#include "conn/life.h"

#include <string.h>

void life_init(struct life *l, bool active, const struct life_limits *limits, uint64_t now_us)
{
    memset(l, 0, sizeof(*l));
    l->active = active;
    l->limits = *limits;
    l->state = active ? CONN_WAIT_REPLY : CONN_WAIT_REQUEST;
    l->startup_deadline_us = now_us + limits->startup_us;
}

void life_requested(struct life *l)
{
    l->state = CONN_WAIT_ANSWER;
    l->startup_deadline_us = 0;
    l->news |= CONN_NEWS_REQUEST;
}

void life_ready(struct life *l)
{
    l->state = CONN_READY;
    l->startup_deadline_us = 0;
}

void life_established(struct life *l)
{
    l->startup_deadline_us = 0;
    l->established = true;
    l->news |= CONN_NEWS_ESTABLISHED;
}

void life_rejected(struct life *l, uint64_t now_us)
{
    l->note = (struct fault_note){.fault = FAULT_REJECTED};
    if (l->active) {
        qp_fail(l->qp, &l->note);
        l->news |= CONN_NEWS_REJECTED;
    }
    l->state = CONN_ENDING;
    l->startup_deadline_us = 0;
    l->close_deadline_us = now_us + l->limits.close_us;
}

bool life_is_drained(const struct life *l)
{
    const struct qp *qp = l->qp;

    return !qp || qp->state == QP_ERROR ||
           (qp->sq.head == qp->sq.tail && !qp->invalidating && (int32_t)(qp->answers.tail - l->last_answer) >= 0);
}

bool life_owes(const struct life *l)
{
    const struct qp *qp = l->qp;

    if (l->state != CONN_READY)
        return l->state > CONN_READY && l->state < CONN_OVER;
    return (l->out && l->out->octets) || (qp && (qp->sq.head != qp->sq.tail || qp->answers.head != qp->answers.tail));
}

/* --- the end ------------------------------------------------------------------------------------------------- */

/* Stops the queue pair in both directions and reports the end to the application once. */
static void life_flush(struct life *l, const struct fault_note *note)
{
    if (l->note.fault == FAULT_NONE)
        l->note = *note;
    if (l->out) /* first: what is flushed is the application's again */
        out_own(l->out);
    if (l->qp)
        qp_fail(l->qp, note);
    l->news |= l->established ? CONN_NEWS_DISCONNECTED : CONN_NEWS_FAILED;
}

static void begin_close(struct life *l, uint64_t now_us)
{
    l->close_deadline_us = now_us + l->limits.close_us;
    if (!l->end_deadline_us)
        l->end_deadline_us = now_us + LIFE_CLOSES * l->limits.close_us;
}

static void life_end(struct life *l, const struct fault_note *note, enum conn_state state, uint64_t now_us)
{
    if (l->state >= CONN_TERMINATING)
        return;
    life_flush(l, note);
    life_received(l);
    l->state = state;
    l->startup_deadline_us = 0;
    life_listen(l, false, now_us);
    begin_close(l, now_us);
}

void life_fail(struct life *l, const struct fault_note *note, bool term_due, uint64_t now_us)
{
    if (l->state >= CONN_TERMINATING)
        return;
    l->term_due = term_due;
    life_end(l, note, term_due ? CONN_TERMINATING : CONN_ENDING, now_us);
}

static enum rddp_wc_status life_status_of(const struct wire_blame *blame)
{
    if (blame->access)
        return RDDP_WC_REM_ACCESS_ERR;
    return blame->invalid ? RDDP_WC_REM_INV_REQ_ERR : RDDP_WC_REM_OP_ERR;
}

void life_terminated(struct life *l, const struct wire_blame *blame, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_TERMINATED, .op = SEG_TERMINATE, .got = blame->code};

    l->peer_term = blame->code;
    l->peer_term_text = blame->text;
    if (l->qp && blame->op != SEG_OPS)
        qp_blame(l->qp, blame->op, life_status_of(blame));
    life_end(l, &note, CONN_ENDING, now_us);
    if (l->out)
        out_drop(l->out);
}

void life_lost(struct life *l, enum fault fault)
{
    struct fault_note note = {.fault = fault};

    if (l->state < CONN_TERMINATING)
        life_flush(l, &note);
    if (l->out)
        out_drop(l->out);
    l->state = CONN_OVER;
}

/* Is a message or an answer of the peer incomplete? */
static bool misses_something(const struct life *l)
{
    const struct qp *qp = l->qp;

    return l->unfinished || (qp && (qp->reads.head != qp->reads.tail || qp->arriving.claimed != qp->arriving.next));
}

void life_peer_ended(struct life *l, bool cut, uint64_t now_us)
{
    struct fault_note note = {.fault = cut || !l->established || misses_something(l) ? FAULT_CUT : FAULT_NONE};

    switch (l->state) {
    case CONN_WAIT_REQUEST:
    case CONN_WAIT_ANSWER:
    case CONN_WAIT_REPLY:
        life_lost(l, FAULT_CUT);
        break;
    case CONN_READY:
    case CONN_DRAINING:
        life_end(l, &note, CONN_ENDING, now_us);
        if (l->out)
            out_drop(l->out);
        l->peer_ended = true;
        break;
    case CONN_TERMINATING:
        l->peer_ended = true;
        break;
    case CONN_ENDING:
        l->peer_ended = true;
        if (l->fin_sent)
            l->state = CONN_OVER;
        break;
    case CONN_OVER:
        break;
    }
}

void life_fin(struct life *l, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_NONE};

    if (l->state == CONN_DRAINING)
        life_end(l, &note, CONN_ENDING, now_us);
    l->state = l->peer_ended ? CONN_OVER : CONN_ENDING;
    l->fin_sent = true;
}

void life_close(struct life *l, uint64_t now_us)
{
    if (life_in_startup(l)) {
        life_lost(l, FAULT_LOST);
    } else if (l->state == CONN_READY) {
        l->state = CONN_DRAINING;
        l->last_answer = l->qp ? l->qp->answers.head : 0;
        life_stall(l, false, now_us);
        begin_close(l, now_us);
    }
}

void life_detach(struct life *l, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_NONE};

    if (life_in_startup(l))
        life_lost(l, FAULT_LOST);
    else
        life_end(l, &note, CONN_ENDING, now_us);
    l->qp = NULL;
}

/* --- waiting for a receive ---------------------------------------------------------------------------------------- */

bool life_may_await_receive(struct life *l, uint64_t now_us)
{
    uint64_t wait_us = l->qp->attr.receive_wait_us;

    if (!wait_us || l->receive_is_late)
        return false;
    if (l->peer_is_gone && wait_us > LIFE_GONE_US)
        wait_us = LIFE_GONE_US;
    if (!l->receive_deadline_us)
        l->receive_deadline_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    l->receives_claimed = l->qp->arriving.claimed;
    l->qp->note = (struct fault_note){.fault = FAULT_NONE}; /* it is none yet */
    return true;
}

/* A part of the message that came out of order may have claimed the receive. */
bool life_must_await_receive(const struct life *l)
{
    return l->receive_deadline_us && l->qp->arriving.claimed == l->receives_claimed && qp_awaits_receive(l->qp);
}

void life_peer_gone(struct life *l, uint64_t now_us)
{
    if (l->peer_is_gone)
        return;
    l->peer_is_gone = true;
    if (l->receive_deadline_us > now_us + LIFE_GONE_US)
        l->receive_deadline_us = now_us + LIFE_GONE_US;
}

/* --- time ---------------------------------------------------------------------------------------------------- */

void life_sent(struct life *l, uint64_t now_us)
{
    if (l->close_deadline_us)
        l->close_deadline_us = now_us + l->limits.close_us;
}

void life_stall(struct life *l, bool unfinished, uint64_t now_us)
{
    if (!unfinished)
        l->stall_deadline_us = 0;
    else if (!l->stall_deadline_us && l->limits.stall_us && l->state >= CONN_READY)
        l->stall_deadline_us = now_us + l->limits.stall_us;
}

static void life_watch(struct life *l, enum seg_op op, bool listens, uint64_t now_us)
{
    bool waits = listens && l->unfinished >> op & 1 && l->limits.stall_us;

    l->message_deadline_us[op] = waits ? now_us + l->limits.stall_us : 0;
}

void life_unfinished(struct life *l, enum seg_op op, bool is_last, uint64_t now_us)
{
    if (is_last)
        l->unfinished &= ~(1u << op);
    else
        l->unfinished |= 1u << op;
    life_watch(l, op, true, now_us);
}

void life_listen(struct life *l, bool listens, uint64_t now_us)
{
    for (enum seg_op op = 0; op < SEG_OPS; op++)
        life_watch(l, op, listens, now_us);
    if (!listens)
        l->stall_deadline_us = 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

void life_renew(struct life *l)
{
    if (l->out)
        out_own_invalid(l->out);
    epoch_renew(&l->qp->attr.mrs->epochs, l->reader);
}

/* Readers leave a region soon, but do not notify us: check again after LIFE_RESUME_US. */
enum fault life_resume_waiting(struct life *l, uint64_t now_us)
{
    enum fault fault;

    if (life_is_open(l) && qp_has_local(l->qp))
        qp_do_local(l->qp);
    if (!qp_waits(l->qp))
        return FAULT_NONE;
    life_renew(l);
    fault = qp_resume(l->qp);
    if (qp_waits(l->qp)) {
        l->resume_us = now_us + LIFE_RESUME_US;
        l->awaits_spans = qp_waits_for_spans(l->qp);
    }
    return fault;
}

uint64_t life_deadline(const struct life *l)
{
    uint64_t at = UINT64_MAX;

    if (l->state == CONN_OVER || !(l->startup_deadline_us | l->stall_deadline_us | l->unfinished | l->resume_us |
                                   l->receive_deadline_us | l->close_deadline_us | l->end_deadline_us))
        return at;
    at = earlier(at, l->startup_deadline_us);
    at = earlier(at, l->stall_deadline_us);
    for (enum seg_op op = 0; op < SEG_OPS && l->unfinished && !l->stall_deadline_us; op++)
        at = earlier(at, l->message_deadline_us[op]);
    at = earlier(at, l->resume_us);
    at = earlier(at, l->receive_deadline_us);
    at = earlier(at, l->close_deadline_us);
    return earlier(at, l->end_deadline_us);
}

static bool is_past(uint64_t *deadline_us, uint64_t now_us)
{
    if (!*deadline_us || now_us < *deadline_us)
        return false;
    *deadline_us = 0;
    return true;
}

bool life_is_late(struct life *l, uint64_t now_us)
{
    bool late = false;

    for (enum seg_op op = 0; op < SEG_OPS; op++)
        late |= is_past(&l->message_deadline_us[op], now_us);
    return late;
}

bool life_tick(struct life *l, uint64_t now_us)
{
    bool stalled = is_past(&l->startup_deadline_us, now_us);

    l->receive_is_late |= is_past(&l->receive_deadline_us, now_us);
    if (stalled && life_in_startup(l))
        life_lost(l, FAULT_STALLED);
    stalled |= l->stall_deadline_us ? is_past(&l->stall_deadline_us, now_us) : life_is_late(l, now_us);
    if (is_past(&l->close_deadline_us, now_us) || is_past(&l->end_deadline_us, now_us))
        life_lost(l, FAULT_STALLED);
    return stalled && l->state < CONN_TERMINATING;
}
