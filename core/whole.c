/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* whole.c - messages that are one segment: a Send straight into its receive, and a Write or Send straight out. */
#include "core/qp_inner.h"

#include "base/once.h"

/* --- arriving ------------------------------------------------------------------------------------------------ */

/* Is it all of its message, and does nothing come with it but its payload? */
static bool is_whole_send(const struct qp *qp, const struct seg *seg)
{
    return (seg->flags & ~(unsigned)(SEG_SOLICITED | SEG_FIRST)) == SEG_LAST && !seg->offset &&
           qp->arriving.claimed == qp->arriving.next && seg->data;
}

/* Where the payload that lies at `from` belongs; NULL if that has to be looked at more closely: place.c knows what is
 * wrong, or how it is placed otherwise. */
static inline uint8_t *piece_at(const struct qp *qp, const struct rddp_sge *sge, uint32_t length, const uint8_t *from)
{
    struct mr *mr;
    uint8_t *at;

    if (mr_check(qp->attr.mrs, qp->rq->pd, sge->lkey, sge->addr, length, RDDP_ACCESS_LOCAL_WRITE, &at, &mr) ||
        mr_is_on_demand(mr) || at == from)
        return NULL;
    return at;
}

/* Copies the payload to several pieces of a receive that has room for it. */
static bool whole_scatter(const struct qp *qp, const struct seg *seg, const struct rddp_sge *sge)
{
    uint32_t n = 0, length[QP_SGE_MAX];
    const uint8_t *from = seg->data;
    uint8_t *at[QP_SGE_MAX];

    for (uint32_t left = seg->length; left; left -= length[n++], sge++) {
        length[n] = left < sge->length ? left : sge->length;
        at[n] = piece_at(qp, sge, length[n], from + seg->length - left);
        if (!at[n])
            return false;
    }
    for (uint32_t i = 0; i < n; from += length[i++])
        copy_once(at[i], from, length[i]);
    return true;
}

/* Copies the payload to the receive. Returns false, and has touched nothing, if that is too short, or if one of its
 * pieces is no simple one. */
static bool whole_place(const struct qp *qp, const struct seg *seg, const struct inbound *in)
{
    const struct rddp_sge *sge = in->recv.sge;
    uint8_t *at;

    if (seg->length > in->recv.capacity)
        return false;
    if (seg->length > sge->length)
        return whole_scatter(qp, seg, sge);
    at = piece_at(qp, sge, seg->length, seg->data);
    if (at)
        copy_once(at, seg->data, seg->length);
    return at;
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

/* --- leaving ------------------------------------------------------------------------------------------------- */

/* Is nothing being cut, is no response due, and is it a request that waits for nothing and fits? */
static bool leaves_whole(const struct qp *qp, const struct send *s, uint32_t tagged_max, uint32_t untagged_max)
{
    if (!s || qp->cut.source != EMIT_NOTHING || qp->answers.tail != qp->answers.head || s->flags & RDDP_SEND_FENCE)
        return false;
    return s->opcode == RDDP_WR_RDMA_WRITE ? s->length <= tagged_max
                                           : s->opcode == RDDP_WR_SEND && s->length <= untagged_max;
}

/* Its payload, if that is in one piece. Returns false if it is not, or may not be sent: emit.c knows why. */
static bool whole_gather(struct qp *qp, struct emit *e, const struct send *s)
{
    e->spans = 0;
    e->may_change = false;
    e->volatile_data = s->flags & RDDP_SEND_INLINE;
    if (!s->length)
        return true;
    if (!e->volatile_data)
        return s->sge->length == s->length &&
               !emit_add_span(qp, e, s->sge->lkey, s->sge->addr, s->length, s->length, 0);
    e->region[0] = NULL;
    e->span[e->spans++] = (struct span){s->inlined, s->length};
    return true;
}

bool whole_emit(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max)
{
    struct send *s = sq_next(qp);

    if (!leaves_whole(qp, s, tagged_max, untagged_max) || !whole_gather(qp, e, s))
        return false;
    e->seg = (struct seg){.op = SEG_SEND, .flags = SEG_LAST, .length = s->length};
    if (s->opcode == RDDP_WR_RDMA_WRITE) {
        e->seg.op = SEG_WRITE;
        e->seg.key = s->remote_key;
        e->seg.offset = s->remote_offset;
    } else {
        e->seg.flags |= s->flags & RDDP_SEND_SOLICITED ? SEG_SOLICITED : 0;
        e->seg.msg = qp->tx_send_msg++;
    }
    qp->tx_octets += s->length;
    s->state = SEND_QUEUED;
    qp->sq.next++;
    qp->cut.last = EMIT_SEND;
    qp->answers.turn = true;
    return true;
}
