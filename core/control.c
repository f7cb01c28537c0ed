/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - control data beside a payload: where those of each message are stored, and the receives that Writes and
 * Read Requests take for them (rdma-tcp-segments.txt 3.4). */
#include "core/qp_inner.h"

/* --- receives ------------------------------------------------------------------------------------------------ */

struct inbound *find_inbound(const struct qp *qp, enum seg_op op, uint32_t number)
{
    for (uint32_t i = qp->arriving.next; i != qp->arriving.claimed; i++)
        if (inbound_at(qp, i)->number == number && inbound_at(qp, i)->op == op)
            return inbound_at(qp, i);
    return NULL;
}

enum fault claim_inbound(struct qp *qp, const struct seg *seg, bool in_order, struct inbound **in)
{
    if (!rq_state(qp->rq).posted)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    /* One place is reserved for messages in order, so that the stream cannot block. */
    if (qp->arriving.claimed - qp->arriving.next >= qp->attr.window - !in_order)
        return FAULT_NOT_NOW;
    *in = place_claim(qp);
    if (!*in)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    (*in)->op = (uint8_t)seg->op;
    (*in)->number = seg->msg;
    (*in)->order = seg->order;
    return FAULT_NONE;
}

enum fault control_claim(struct qp *qp, const struct seg *seg, struct inbound **in)
{
    enum fault fault;

    if (!qp->attr.rdma_control || (seg->op != SEG_WRITE && seg->op != SEG_READ_REQ))
        return FAULT_NONE;
    if (qp->sequence->claimed)
        *in = find_inbound(qp, seg->op, seg->msg);
    if (*in || !seg->control_length)
        return FAULT_NONE;
    fault = claim_inbound(qp, seg, true, in);
    qp->sequence->claimed = !fault;
    return fault;
}

/* --- control data -------------------------------------------------------------------------------------------- */

/* Appends a segment's control data as far as there is room. *length counts all of them, up to UINT32_MAX. */
static void append_control(uint8_t *to, uint32_t capacity, uint32_t *length, const struct seg *seg)
{
    if (*length < capacity) {
        uint32_t left = capacity - *length;

        put_bytes(to + *length, seg->control, seg->control_length < left ? seg->control_length : left);
    }
    *length = seg->control_length > UINT32_MAX - *length ? UINT32_MAX : *length + seg->control_length;
}

void control_add(struct inbound *in, const struct seg *seg)
{
    append_control(in->recv.control, in->recv.control_size, &in->control_length, seg);
}

/* Records control data. A Write is processed when its last segment was placed, a Read Request when it was answered. */
static void notice(struct inbound *in, const struct seg *seg)
{
    control_add(in, seg);
    if (!(seg->flags & SEG_LAST))
        return;
    place_elsewhere(in, seg->end, seg->op == SEG_WRITE ? seg->total : seg->read.length,
                    (seg->reserved & SEQUENCE_SOLICITED ? SEG_SOLICITED : 0) | (seg->op == SEG_WRITE ? SEG_LAST : 0));
}

void control_place(struct qp *qp, const struct seg *seg, struct inbound *in)
{
    struct send *s;

    if (in) {
        notice(in, seg);
    } else if (seg->op == SEG_READ_RESP) {
        s = read_out_at(qp, qp->reads.tail);
        append_control(s->response_control, s->response_size, &s->response_length, seg);
    } else if (seg->op != SEG_SEND) {
        qp->control_dropped += seg->control_length;
    }
}

void control_answered(struct qp *qp, uint32_t number)
{
    struct inbound *in = find_inbound(qp, SEG_READ_REQ, number);

    if (in)
        in->flags |= SEG_LAST;
}
