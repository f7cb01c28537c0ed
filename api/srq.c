/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c - shared receive queues for the application. */
#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"
#include "drive/inherit.h"
#include "api/async.h"

struct rddp_srq *rddp_create_srq(struct rddp_pd *pd, uint32_t max_wr, uint32_t max_sge)
{
    int error = context_enter(pd->context);
    struct rddp_srq *srq;
    void *buffer;

    if (error) {
        errno = -error;
        return NULL;
    }
    if (!max_wr || max_wr > QP_DEPTH_MAX || max_sge > QP_SGE_MAX) {
        errno = EINVAL;
        return NULL;
    }
    srq = calloc(1, sizeof(*srq));
    buffer = calloc(1, rq_size(max_wr, max_sge));
    if (!srq || !buffer) {
        free(srq);
        free(buffer);
        return NULL;
    }
    srq->context = pd->context;
    rq_init(&srq->rq, &pd->pd, max_wr, max_sge, buffer);
    pd->pd.users++;
    srq->rq.low = async_srq_is_low;
    member_add(&pd->context->members, MEMBER_SRQ, &srq->member);
    return srq;
}

int rddp_destroy_srq(struct rddp_srq *srq)
{
    int error = context_enter(srq->context);

    if (error)
        return error;
    if (srq->rq.users)
        return -EBUSY;
    member_remove(&srq->context->members, &srq->member);
    async_leave(&srq->async);
    srq->rq.pd->users--;
    free(srq->rq.ring);
    free(srq);
    return 0;
}

int rddp_set_srq_limit(struct rddp_srq *srq, uint32_t limit)
{
    int error = context_enter(srq->context);

    if (error)
        return error;
    return rq_set_limit(&srq->rq, limit) ? 0 : -EINVAL;
}

int rddp_resize_srq(struct rddp_srq *srq, uint32_t max_wr)
{
    int error = context_enter(srq->context);
    void *buffer, *old;

    if (error)
        return error;
    if (!max_wr || max_wr > QP_DEPTH_MAX)
        return -EINVAL;
    buffer = calloc(1, rq_size(max_wr, srq->rq.sge_max));
    if (!buffer)
        return -ENOMEM;
    old = rq_resize(&srq->rq, max_wr, buffer);
    free(old ? old : buffer);
    return old ? 0 : -EINVAL;
}

int rddp_query_srq(struct rddp_srq *srq, struct rddp_srq_info *info)
{
    int error = context_enter(srq->context);
    struct rq_state state;

    if (error)
        return error;
    state = rq_state(&srq->rq);
    *info = (struct rddp_srq_info){
        .max_wr = state.depth, .max_sge = srq->rq.sge_max, .limit = state.limit, .posted = state.posted};
    return 0;
}

int rddp_post_srq_recv(struct rddp_srq *srq, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr)
{
    int error = context_enter(srq->context);

    while (wr && !error) {
        error = rq_post(&srq->rq, wr);
        if (!error)
            wr = wr->next;
    }
    waiting_announce(srq->context, &srq->rq);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}
