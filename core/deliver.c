/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deliver.c - hands over what was placed, in stream order: "deliver" in the sense of RFC 5041 5.4. */
#include "core/qp_inner.h"

#include <assert.h>

/* --- is the next message of each kind complete, before rx_pos? ----------------------------------------------- */

bool deliver_has_request(const struct qp *qp, uint32_t msn)
{
    const struct peer_read *p = peer_read_at(qp, msn);

    return p->arrived && p->end <= qp->rx_pos;
}

bool deliver_has_response(const struct qp *qp, uint32_t i)
{
    return i - qp->reads.tail < reads_out(qp) && read_out_at(qp, i)->answered &&
           read_out_at(qp, i)->rx_end <= qp->rx_pos;
}

/* --- delivery ------------------------------------------------------------------------------------------------ */

static const enum rddp_wc_opcode received[] = {
    [SEG_SEND] = RDDP_WC_RECV,
    [SEG_WRITE] = RDDP_WC_RECV_RDMA_WITH_IMM,
    [SEG_READ_REQ] = RDDP_WC_RECV_RDMA_READ,
};

enum fault deliver_message(struct qp *qp)
{
    const struct inbound *in = inbound_at(qp, qp->arriving.next);
    struct rddp_wc wc = {.opcode = received[in->op], .qp_num = qp->attr.number};

    /* The region must be invalid for all, its current users included, before the application is told (RFC 5040 5.3). */
    if (in->flags & SEG_INVALIDATE) {
        if (!qp->invalidating &&
            mr_invalidate_for(qp->attr.mrs, qp->attr.pd, qp->user, in->invalidate, &qp->invalidating))
            return note_message(qp, FAULT_INVALIDATE, 0, 0);
        if (!mr_is_unused(qp->attr.mrs, in->invalidate, qp->invalidating))
            return FAULT_NOT_NOW;
        qp->invalidating = 0;
        wc.wc_flags = RDDP_WC_WITH_INV;
        wc.invalidated_rkey = (uint32_t)in->invalidate;
    }
    if (in->flags & SEG_WITH_IMM) {
        wc.wc_flags |= RDDP_WC_WITH_IMM;
        put32((uint8_t *)&wc.imm_data, in->immediate);
    }
    if (in->flags & SEG_DATAGRAM) {
        wc.wc_flags |= RDDP_WC_GRH | (in->flags & SEG_IPV4 ? RDDP_WC_IPV4 : 0);
        wc.src_qp = in->source;
    }
    wc.wr_id = in->recv.wr_id;
    wc.byte_len = in->length;
    wc.control_length = in->control_length;
    qp->arriving.next++;
    return cq_push(qp->attr.recv_cq, &wc, in->flags & SEG_SOLICITED, &qp->rq->taken) ? FAULT_NONE : qp_fail_cq(qp);
}

/* Makes the request ready to be answered by emit.c. */
enum fault deliver_read_request(struct qp *qp)
{
    struct peer_read *p = peer_read_at(qp, qp->answers.head);
    enum fault fault = FAULT_NONE;
    uint8_t *at;

    assert(deliver_has_request(qp, qp->answers.head)); /* a request is one segment */
    /* The source of an empty Read is not checked (RFC 5040 5.2). */
    if (p->op == SEG_ATOMIC_REQ)
        fault = atomic_check(qp, &p->atomic, &at);
    else if (p->read.length)
        fault =
            check_remote(qp, p->read.source_key, p->read.source_offset, p->read.length, RDDP_ACCESS_REMOTE_READ, &at);
    if (fault) {
        qp->note = note_read(p, qp->answers.head, fault);
        return fault;
    }
    p->arrived = false;
    qp->answers.head++;
    return FAULT_NONE;
}

enum fault deliver_read_response(struct qp *qp)
{
    struct send *s = read_out_at(qp, qp->reads.tail);

    if (!deliver_has_response(qp, qp->reads.tail))
        return FAULT_NONE;
    if (!ranges_cover(&s->got, s->length))
        return note_response(qp, ranges_prefix(&s->got), s->length);
    s->state = SEND_DONE;
    expire_sink(qp, s);
    qp->reads.tail++;
    return sq_retire(qp);
}
