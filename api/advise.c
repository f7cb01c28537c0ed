/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* advise.c - the application says which memory registered on demand will be used soon. */
#include <errno.h>

#include "api/on_demand.h"
#include "drive/inherit.h"
#include "endpoint/objects.h"

/* Finds the octets of an sge. Returns 0, -ENOENT, -EPERM or -EFAULT. Under mrs_lock. */
static int advise_find(const struct rddp_pd *pd, const struct rddp_sge *sge, bool write, uint8_t **at)
{
    const struct mr_table *mrs = &pd->context->mrs;
    const struct mr *mr = mr_find(mrs, sge->lkey);
    unsigned right = write ? RDDP_ACCESS_LOCAL_WRITE : 0;

    if (!mr || mr->kind != MR_REGION || !mr_is_valid(mr) || !mr_is_on_demand(mr))
        return -ENOENT;
    if (mr->pd != &pd->pd || (mr->access & right) != right)
        return -EPERM;
    return mr_check(mrs, &pd->pd, sge->lkey, sge->addr, sge->length, right, at, NULL) ? -EFAULT : 0;
}

/* The memory may go at any time, as with any use of it: what is populated is what is there then. */
static int advise_one(struct rddp_pd *pd, enum rddp_advise_mr_advice advice, const struct rddp_sge *sge)
{
    bool write = advice == RDDP_ADVISE_MR_PREFETCH_WRITE;
    uint8_t *at;
    int error;

    pthread_mutex_lock(&pd->context->mrs_lock);
    error = advise_find(pd, sge, write, &at);
    pthread_mutex_unlock(&pd->context->mrs_lock);
    if (error || advice == RDDP_ADVISE_MR_PREFETCH_NO_FAULT)
        return error;
    return on_demand_populate(at, sge->length, write);
}

int rddp_advise_mr(struct rddp_pd *pd, enum rddp_advise_mr_advice advice, unsigned flags,
                   const struct rddp_sge *sg_list, uint32_t num_sge)
{
    int error = context_enter(pd->context);

    if (error)
        return error;
    if (flags & ~(unsigned)RDDP_ADVISE_MR_FLUSH || !num_sge)
        return -EINVAL;
    if ((unsigned)advice > RDDP_ADVISE_MR_PREFETCH_NO_FAULT)
        return -EOPNOTSUPP;
    for (uint32_t i = 0; i < num_sge; i++) {
        error = advise_one(pd, advice, &sg_list[i]);
        if (error && (error != -EFAULT || flags & RDDP_ADVISE_MR_FLUSH))
            return error;
    }
    return 0;
}
