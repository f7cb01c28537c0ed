/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.c - messages in one sequence: their numbers, the checks between them, and their order (rdma-tcp-segments.txt
 * 3.4, 4). */
#include "core/sequence.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/qp_inner.h"

/* --- memory ------------------------------------------------------------------------------------------------- */

size_t qp_sequence_size(const struct qp *qp, uint32_t window)
{
    return size_align(sizeof(struct sequence)) + qp_widen_size(qp, window);
}

/* --- posting ------------------------------------------------------------------------------------------------- */

static int sequence_check(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t length)
{
    bool is_tagged = wr->opcode == RDDP_WR_RDMA_WRITE || wr->opcode == RDDP_WR_RDMA_READ;

    (void)qp;
    if (wr->opcode == RDDP_WR_RDMA_READ && wr->num_sge > 1)
        return -EINVAL;
    if (wr->opcode == RDDP_WR_RDMA_WRITE_WITH_IMM || wr->opcode == RDDP_WR_SEND_WITH_IMM ||
        wr->opcode == RDDP_WR_SEND_WITH_INV || is_atomic(wr->opcode))
        return -EOPNOTSUPP; /* this wire has control data in place of immediate data; it names no key to invalidate */
    if (wr->control_length > SEQUENCE_CONTROL_MAX || wr->control_length % 4)
        return -EINVAL;
    /* The RDMA Buffer Offset has 32 bits. */
    if (is_tagged && (wr->remote_addr > UINT32_MAX || length > (uint64_t)UINT32_MAX + 1 - wr->remote_addr))
        return -EINVAL;
    return 0;
}

/* By default a Write waits for nothing and everything else keeps its order: "the value in the order field of these
 * messages should not allow reordering unless the client protocol is allowed to" (3.4). */
static void sequence_fill(struct send *s, const struct rddp_send_wr *wr)
{
    s->order = wr->opcode == RDDP_WR_RDMA_WRITE ? SEG_ORDER_ANY : 0;
    if (wr->send_flags & RDDP_SEND_ORDER)
        s->order = wr->order == RDDP_ORDER_ANY     ? SEG_ORDER_ANY
                   : wr->order > SEG_ORDER_ANY - 1 ? SEG_ORDER_ANY - 1
                                                   : (uint16_t)wr->order;
    s->control = wr->control;
    s->control_length = wr->control_length;
    s->response_control = wr->response_control;
    s->response_size = wr->response_control ? wr->response_size : 0;
    s->response_length = 0;
}

/* --- what was processed --------------------------------------------------------------------------------------- */

/* Returns the first message of the peer that is not processed. A Read Request is processed when its response was cut, a
 * Send when it was delivered, a Write when it has arrived. */
static uint32_t oldest_unprocessed(const struct qp *qp)
{
    uint32_t oldest = qp->sequence->order.next;

    if (qp->answers.tail != qp->answers.head && order_before(peer_read_at(qp, qp->answers.tail)->number, oldest))
        oldest = peer_read_at(qp, qp->answers.tail)->number;
    for (uint32_t i = qp->arriving.next; i != qp->arriving.claimed; i++)
        if (order_before(inbound_at(qp, i)->number, oldest))
            oldest = inbound_at(qp, i)->number;
    return oldest;
}

/* --- delivery ------------------------------------------------------------------------------------------------ */

/* A Send is delivered out of order only if both its sender and the application here allow it. The order of a Write or
 * Read applies to its payload, not to its control data. */
static uint16_t send_order(const struct qp *qp, const struct inbound *in)
{
    return qp->attr.out_of_order && in->op == SEG_SEND ? in->order : 0;
}

static bool may_deliver(const struct qp *qp, const struct inbound *in, uint32_t oldest)
{
    uint16_t order = send_order(qp, in);

    return in->flags & SEG_LAST && ranges_cover(&in->got, in->length) && (in->end <= qp->rx_pos || order) &&
           order_ready(oldest, in->number, order);
}

/* Moves the message at place `i` in front of the waiting ones. */
static void overtake(struct qp *qp, uint32_t i)
{
    struct inbound in = *inbound_at(qp, i);

    for (; i != qp->arriving.next; i--)
        *inbound_at(qp, i) = *inbound_at(qp, i - 1);
    *inbound_at(qp, i) = in;
}

static enum fault hand_over_next(struct qp *qp)
{
    const struct inbound *in = inbound_at(qp, qp->arriving.next);

    order_done(&qp->sequence->order, in->number);
    return deliver_message(qp);
}

static enum fault sequence_deliver(struct qp *qp)
{
    uint32_t i = qp->arriving.next, oldest = oldest_unprocessed(qp);
    enum fault fault = FAULT_NONE;

    while (i != qp->arriving.claimed && !fault) {
        if (may_deliver(qp, inbound_at(qp, i), oldest)) {
            overtake(qp, i);
            fault = hand_over_next(qp);
            i = qp->arriving.next;
            oldest = oldest_unprocessed(qp);
        } else {
            i = qp->attr.out_of_order ? i + 1 : qp->arriving.claimed;
        }
    }
    return fault;
}

/* --- consistency with the segments before --------------------------------------------------------------------- */

static enum fault check_write(struct qp *qp, const struct seg *seg)
{
    const struct sequence *seq = qp->sequence;
    uint32_t left = seq->total - seq->octets;

    if (seg->key != seq->key)
        return note_seg(qp, seg, FAULT_SEG_BUFFER, seg->key, seq->key);
    if (seg->total != seq->total)
        return note_seg(qp, seg, FAULT_SEG_TOTAL, seg->total, seq->total);
    if (seg->offset != seq->offset)
        return note_seg(qp, seg, FAULT_SEG_PLACE, seg->offset, seq->offset);
    if (seg->length > left || (seg->flags & SEG_LAST && seg->length != left))
        return note_seg(qp, seg, FAULT_SEG_TOTAL, (uint64_t)seq->octets + seg->length, seq->total);
    return FAULT_NONE;
}

/* "All segments of one message must be sent before the first segment of the next message" for Send, Write and Read
 * Request (4). */
static enum fault check_turn(struct qp *qp, const struct seg *seg)
{
    const struct sequence *seq = qp->sequence;

    if (seq->known && seg->msg != seq->number)
        return note_seg(qp, seg, FAULT_SEG_NUMBER, seg->msg, seq->number);
    if (!(seg->flags & SEG_FIRST) != seq->open)
        return note_seg(qp, seg, FAULT_SEG_BEGIN, 0, 0);
    if (!seq->open)
        return FAULT_NONE;
    if (seg->op != seq->op)
        return note_seg(qp, seg, FAULT_SEG_TYPE, 0, 0);
    if (seg->op == SEG_WRITE)
        return check_write(qp, seg);
    return seg->offset == seq->octets ? FAULT_NONE : note_seg(qp, seg, FAULT_SEG_OFFSET, seg->offset, seq->octets);
}

static void take_turn(struct sequence *seq, const struct seg *seg)
{
    if (!seq->known)
        seq->order.next = seg->msg;
    if (!seq->open)
        seq->octets = 0;
    seq->known = true;
    seq->open = !(seg->flags & SEG_LAST);
    seq->op = seg->op;
    seq->number = seg->msg;
    seq->key = seg->key;
    seq->offset = seg->offset + seg->length;
    seq->total = seg->total;
    seq->octets += seg->length;
    seq->claimed &= seq->open;
    if (!seq->open)
        order_done(&seq->order, seq->number++);
}

/* --- placement ----------------------------------------------------------------------------------------------- */

static enum fault place_send(struct qp *qp, const struct seg *seg, bool in_order)
{
    struct inbound *in = find_inbound(qp, SEG_SEND, seg->msg);
    enum fault fault = in ? FAULT_NONE : claim_inbound(qp, seg, in_order, &in);

    if (!fault)
        fault = place_message(qp, seg, in, in_order);
    if (fault)
        return fault;
    control_add(in, seg);
    if (in->flags & SEG_LAST && seg->reserved & SEQUENCE_SOLICITED)
        in->flags |= SEG_SOLICITED;
    return FAULT_NONE;
}

/* Would this Write overwrite the source of a pending Read that it must wait for? */
static bool overtakes_read(const struct qp *qp, const struct seg *seg)
{
    uint8_t *to, *from;

    if (!seg->length || check_remote(qp, seg->key, seg->offset, seg->length, RDDP_ACCESS_REMOTE_WRITE, &to))
        return false;
    for (uint32_t i = qp->answers.tail; i != qp->answers.head; i++) {
        const struct peer_read *p = peer_read_at(qp, i);

        if (order_ready(p->number, seg->msg, seg->order))
            break; /* it waits neither for this Read nor for later ones */
        if (p->read.length &&
            !check_remote(qp, p->read.source_key, p->read.source_offset, p->read.length, RDDP_ACCESS_REMOTE_READ,
                          &from) &&
            to < from + p->read.length && from < to + seg->length)
            return true;
    }
    return false;
}

/* Is this part of the response to `s`, with E exactly at its end? */
static bool sequence_answers(const struct seg *seg, const struct send *s)
{
    return seg->msg == s->number && seg->offset <= s->length && seg->length <= s->length - seg->offset &&
           (seg->length == s->length - seg->offset) == !!(seg->flags & SEG_LAST);
}

/* In order, a response continues the oldest Read: "Within each of these two groups, all messages must be sent in order"
 * (4). */
static enum fault check_response(struct qp *qp, const struct seg *seg)
{
    const struct send *s;

    if (!reads_out(qp))
        return note_seg(qp, seg, FAULT_UNASKED, 0, 0);
    s = read_out_at(qp, qp->reads.tail);
    if (seg->msg != s->number)
        return note_seg(qp, seg, FAULT_SEG_NUMBER, seg->msg, s->number);
    if (!(seg->flags & SEG_FIRST) != s->begun)
        return note_seg(qp, seg, FAULT_SEG_BEGIN, 0, 0);
    if (s->early ? seg->offset > ranges_prefix(&s->got) : seg->offset != ranges_prefix(&s->got))
        return note_seg(qp, seg, FAULT_SEG_OFFSET, seg->offset, ranges_prefix(&s->got));
    return sequence_answers(seg, s) ? FAULT_NONE
                                    : note_seg(qp, seg, FAULT_UNASKED, seg->offset + seg->length, s->length);
}

static enum fault place_in_turn(struct qp *qp, const struct seg *seg)
{
    switch (seg->op) {
    case SEG_SEND:
        return place_send(qp, seg, true);
    case SEG_WRITE:
        /* Early placement cannot be observed otherwise: a Write is not reported, and Sends behind it wait. */
        if (!order_ready(oldest_unprocessed(qp), seg->msg, seg->order) && overtakes_read(qp, seg))
            return FAULT_NOT_NOW;
        return place_write(qp, seg);
    case SEG_READ_REQ:
        return place_read_request(qp, seg, qp->answers.head);
    default:
        return place_answer(qp, seg, read_out_at(qp, qp->reads.tail), (uint32_t)seg->offset, true);
    }
}

/* --- behind a gap -------------------------------------------------------------------------------------------- */

static bool is_ready(const struct qp *qp, const struct seg *seg)
{
    const struct sequence *seq = qp->sequence;

    return seq->known && seg->msg - seq->number < ORDER_WINDOW &&
           order_ready(oldest_unprocessed(qp), seg->msg, seg->order);
}

/* A Send is placed early only if it may be delivered out of order and its control data are in order among themselves.
 * The control data of other messages always wait for their turn. */
static enum fault place_send_early(struct qp *qp, const struct seg *seg)
{
    if (!qp->attr.out_of_order || !seg->order || (seg->control_length && !(seg->flags & SEG_FIRST)) ||
        !is_ready(qp, seg))
        return FAULT_NOT_NOW;
    return place_send(qp, seg, false);
}

static enum fault place_write_early(struct qp *qp, const struct seg *seg)
{
    enum fault fault = is_ready(qp, seg) ? place_write(qp, seg) : FAULT_NOT_NOW;

    if (!fault && seg->flags & SEG_FIRST && seg->flags & SEG_LAST)
        order_done(&qp->sequence->order, seg->msg);
    return fault;
}

static enum fault place_response_early(struct qp *qp, const struct seg *seg)
{
    for (uint32_t i = qp->reads.tail; i != qp->reads.head; i++)
        if (sequence_answers(seg, read_out_at(qp, i)))
            return place_ahead_answer(qp, seg, read_out_at(qp, i), (uint32_t)seg->offset);
    return FAULT_NOT_NOW;
}

/* Errors are found when the segment has its turn; until then it may become valid by the missing ones. A Read Request
 * waits, because its response could not overtake the others (4). */
static enum fault sequence_place_early(struct qp *qp, const struct seg *seg)
{
    enum fault fault = FAULT_NOT_NOW;

    if (!seg->data)
        return FAULT_NOT_NOW;
    if (seg->op == SEG_SEND)
        fault = place_send_early(qp, seg);
    else if (seg->op == SEG_WRITE)
        fault = place_write_early(qp, seg);
    else if (seg->op == SEG_READ_RESP)
        fault = place_response_early(qp, seg);
    if (!fault && seg->op == SEG_SEND)
        sequence_deliver(qp); /* a full CQ fails the queue pair, which the caller notices */
    return fault;
}

/* --- arriving ------------------------------------------------------------------------------------------------ */

static enum fault sequence_place(struct qp *qp, const struct seg *seg)
{
    struct sequence *seq = qp->sequence;
    struct inbound *in = NULL;
    enum fault fault;

    if (seg->begin != qp->rx_pos)
        return FAULT_NOT_NOW;
    fault = seg->op == SEG_READ_RESP ? check_response(qp, seg) : check_turn(qp, seg);
    if (!fault)
        fault = control_claim(qp, seg, &in);
    /* Of a response only the payload was placed early. */
    if (!fault && (!(seg->flags & SEG_PLACED) || seg->op == SEG_READ_RESP))
        fault = place_in_turn(qp, seg);
    if (fault)
        return fault;
    qp->rx_octets += seg->length;
    qp->rx_pos = seg->end;
    control_place(qp, seg, in);
    if (seg->op == SEG_READ_RESP) {
        read_out_at(qp, qp->reads.tail)->begun = true;
        return deliver_read_response(qp);
    }
    take_turn(seq, seg);
    if (seg->op == SEG_READ_REQ)
        return deliver_read_request(qp);
    return seg->op == SEG_SEND || in ? sequence_deliver(qp) : FAULT_NONE;
}

/* --- leaving ------------------------------------------------------------------------------------------------- */

static void number_request(struct sequence *seq, struct seg *seg, struct send *s)
{
    seg->msg = s->number = seq->tx_number;
    seg->order = s->order;
    seg->total = s->length;
    if (s->flags & RDDP_SEND_SOLICITED && (seg->op == SEG_SEND || s->control_length))
        seg->reserved = SEQUENCE_SOLICITED;
    if (seg->flags & SEG_FIRST) {
        seg->control = s->control;
        seg->control_length = s->control_length;
    }
    if (seg->flags & SEG_LAST)
        seq->tx_number++;
}

/* A response carries its request's number, and the offset in the message, not in the sink (3.1). */
static void number_response(struct seg *seg, uint32_t number, uint32_t offset)
{
    seg->msg = number;
    seg->order = SEG_ORDER_ANY;
    seg->key = 0;
    seg->offset = offset;
}

/* Returns the octets left for payload beside `control` octets of control data. */
static uint32_t emit_payload_max(uint32_t max, uint32_t control)
{
    return control < max ? max - control : max;
}

static bool sequence_emit(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max)
{
    struct send *s = sq_at(qp, qp->sq.next);
    uint32_t offset = qp->cut.offset, number = peer_read_at(qp, qp->answers.tail)->number;
    bool is_response = qp->cut.source == EMIT_RESPONSE;
    uint32_t control = is_response || offset ? 0 : s->control_length;

    if (!emit_message(qp, e, emit_payload_max(tagged_max, control), emit_payload_max(untagged_max, control)))
        return false;
    e->seg.flags |= offset ? 0u : SEG_FIRST;
    if (!is_response) {
        number_request(qp->sequence, &e->seg, s);
        return true;
    }
    number_response(&e->seg, number, offset);
    /* The Read is processed: its last payload is being sent. */
    if (e->seg.flags & SEG_LAST) {
        control_answered(qp, number);
        sequence_deliver(qp);
    }
    return true;
}

/* --- the operations ------------------------------------------------------------------------------------------- */

/* The skipped octets (a Terminate, or part of the start-up) are no message of the sequence. */
static enum fault sequence_advance(struct qp *qp, uint64_t pos)
{
    qp->rx_pos = pos;
    return sequence_deliver(qp);
}

const struct numbering numbering_sequence = {
    .check = sequence_check,
    .fill = sequence_fill,
    .place = sequence_place,
    .place_early = sequence_place_early,
    .advance = sequence_advance,
    .emit = sequence_emit,
};

void qp_sequence(struct qp *qp, uint32_t first, uint32_t window, void *buffer)
{
    assert(!qp->sequence && !qp->sq.head && window > 1);
    qp->numbering = &numbering_sequence;
    qp->sequence = buffer;
    qp->sequence->tx_number = first;
    qp_widen(qp, window, (uint8_t *)buffer + size_align(sizeof(struct sequence)));
}
