/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c - receive queues that queue pairs share. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/context.h"
#include "verbs/verbs_object.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct verbs_srq *srq = calloc(1, sizeof(*srq));

    if (!srq || !(srq->rddp = rddp_create_srq(pd_of(pd)->rddp, attr->attr.max_wr, attr->attr.max_sge))) {
        free(srq);
        verbs_refuse(errno, "ibv_create_srq: max_wr %u of at most %d, max_sge %u of %d", attr->attr.max_wr,
                     VERBS_DEPTH_MAX, attr->attr.max_sge, VERBS_SGE_MAX);
        return NULL;
    }
    rddp_watch_srq(srq->rddp, open_device_of(pd->context)->async, srq);
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = attr->srq_context;
    srq->ibv.pd = pd;
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    pd_enter(pd);
    return &srq->ibv;
}

/* verbs.h itself answers for a basic one: this is asked for XRC and for tag matching. */
struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    (void)context, (void)attr;
    verbs_refuse(EOPNOTSUPP, "ibv_create_srq_ex: the device has neither XRC nor tag matching");
    return NULL;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct verbs_srq *srq = srq_of(ibv);
    int error = rddp_destroy_srq(srq->rddp);

    if (error)
        return verbs_refuse(-error, "ibv_destroy_srq: queue pairs use the SRQ");
    pd_leave(ibv->pd);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    free(srq);
    return 0;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    struct rddp_srq_info info;

    rddp_query_srq(srq_of(srq)->rddp, &info);
    *attr = (struct ibv_srq_attr){.max_wr = info.max_wr, .max_sge = info.max_sge, .srq_limit = info.limit};
    return 0;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    int error = 0;

    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return verbs_refuse(EINVAL, "ibv_modify_srq: mask %#x has unknown bits", (unsigned)mask);
    if (mask & IBV_SRQ_MAX_WR)
        error = rddp_resize_srq(srq_of(srq)->rddp, attr->max_wr);
    if (!error && mask & IBV_SRQ_LIMIT)
        error = rddp_set_srq_limit(srq_of(srq)->rddp, attr->srq_limit);
    return verbs_refuse(-error,
                        "ibv_modify_srq: max_wr %u is out of range or less than what is posted, or limit %u above it",
                        attr->max_wr, attr->srq_limit);
}
