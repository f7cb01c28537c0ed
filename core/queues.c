/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* queues.c - messages numbered in queues: Sends, requests (Reads and atomics) and atomic responses are numbered
 * separately; Writes and Read Responses have no number (RFC 5041 4.3, RFC 5040 4.1, RFC 7306 5.2). */
#include "core/qp_inner.h"

#include <errno.h>

/* --- posting ------------------------------------------------------------------------------------------------- */

static int queues_check(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t length)
{
    (void)qp;
    if (wr->opcode == RDDP_WR_RDMA_READ && wr->num_sge > 1)
        return -EINVAL; /* the sink is sent to the peer as one STag (RFC 5040 5.2) */
    if (wr->opcode == RDDP_WR_SEND_WITH_IMM && length)
        return -EOPNOTSUPP; /* Immediate Data take a receive of their own (RFC 7306 6.3) */
    return wr->send_flags & RDDP_SEND_ORDER || wr->control_length ? -EINVAL : 0;
}

/* --- which receive, which Read? ------------------------------------------------------------------------------ */

/* Finds or claims the receive for this message number. */
static enum fault find_receive(struct qp *qp, const struct seg *seg, bool in_order, struct inbound **in)
{
    uint32_t ahead = seg->msg - qp->arriving.next,
             posted = qp->arriving.claimed - qp->arriving.next + rq_state(qp->rq).posted;

    if (ahead > INT32_MAX || (in_order && ahead))
        return note_seg(qp, seg, FAULT_MSN, seg->msg, qp->arriving.next);
    if (ahead >= posted)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    if (ahead >= qp->attr.window)
        return FAULT_NOT_NOW;
    while (qp->arriving.claimed - qp->arriving.next <= ahead)
        if (!place_claim(qp))
            return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    *in = inbound_at(qp, seg->msg);
    return FAULT_NONE;
}

/* Is this part of the response to `s`, with the L flag exactly at its end? Then *at is its offset in the sink. */
static bool queues_answers(const struct seg *seg, const struct send *s, uint32_t *at)
{
    const struct rddp_sge *sink = sink_of(s);
    uint64_t offset = seg->offset - sink->addr; /* in front of the sink this wraps and becomes too large */

    if (s->opcode != RDDP_WR_RDMA_READ || seg->key != sink->lkey || offset > s->length ||
        seg->length > s->length - offset)
        return false;
    *at = (uint32_t)offset;
    return (seg->length == s->length - offset) == !!(seg->flags & SEG_LAST);
}

/* In order, a response belongs to the oldest Read and continues it (RFC 5040 5.2: answered in order). */
static enum fault find_read(struct qp *qp, const struct seg *seg, struct send **s, uint32_t *at)
{
    if (!reads_out(qp))
        return note_seg(qp, seg, FAULT_UNASKED, 0, 0);
    *s = read_out_at(qp, qp->reads.tail);
    if (!queues_answers(seg, *s, at) || !in_turn(&(*s)->got, (*s)->early, *at))
        return note_seg(qp, seg, FAULT_UNASKED, seg->offset, sink_of(*s)->addr + ranges_prefix(&(*s)->got));
    return FAULT_NONE;
}

/* Out of order, a response may belong to any Read, but only one may match: for two Reads with the same sink only the
 * order tells which is meant. */
static enum fault find_read_early(struct qp *qp, const struct seg *seg, struct send **found, uint32_t *found_at)
{
    uint32_t at;

    *found = NULL;
    for (uint32_t i = qp->reads.tail; i != qp->reads.head; i++) {
        struct send *s = read_out_at(qp, i);

        if (!queues_answers(seg, s, &at))
            continue;
        if (*found)
            return FAULT_NOT_NOW;
        *found = s;
        *found_at = at;
    }
    return *found ? FAULT_NONE : note_seg(qp, seg, FAULT_UNASKED, 0, 0);
}

static bool answers_atomic(const struct seg *seg, const struct send *s)
{
    return is_atomic(s->opcode) && !s->answered && seg->msg == s->number && seg->atomic.id == s->number;
}

/* --- placement ----------------------------------------------------------------------------------------------- */

static enum fault queues_take_send(struct qp *qp, const struct seg *seg, bool in_order)
{
    struct inbound *in = NULL;
    enum fault fault = find_receive(qp, seg, in_order, &in);

    return fault ? fault : place_message(qp, seg, in, in_order);
}

/* Immediate Data take a receive like a Send, but nothing is placed in it. */
static enum fault take_immediate(struct qp *qp, const struct seg *seg, bool in_order)
{
    bool of_send = (uint32_t)seg->immediate == SEG_IMMEDIATE_OF_SEND;
    struct inbound *in = NULL;
    enum fault fault = find_receive(qp, seg, in_order, &in);

    if (!fault)
        fault = place_message(qp, seg, in, in_order);
    if (fault)
        return fault;
    place_elsewhere(in, in->end, in_order && !of_send ? qp->written.length : 0, seg->flags | SEG_WITH_IMM);
    in->op = of_send ? SEG_SEND : SEG_WRITE;
    in->immediate = (uint32_t)(seg->immediate >> 32);
    return FAULT_NONE;
}

static enum fault take_write(struct qp *qp, const struct seg *seg, bool in_order)
{
    (void)in_order;
    return place_write(qp, seg);
}

static enum fault queues_take_read_request(struct qp *qp, const struct seg *seg, bool in_order)
{
    uint32_t ahead = seg->msg - qp->answers.head;

    /* place_read_request() reports numbers beyond the agreed IRD. */
    if (ahead > INT32_MAX || (in_order && ahead && seg->msg - qp->answers.tail < qp->attr.ird))
        return note_seg(qp, seg, FAULT_MSN, seg->msg, qp->answers.head);
    return place_read_request(qp, seg, seg->msg);
}

static enum fault take_read_response(struct qp *qp, const struct seg *seg, bool in_order)
{
    struct send *s = NULL;
    uint32_t at = 0;
    enum fault fault = in_order ? find_read(qp, seg, &s, &at) : find_read_early(qp, seg, &s, &at);

    return fault ? fault : place_answer(qp, seg, s, at, in_order);
}

/* In order, the response belongs to the oldest request: an earlier Read would have been answered first (RFC 7306 7). */
static enum fault take_atomic_response(struct qp *qp, const struct seg *seg, bool in_order)
{
    for (uint32_t i = qp->reads.tail; i != qp->reads.head; i++) {
        if (answers_atomic(seg, read_out_at(qp, i)))
            return place_atomic_answer(qp, seg, read_out_at(qp, i), in_order);
        if (in_order)
            break;
    }
    return note_seg(qp, seg, FAULT_UNASKED, 0, 0);
}

/* --- delivery ------------------------------------------------------------------------------------------------ */

static bool send_is_here(const struct qp *qp, uint32_t msn)
{
    const struct inbound *in = inbound_at(qp, msn);

    return (int32_t)(qp->arriving.claimed - msn) > 0 && in->flags & SEG_LAST && in->end <= qp->rx_pos;
}

static enum fault deliver_send(struct qp *qp)
{
    const struct inbound *in = inbound_at(qp, qp->arriving.next);

    if (!send_is_here(qp, qp->arriving.next))
        return FAULT_NONE;
    if (!ranges_cover(&in->got, in->length))
        return note_message(qp, FAULT_MO, ranges_prefix(&in->got), in->length);
    return deliver_message(qp);
}

/* --- arriving ------------------------------------------------------------------------------------------------ */

static const struct {
    enum fault (*take)(struct qp *qp, const struct seg *seg, bool in_order);
    enum fault (*deliver)(struct qp *qp);
} operation[] = {
    [SEG_SEND] = {queues_take_send, deliver_send},
    [SEG_WRITE] = {take_write, NULL}, /* it is not reported to the target's application (RFC 5040 5.1) */
    [SEG_READ_REQ] = {queues_take_read_request, deliver_read_request},
    [SEG_READ_RESP] = {take_read_response, deliver_read_response},
    [SEG_IMMEDIATE] = {take_immediate, deliver_send},
    [SEG_ATOMIC_REQ] = {queues_take_read_request, deliver_read_request},
    [SEG_ATOMIC_RESP] = {take_atomic_response, deliver_read_response},
};

/* Counts the octets of the last Write, for its immediate data. Responses answer our own requests and may come
 * between. */
static void count_written(struct written *w, const struct seg *seg)
{
    if (seg->op == SEG_READ_RESP || seg->op == SEG_ATOMIC_RESP)
        return;
    w->length = 0;
    if (seg->op != SEG_WRITE)
        return;
    w->octets = seg->length > UINT32_MAX - w->octets ? UINT32_MAX : w->octets + seg->length;
    if (!(seg->flags & SEG_LAST))
        return;
    w->length = w->partial ? 0 : w->octets;
    w->octets = 0;
    w->partial = false;
}

static bool take_whole_send(struct qp *qp, const struct seg *seg, enum fault *fault)
{
    return seg->op == SEG_SEND && seg->msg == qp->arriving.next && whole_take(qp, seg, fault);
}

static enum fault queues_place(struct qp *qp, const struct seg *seg)
{
    bool in_order = seg->begin == qp->rx_pos;
    enum fault fault;

    if (in_order && take_whole_send(qp, seg, &fault))
        return fault;
    fault = operation[seg->op].take(qp, seg, in_order);
    if (fault)
        return fault;
    qp->rx_octets += seg->length;
    if (!in_order) {
        if (seg->op == SEG_WRITE && seg->end > qp->written.early_end)
            qp->written.early_end = seg->end;
        return FAULT_NONE;
    }
    qp->rx_pos = seg->end;
    count_written(&qp->written, seg);
    fault = operation[seg->op].deliver ? operation[seg->op].deliver(qp) : FAULT_NONE;
    return fault == FAULT_NOT_NOW ? FAULT_NONE : fault; /* the message waits for its invalidation */
}

static bool queues_take_whole(struct qp *qp, const struct seg *seg)
{
    enum fault fault;

    if (take_whole_send(qp, seg, &fault))
        return true; /* a fault is the queue pair's, too */
    if (seg->op != SEG_WRITE || !(seg->flags & SEG_LAST) || place_write(qp, seg))
        return false;
    qp->rx_octets += seg->length;
    qp->rx_pos = seg->end;
    count_written(&qp->written, seg);
    return true;
}

static enum fault queues_place_early(struct qp *qp, const struct seg *seg)
{
    struct inbound *in = NULL;
    struct send *s = NULL;
    enum fault fault;
    uint32_t at = 0;

    switch (seg->op) {
    case SEG_SEND:
        fault = find_receive(qp, seg, false, &in);
        return fault ? fault : place_ahead_message(qp, seg, in);
    case SEG_WRITE:
        return place_ahead_write(qp, seg);
    case SEG_READ_RESP:
        fault = find_read_early(qp, seg, &s, &at);
        return fault ? fault : place_ahead_answer(qp, seg, s, at);
    default:
        return FAULT_NONE; /* a Read Request and Immediate Data have no payload */
    }
}

static enum fault queues_locate(struct qp *qp, const struct seg *seg, uint8_t **at)
{
    struct inbound *in = NULL;
    struct send *s = NULL;
    enum fault fault;
    uint32_t offset = 0;

    switch (seg->op) {
    case SEG_SEND:
        fault = find_receive(qp, seg, true, &in);
        return fault ? fault : place_where_message(qp, seg, in, at);
    case SEG_WRITE:
        return place_where_write(qp, seg, at);
    case SEG_READ_RESP:
        fault = find_read(qp, seg, &s, &offset);
        return fault ? fault : place_where_answer(qp, seg, s, offset, at);
    default:
        return FAULT_NONE;
    }
}

static enum fault queues_claim(struct qp *qp, const struct seg *seg)
{
    struct inbound *in = NULL;

    if (seg->op != SEG_SEND && seg->op != SEG_IMMEDIATE)
        return FAULT_NONE;
    return find_receive(qp, seg, true, &in) == FAULT_NO_RECEIVE ? FAULT_NO_RECEIVE : FAULT_NONE;
}

/* --- a gap closed -------------------------------------------------------------------------------------------- */

/* Returns the kind of the due message that comes first in the stream; SEG_OPS: none is due. */
static enum seg_op next_due(const struct qp *qp)
{
    enum seg_op op = SEG_OPS;
    uint64_t first = UINT64_MAX;

    if (send_is_here(qp, qp->arriving.next)) {
        op = SEG_SEND;
        first = inbound_at(qp, qp->arriving.next)->end;
    }
    if (deliver_has_request(qp, qp->answers.head) && peer_read_at(qp, qp->answers.head)->end < first) {
        op = SEG_READ_REQ;
        first = peer_read_at(qp, qp->answers.head)->end;
    }
    if (deliver_has_response(qp, qp->reads.tail) && read_out_at(qp, qp->reads.tail)->rx_end < first)
        op = SEG_READ_RESP;
    return op;
}

/* If a message's successor is wholly before rx_pos and the message itself is not, it can never be delivered. */
static enum fault check_skipped(struct qp *qp)
{
    if (send_is_here(qp, qp->arriving.next + 1))
        return note_message(qp, FAULT_MSN, (uint64_t)qp->arriving.next + 1, qp->arriving.next);
    if (deliver_has_request(qp, qp->answers.head + 1)) {
        qp->note = note_read(peer_read_at(qp, qp->answers.head + 1), qp->answers.head + 1, FAULT_MSN);
        qp->note.got = (uint64_t)qp->answers.head + 1;
        qp->note.want = qp->answers.head;
        return FAULT_MSN;
    }
    if (deliver_has_response(qp, qp->reads.tail + 1))
        return note_response(qp, 0, 0);
    return FAULT_NONE;
}

static enum fault deliver_due(struct qp *qp)
{
    enum fault fault = FAULT_NONE;

    while (!fault) {
        switch (next_due(qp)) {
        case SEG_SEND:
            fault = deliver_send(qp);
            break;
        case SEG_READ_REQ:
            fault = deliver_read_request(qp);
            break;
        case SEG_READ_RESP:
            fault = deliver_read_response(qp);
            break;
        default:
            return check_skipped(qp);
        }
    }
    return fault == FAULT_NOT_NOW ? FAULT_NONE : fault;
}

static enum fault queues_advance(struct qp *qp, uint64_t pos)
{
    /* The octets skipped by the link were placed early, or belong to no message of the queues. */
    qp->written.length = 0;
    qp->written.partial |= qp->written.early_end > qp->rx_pos;
    qp->rx_pos = pos;
    return deliver_due(qp);
}

/* --- leaving ------------------------------------------------------------------------------------------------- */

/* An atomic is identified by the number that its response will have; the same number is its identifier (RFC 7306
 * 5.2). */
static void number(struct qp *qp, struct seg *seg)
{
    switch (seg->op) {
    case SEG_SEND:
    case SEG_IMMEDIATE:
        seg->msg = qp->tx_send_msg;
        qp->tx_send_msg += seg->flags & SEG_LAST ? 1 : 0;
        break;
    case SEG_ATOMIC_REQ:
        seg->atomic.id = sq_at(qp, qp->sq.next - 1)->number = qp->rx_atomic_msg++;
        seg->msg = qp->tx_read_msg++;
        break;
    case SEG_READ_REQ:
        seg->msg = qp->tx_read_msg++;
        break;
    case SEG_ATOMIC_RESP:
        seg->msg = qp->tx_atomic_msg++;
        break;
    default:
        break;
    }
}

static bool queues_emit(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max)
{
    if (!emit_message(qp, e, tagged_max, untagged_max))
        return false;
    number(qp, &e->seg);
    return true;
}

const struct numbering numbering_queues = {
    .check = queues_check,
    .place = queues_place,
    .take_whole = queues_take_whole,
    .place_early = queues_place_early,
    .locate = queues_locate,
    .claim = queues_claim,
    .advance = queues_advance,
    .resume = deliver_due,
    .emit_whole = whole_emit,
    .emit = queues_emit,
};
