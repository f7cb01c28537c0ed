/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw.c - memory windows: keys that requests bind to parts of regions. ibv_bind_mw() is a request, too. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs_object.h"

struct verbs_mw {
    struct ibv_mw ibv;
    struct rddp_mw *rddp;
};

struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct verbs_mw *mw = calloc(1, sizeof(*mw));

    if (!mw)
        return NULL;
    mw->rddp = rddp_alloc_mw(pd_of(pd)->rddp, (enum rddp_mw_type)type);
    if (!mw->rddp) {
        free(mw);
        verbs_refuse(errno, "ibv_alloc_mw: type %d, where 1 and 2 are known, or no memory", (int)type);
        return NULL;
    }
    mw->ibv.context = pd->context;
    mw->ibv.pd = pd;
    mw->ibv.type = type;
    mw->ibv.handle = mw->ibv.rkey = rddp_mw_key(mw->rddp);
    pd_enter(pd);
    return &mw->ibv;
}

int mw_dealloc(struct ibv_mw *ibv)
{
    struct verbs_mw *mw = (struct verbs_mw *)ibv;
    int error = -rddp_dealloc_mw(mw->rddp);

    if (error)
        return verbs_refuse(error, "ibv_dealloc_mw: window %#x", ibv->rkey);
    pd_leave(ibv->pd);
    free(mw);
    return 0;
}

/* Without a region nothing is bound any more. What a window may grant is checked when the request is executed. It
 * grants rights to peers alone, so LOCAL_WRITE, which programs give it as they give it to regions, says nothing. */
static void mw_describe(struct rddp_mw_bind *to, const struct ibv_mw_bind_info *from)
{
    *to = (struct rddp_mw_bind){.addr = from->addr,
                                .length = from->mr ? from->length : 0,
                                .lkey = from->mr ? from->mr->lkey : 0,
                                .access = from->mw_access_flags & ~(unsigned)IBV_ACCESS_LOCAL_WRITE};
}

/* Returns 0, or what is wrong with a bind, whatever memory it names. */
static int mw_refuse(const struct ibv_qp *qp, const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
    const struct rddp_pd *pd = pd_of(mw->pd)->rddp;

    if (!info->mr && (info->addr || info->length))
        return verbs_refuse(EINVAL, "ibv_bind_mw: window %#x: an address or a length without an MR", mw->rkey);
    if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
        return verbs_refuse(EINVAL, "ibv_bind_mw: window %#x: one of type 1 cannot be zero-based", mw->rkey);
    if (pd_of(qp->pd)->rddp != pd || (info->mr && pd_of(info->mr->pd)->rddp != pd))
        return verbs_refuse(EPERM, "ibv_bind_mw: window %#x: the QP or the MR is of another PD", mw->rkey);
    return 0;
}

int mw_post(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *what)
{
    struct rddp_mw_bind bind;
    struct rddp_send_wr wr = {.wr_id = what->wr_id,
                              .opcode = RDDP_WR_BIND_MW,
                              .send_flags = what->send_flags & VERBS_SEND_FLAGS,
                              .rkey = ibv_inc_rkey(mw->rkey),
                              .bind = &bind};
    int error = mw_refuse(qp, mw, &what->bind_info);

    if (error)
        return error;
    mw_describe(&bind, &what->bind_info);
    error = post_errno(qp, rddp_post_send(qp_of(qp)->rddp, &wr, NULL));
    if (error)
        return verbs_refuse(error, "ibv_bind_mw: QP %u: its queue is full, or its type, state or a flag is wrong",
                            qp->qp_num);
    mw->rkey = wr.rkey;
    return 0;
}

const struct rddp_mw_bind *mw_translate(struct rddp_mw_bind *to, const struct ibv_mw *mw, uint32_t rkey,
                                        const struct ibv_mw_bind_info *from)
{
    const uint32_t tags = 0xff;

    if (!mw)
        return NULL;
    if (mw->type != IBV_MW_TYPE_2 || (rkey ^ mw->rkey) & ~tags) {
        verbs_refuse(EINVAL, "ibv_post_send: window %#x is not of type 2, or %#x is no key for it", mw->rkey, rkey);
        return NULL;
    }
    mw_describe(to, from);
    return to;
}
