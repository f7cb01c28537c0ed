/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram.c - messages of one packet from anybody to anybody: none waits for another. */
#include "core/datagram.h"

#include <errno.h>

#include "core/qp_inner.h"

/* --- posting ------------------------------------------------------------------------------------------------- */

static int datagrams_check(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t length)
{
    if (wr->opcode != RDDP_WR_SEND && wr->opcode != RDDP_WR_SEND_WITH_IMM)
        return -EOPNOTSUPP;
    if (wr->send_flags & RDDP_SEND_ORDER || wr->control_length)
        return -EINVAL;
    return wr->ah && wr->ah->pd == qp->attr.pd && length <= wr->ah->mtu ? 0 : -EINVAL;
}

static void datagrams_fill(struct send *s, const struct rddp_send_wr *wr)
{
    *s->to = (struct destination){.path = *wr->ah, .qpn = wr->remote_qpn, .q_key = wr->remote_qkey};
}

void qp_use_datagrams(struct qp *qp)
{
    qp->numbering = &numbering_datagrams;
}

/* --- leaving ------------------------------------------------------------------------------------------------- */

const struct destination *qp_destination(const struct qp *qp, uint32_t at)
{
    return sq_at(qp, at)->to;
}

/* --- arriving ------------------------------------------------------------------------------------------------ */

static enum fault datagrams_place(struct qp *qp, const struct seg *seg)
{
    struct inbound *in = place_claim(qp);
    enum fault fault;

    if (!in)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    fault = place_datagram(qp, seg, in);
    if (fault)
        return fault;
    in->source = seg->source;
    in->immediate = (uint32_t)seg->immediate;
    qp->rx_octets += seg->length;
    qp->rx_pos = seg->end;
    return deliver_message(qp);
}

static enum fault datagrams_place_early(struct qp *qp, const struct seg *seg)
{
    (void)qp;
    (void)seg;
    return FAULT_NOT_NOW;
}

static enum fault datagrams_advance(struct qp *qp, uint64_t pos)
{
    qp->rx_pos = pos;
    return FAULT_NONE;
}

const struct numbering numbering_datagrams = {
    .check = datagrams_check,
    .fill = datagrams_fill,
    .place = datagrams_place,
    .place_early = datagrams_place_early,
    .advance = datagrams_advance,
};
