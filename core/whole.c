/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* whole.c - a Send that is one segment, straight into its receive. */
#include "core/qp_inner.h"

#include "base/once.h"

/* Is it the next message, all of it, and does nothing come with it but its payload? */
static bool is_whole_send(const struct qp *qp, const struct seg *seg)
{
    return (seg->flags & ~(unsigned)SEG_SOLICITED) == SEG_LAST && !seg->offset && seg->msg == qp->arriving.next &&
           qp->arriving.claimed == qp->arriving.next && seg->data;
}

/* Copies the payload to the first piece of the receive. Returns false, and has touched nothing, if it has to be looked
 * at more closely: place.c knows what is wrong, or how it is placed otherwise. */
static bool whole_place(const struct qp *qp, const struct seg *seg, const struct inbound *in)
{
    const struct rddp_sge *sge = in->recv.sge;
    struct mr *mr;
    uint8_t *at;

    if (!in->recv.sges || seg->length > sge->length ||
        mr_check(qp->attr.mrs, qp->rq->pd, sge->lkey, sge->addr, seg->length, RDDP_ACCESS_LOCAL_WRITE, &at, &mr) ||
        mr_is_on_demand(mr) || at == seg->data)
        return false;
    copy_once(at, seg->data, seg->length);
    return true;
}

bool whole_take(struct qp *qp, const struct seg *seg, enum fault *fault)
{
    struct rddp_wc wc = {.opcode = RDDP_WC_RECV, .byte_len = seg->length, .qp_num = qp->attr.number};
    const struct inbound *in;

    if (!is_whole_send(qp, seg) || !(in = place_claim(qp)) || (seg->length && !whole_place(qp, seg, in)))
        return false;
    qp->rx_octets += seg->length;
    qp->rx_pos = seg->end;
    qp->written.length = 0;
    qp->arriving.next++;
    wc.wr_id = in->recv.wr_id;
    *fault = cq_push(qp->attr.recv_cq, &wc, seg->flags & SEG_SOLICITED, &qp->rq->taken) ? FAULT_NONE : qp_fail_cq(qp);
    return true;
}
