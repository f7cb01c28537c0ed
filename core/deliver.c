/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deliver.c - what is placed is handed over, in the order of the stream: "deliver" as RFC 5041 5.4 has it. */
#include "core/qp_inner.h"

#include <assert.h>

/* --- the next of each kind, if all of it is before rx_pos ---------------------------------------------------- */

static bool send_is_here(const struct qp *qp, uint32_t msn)
{
    const struct inbound *in = inbound_at(qp, msn);

    return qp->rx_claimed - msn - 1 < qp->attr.window && in->flags & SEG_LAST && in->end <= qp->rx_pos;
}

static bool read_request_is_here(const struct qp *qp, uint32_t msn)
{
    const struct peer_read *p = peer_read_at(qp, msn);

    return p->arrived && p->end <= qp->rx_pos;
}

static bool read_response_is_here(const struct qp *qp, uint32_t i)
{
    return i - qp->read_tail < reads_out(qp) && read_out_at(qp, i)->answered &&
           read_out_at(qp, i)->rx_end <= qp->rx_pos;
}

/* --- delivery ------------------------------------------------------------------------------------------------ */

static enum fault note_send(struct qp *qp, enum fault fault, uint64_t got, uint64_t want)
{
    const struct inbound *in = inbound_at(qp, qp->rx_next);
    const struct seg seg = {.op = SEG_SEND, .msg = qp->rx_next, .key = in->invalidate, .length = in->length};

    return note_seg(qp, &seg, fault, got, want);
}

enum fault deliver_send(struct qp *qp)
{
    const struct inbound *in = inbound_at(qp, qp->rx_next);

    if (!send_is_here(qp, qp->rx_next))
        return FAULT_NONE;
    if (!ranges_cover(&in->got, in->length))
        return note_send(qp, FAULT_MO, ranges_prefix(&in->got), in->length);
    return hand_over(qp, RDDP_WC_RECV);
}

enum fault hand_over(struct qp *qp, enum rddp_wc_opcode opcode)
{
    const struct inbound *in = inbound_at(qp, qp->rx_next);
    struct rddp_wc wc = {.opcode = opcode, .qp_num = qp->attr.number};

    /* The region is dead before anybody can hear of it (RFC 5040 5.3). */
    if (in->flags & SEG_INVALIDATE) {
        if (mr_invalidate(qp->attr.mrs, qp->attr.pd, in->invalidate, true))
            return note_send(qp, FAULT_INVALIDATE, 0, 0);
        wc.wc_flags = RDDP_WC_WITH_INV;
        wc.invalidated_rkey = (uint32_t)in->invalidate;
    }
    wc.wr_id = in->recv.wr_id;
    wc.byte_len = in->length;
    wc.control_length = in->control_length;
    qp->rx_next++;
    return cq_push(qp->attr.recv_cq, &wc, in->flags & SEG_SOLICITED, &qp->rq->taken) ? FAULT_NONE : qp_fail_cq(qp);
}

struct fault_note note_read(const struct peer_read *p, uint32_t msn, enum fault fault)
{
    return (struct fault_note){
        .fault = fault,
        .op = SEG_READ_REQ,
        .key = p->read.source_key,
        .offset = p->read.source_offset,
        .length = p->read.length,
        .msg = msn,
        .read = p->read,
    };
}

/* From here on the request waits for emit.c to answer it. */
enum fault deliver_read_request(struct qp *qp)
{
    struct peer_read *p = peer_read_at(qp, qp->answer_head);
    enum fault fault = FAULT_NONE;
    uint8_t *at;

    assert(read_request_is_here(qp, qp->answer_head)); /* it is one segment */
    /* The source of an empty Read is not looked at (RFC 5040 5.2). */
    if (p->read.length)
        fault = mr_check(qp->attr.mrs, qp->attr.pd, p->read.source_key, p->read.source_offset, p->read.length,
                         RDDP_ACCESS_REMOTE_READ, &at, NULL);
    if (fault) {
        qp->note = note_read(p, qp->answer_head, fault);
        return fault;
    }
    p->arrived = false;
    qp->answer_head++;
    return FAULT_NONE;
}

static enum fault note_read_out(struct qp *qp, uint64_t got, uint64_t want)
{
    const struct rddp_sge *sink = sink_of(read_out_at(qp, qp->read_tail));
    const struct seg seg = {.op = SEG_READ_RESP, .key = sink->lkey, .offset = sink->addr, .length = sink->length};

    return note_seg(qp, &seg, FAULT_UNASKED, got, want);
}

enum fault deliver_read_response(struct qp *qp)
{
    struct send *s = read_out_at(qp, qp->read_tail);

    if (!read_response_is_here(qp, qp->read_tail))
        return FAULT_NONE;
    if (!ranges_cover(&s->got, s->length))
        return note_read_out(qp, ranges_prefix(&s->got), s->length);
    s->state = SEND_DONE;
    qp->read_tail++;
    return sq_retire(qp);
}

/* --- a gap closed -------------------------------------------------------------------------------------------- */

/* Which kind of message comes next in the stream among those that are due? SEG_OPS: none is. */
static enum seg_op next_due(const struct qp *qp)
{
    enum seg_op op = SEG_OPS;
    uint64_t first = UINT64_MAX;

    if (send_is_here(qp, qp->rx_next)) {
        op = SEG_SEND;
        first = inbound_at(qp, qp->rx_next)->end;
    }
    if (read_request_is_here(qp, qp->answer_head) && peer_read_at(qp, qp->answer_head)->end < first) {
        op = SEG_READ_REQ;
        first = peer_read_at(qp, qp->answer_head)->end;
    }
    if (read_response_is_here(qp, qp->read_tail) && read_out_at(qp, qp->read_tail)->rx_end < first)
        op = SEG_READ_RESP;
    return op;
}

/* A message whose successor is wholly before rx_pos, while itself it is not, can never be delivered any more. */
static enum fault check_skipped(struct qp *qp)
{
    if (send_is_here(qp, qp->rx_next + 1))
        return note_send(qp, FAULT_MSN, (uint64_t)qp->rx_next + 1, qp->rx_next);
    if (read_request_is_here(qp, qp->answer_head + 1)) {
        qp->note = note_read(peer_read_at(qp, qp->answer_head + 1), qp->answer_head + 1, FAULT_MSN);
        qp->note.got = (uint64_t)qp->answer_head + 1;
        qp->note.want = qp->answer_head;
        return FAULT_MSN;
    }
    if (read_response_is_here(qp, qp->read_tail + 1))
        return note_read_out(qp, 0, 0);
    return FAULT_NONE;
}

enum fault qp_advance(struct qp *qp, uint64_t pos)
{
    enum fault fault = FAULT_NONE;

    if (qp->state == QP_ERROR || pos <= qp->rx_pos)
        return FAULT_NONE;
    qp->rx_pos = pos;
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
    return fault;
}
