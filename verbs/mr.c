/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c - memory regions. Nothing is pinned, so any memory that is mapped can be registered, whatever `ulimit -l` says.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs_object.h"

enum {
    ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND,
    ACCESS_IGNORED = (unsigned)IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE, /* what changes nothing here */
};

/* Returns what rddp calls these rights; errno says what is wrong if it is not 0. */
static unsigned access_of(unsigned access, int *error)
{
    *error = access & ~(unsigned)(ACCESS_KNOWN | ACCESS_IGNORED) ? EOPNOTSUPP : 0;
    return access & ACCESS_KNOWN;
}

static void mr_show(struct verbs_mr *mr, struct ibv_pd *pd, void *addr, size_t length)
{
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.addr = addr;
    mr->ibv.length = length;
    mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = rddp_mr_key(mr->rddp);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    int error;
    unsigned rights = access_of(access, &error);
    struct rddp_pd *rddp = pd_of(pd)->rddp;
    struct verbs_mr *mr;

    if (error) {
        verbs_refuse(error, "ibv_reg_mr: access %#x has flags that the device does not know", access);
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    if (iova == (uintptr_t)addr || access & IBV_ACCESS_ZERO_BASED)
        mr->rddp = rddp_reg_mr(rddp, addr, length, rights);
    else
        mr->rddp = rddp_reg_mr_iova(rddp, addr, length, iova, rights);
    if (!mr->rddp) {
        free(mr);
        verbs_refuse(errno, "ibv_reg_mr: %zu octets at %p, access %#x: %s", length, addr, access,
                     errno == EOPNOTSUPP ? "on demand needs process_vm_writev(), which is not allowed"
                                         : "not mapped for that, or remote writing without local");
        return NULL;
    }
    mr_show(mr, pd, addr, length);
    pd_enter(pd);
    return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

/* struct ibv_sge is rddp's. */
int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t num)
{
    int error =
        -rddp_advise_mr(pd_of(pd)->rddp, (enum rddp_advise_mr_advice)advice, flags, (const struct rddp_sge *)list, num);

    return verbs_refuse(error, "ibv_advise_mr: advice %d, flags %#x, %u entries: the first that fails decides",
                        (int)advice, flags, num);
}

bool mr_is_odp_known(void)
{
    struct rddp_pd *pd = rddp_alloc_pd(verbs_process());
    struct rddp_mr *mr = pd ? rddp_reg_mr(pd, NULL, 0, RDDP_ACCESS_ON_DEMAND) : NULL;

    if (mr)
        rddp_dereg_mr(mr);
    if (pd)
        rddp_dealloc_pd(pd);
    return mr;
}

/* Peers are told no key of it. */
struct ibv_mr *mr_alloc_null(struct ibv_pd *pd)
{
    struct verbs_mr *mr = calloc(1, sizeof(*mr));

    if (mr)
        mr->rddp = rddp_alloc_null_mr(pd_of(pd)->rddp);
    if (!mr || !mr->rddp) {
        free(mr);
        verbs_refuse(ENOMEM, "ibv_alloc_null_mr: it takes 8 GiB of address space");
        return NULL;
    }
    mr_show(mr, pd, NULL, SIZE_MAX);
    mr->ibv.rkey = 0;
    pd_enter(pd);
    return &mr->ibv;
}

/* What libibverbs asks for before it calls a device: memory has an address and octets, and rights are named. */
static bool mr_is_change(int flags, const void *addr, size_t length, int access)
{
    if (flags & ~(int)IBV_REREG_MR_FLAGS_SUPPORTED)
        return false;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
        return false;
    return !access || flags & IBV_REREG_MR_CHANGE_ACCESS;
}

int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct verbs_mr *mr = (struct verbs_mr *)ibv;
    bool is_known = mr_is_change(flags, addr, length, access);
    int error;
    unsigned rights = access_of((unsigned)access, &error);

    if (!(flags & IBV_REREG_MR_CHANGE_PD))
        pd = ibv->pd;
    if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        addr = ibv->addr;
        length = ibv->length;
    }
    if (!is_known || mr->dm_users) /* device memory has no address to give it another by */
        error = EINVAL;
    else if (!error)
        error = -rddp_rereg_mr(mr->rddp, (unsigned)flags, pd_of(pd)->rddp, addr, length, rights);
    if (error) {
        verbs_refuse(error, "ibv_rereg_mr: MR %#x: flags %#x, access %#x, %zu octets at %p", ibv->rkey, (unsigned)flags,
                     (unsigned)access, length, addr);
        return error == EINVAL ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD; /* the region is as it was */
    }
    pd_leave(ibv->pd);
    mr_show(mr, pd, addr, length);
    pd_enter(pd);
    return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
    struct verbs_mr *mr = (struct verbs_mr *)ibv;
    int error = rddp_dereg_mr(mr->rddp);

    if (error)
        return verbs_refuse(-error, "ibv_dereg_mr: MR %#x is in use: a memory window is bound to it", ibv->rkey);
    if (mr->dm_users)
        --*mr->dm_users;
    pd_leave(ibv->pd);
    free(mr);
    return 0;
}
