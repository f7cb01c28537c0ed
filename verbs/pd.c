/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pd.c - protection domains, thread domains, and parent domains, which join one of each. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs_object.h"

void pd_enter(struct ibv_pd *pd)
{
    pd_of(pd)->users++;
}

void pd_leave(struct ibv_pd *pd)
{
    pd_of(pd)->users--;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct verbs_pd *pd = calloc(1, sizeof(*pd));

    if (!pd || !(pd->rddp = rddp_alloc_pd(verbs_process()))) {
        free(pd);
        return NULL;
    }
    pd->ibv.context = context;
    return &pd->ibv;
}

struct ibv_pd *pd_alloc_parent(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    struct verbs_pd *pd;

    /* Memory of queues is not exposed, so no allocator of the application can be used for it. */
    if (!attr->pd || attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
        verbs_refuse(attr->pd ? EOPNOTSUPP : EINVAL, "ibv_alloc_parent_domain: it has no PD, or allocators");
        return NULL;
    }
    pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    pd->ibv.context = context;
    pd->parent = pd_of(attr->pd);
    pd->rddp = pd->parent->rddp;
    pd->td = (struct verbs_td *)attr->td;
    pd->parent->users++;
    if (pd->td)
        pd->td->users++;
    return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct verbs_pd *pd = pd_of(ibv);
    int error = pd->users ? -EBUSY : 0;

    if (!error && !pd->parent)
        error = rddp_dealloc_pd(pd->rddp);
    if (error)
        return verbs_refuse(-error, "ibv_dealloc_pd: %u regions, queues or parent domains use the PD",
                            (unsigned)pd->users);
    if (pd->parent)
        pd->parent->users--;
    if (pd->td)
        pd->td->users--;
    free(pd);
    return 0;
}

struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    struct verbs_td *td;

    if (attr->comp_mask) {
        verbs_refuse(EINVAL, "ibv_alloc_td: comp_mask %#x is not 0", attr->comp_mask);
        return NULL;
    }
    td = calloc(1, sizeof(*td));
    if (!td)
        return NULL;
    td->ibv.context = context;
    return &td->ibv;
}

int td_dealloc(struct ibv_td *ibv)
{
    struct verbs_td *td = (struct verbs_td *)ibv;

    if (td->users)
        return verbs_refuse(EBUSY, "ibv_dealloc_td: %u parent domains use it", (unsigned)td->users);
    free(td);
    return 0;
}
