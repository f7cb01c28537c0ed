/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unit.c - what one unit does: as it was decoded, or, if it was placed early, in its turn; and damaged units. */
#include "conn/conn_inner.h"

/* --- damage ---------------------------------------------------------------------------------------------------- */

/* A damaged unit may have been corrupted in transit. It is refused, and thus retransmitted, at most this many times. */
enum { REFUSALS_MAX = 3 };

/* Can corruption in transit cause this fault? Other faults are the sender's. */
bool unit_may_be_corrupted(enum fault fault)
{
    switch (fault) {
    case FAULT_LENGTH:
    case FAULT_CRC:
    case FAULT_MARKER:
    case FAULT_OVERLAP:
    case FAULT_SEG_VERSION:
    case FAULT_SEG_LENGTH:
    case FAULT_SEG_CLEN:
    case FAULT_SEG_ID:
    case FAULT_SEG_CRC:
        return true;
    default:
        return false;
    }
}

bool unit_refuses(struct conn *c, enum fault fault)
{
    if (!c->out_of_order || c->refusals == REFUSALS_MAX || !unit_may_be_corrupted(fault))
        return false;
    c->refusals++;
    c->refused = true;
    return true;
}

/* --- a unit in its turn ------------------------------------------------------------------------------------------ */

static void terminated(struct conn *c, const struct seg *seg, uint64_t now_us)
{
    struct wire_blame blame;

    c->wire->explain(seg, &blame);
    life_terminated(&c->life, &blame, now_us);
}

/* A ready-to-receive message that is a Send is not visible to the consumer (RFC 6581 5). */
static bool is_ready_send(const struct conn *c, const struct seg *seg)
{
    return c->start.silent && c->start.rtr & MPA_RTR_SEND && seg->op == SEG_SEND && seg->flags == SEG_LAST &&
           seg->msg == 1 && !seg->offset && !seg->length;
}

/* The initiator's first FPDU was valid: the responder may send now (RFC 5044 7.1.2 rule 4). */
static void unit_release(struct conn *c)
{
    c->start.silent = false;
    if (c->start.rtr)
        life_established(&c->life);
}

/* The message waits for a receive; but it has come, and this end may speak. */
static int hold_for_receive(struct conn *c, uint64_t begin)
{
    if (c->start.silent)
        unit_release(c);
    return conn_hold(c, begin, HELD_FOR_RECEIVE);
}

/* Places a segment. If it invalidates a key and no other thread uses the region, it is delivered at once. */
static enum fault unit_place(struct conn *c, const struct seg *seg, uint64_t now_us)
{
    enum fault fault = qp_place(c->life.qp, seg);

    return fault || !life_is_invalidating(&c->life) ? fault : life_resume(&c->life, now_us);
}

/* The queue pair does not see the messages that only start the connection. Returns whether this is one. */
static bool is_of_start(struct conn *c, const struct seg *seg)
{
    if (is_ready_send(c, seg))
        qp_skip_receive(c->life.qp);
    else if (c->start.rtr_answer_due && seg->op == SEG_READ_RESP && !seg->length)
        c->start.rtr_answer_due = false;
    else
        return false;
    qp_advance(c->life.qp, seg->end);
    return true;
}

static void place_failed(struct conn *c, const struct seg *seg, uint64_t now_us)
{
    const struct fault_note note = c->life.qp->note;

    if (note.fault == FAULT_NO_RECEIVE && c->life.peer_is_gone)
        life_peer_ended(&c->life, true, now_us); /* no peer is left to be told */
    else
        conn_fail(c, &note, seg, now_us);
}

int unit_arrived(struct conn *c, const struct seg *seg, int eaten, uint64_t now_us)
{
    bool is_starting = c->start.silent || c->start.rtr_answer_due;
    enum fault fault = FAULT_NONE;

    life_stall(&c->life, false, now_us);
    if (seg->op == SEG_TERMINATE) {
        terminated(c, seg, now_us);
        return eaten;
    }
    if (!is_starting || !is_of_start(c, seg))
        fault = unit_place(c, seg, now_us);
    if (fault == FAULT_NOT_NOW)
        return conn_hold(c, seg->begin, life_is_invalidating(&c->life) ? HELD_FOR_INVALIDATION : HELD_FOR_ANSWER);
    if (fault == FAULT_NO_RECEIVE && life_may_await_receive(&c->life, now_us))
        return hold_for_receive(c, seg->begin);
    life_received(&c->life);
    if (fault) {
        place_failed(c, seg, now_us);
        return eaten;
    }
    life_message(&c->life, seg->op, seg->flags & SEG_LAST, now_us);
    if (c->start.silent)
        unit_release(c);
    return eaten;
}

/* If the queue pair has receives of its own, none can vanish until the unit is placed. */
static bool lacks_receive(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us)
{
    struct qp *qp = c->life.qp;
    bool may_lack = c->agreed.rx_markers && qp->attr.receive_wait_us && (qp->attr.srq || qp_awaits_receive(qp));
    struct seg seg;

    return may_lack && c->wire->look(&c->agreed, &seg, p, n) > 0 && !is_ready_send(c, &seg) &&
           qp_claim_receive(qp, &seg) == FAULT_NO_RECEIVE && life_may_await_receive(&c->life, now_us);
}

bool unit_waits(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us)
{
    if (life_is_invalidating(&c->life))
        conn_hold(c, c->agreed.rx_pos, HELD_FOR_INVALIDATION);
    else if (!c->place_at && lacks_receive(c, p, n, now_us))
        hold_for_receive(c, c->agreed.rx_pos);
    else
        return false;
    return true;
}

void unit_turns(struct conn *c, uint64_t now_us)
{
    const struct seg *seg;

    while (c->reorder && !c->held && life_is_open(&c->life) && (seg = reorder_first(c->reorder)) &&
           seg->begin == c->agreed.rx_pos) {
        struct seg turn = *seg;

        c->agreed.rx_pos = turn.end;
        if (unit_arrived(c, &turn, (int)(turn.end - turn.begin), now_us))
            reorder_pop(c->reorder);
    }
}

/* Does the unit in front not end where the next one begins? A unit that is held back or refused proves nothing. */
bool unit_overlaps(const struct conn *c, size_t rest)
{
    const struct seg *seg = c->reorder ? reorder_first(c->reorder) : NULL;

    return seg && !c->held && !c->refused && life_is_open(&c->life) &&
           (seg->begin < c->agreed.rx_pos || (rest && seg->begin - c->agreed.rx_pos <= rest));
}
