/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.c - device memory: memory of this process that no pointer leads to, since there is no device with its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs_object.h"

enum {
    DM_ALIGN_LOG_MIN = 6,  /* a cache line, which is enough for atomics */
    DM_ALIGN_LOG_MAX = 21, /* a huge page */
    DM_WORD = 4,           /* octets of what is copied at a time, as by adapters */
    DM_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                IBV_ACCESS_ZERO_BASED,
};

struct verbs_dm {
    struct ibv_dm ibv;
    uint8_t *memory;
    size_t length;
    atomic_uint users; /* regions */
};

static _Atomic size_t dm_taken; /* octets of the device memory of this process */

static bool dm_take(size_t length)
{
    size_t taken = dm_taken;

    do {
        if (length > VERBS_DM_OCTETS - taken)
            return false;
    } while (!atomic_compare_exchange_weak(&dm_taken, &taken, taken + length));
    return true;
}

static bool dm_has(const struct verbs_dm *dm, uint64_t offset, size_t length)
{
    return offset <= dm->length && length <= dm->length - offset;
}

/* Whole words, as adapters want it: a program that runs here runs there, too. */
static int dm_refuse(const struct verbs_dm *dm, const char *call, uint64_t offset, size_t length)
{
    if (dm_has(dm, offset, length) && !((offset | length) % DM_WORD))
        return 0;
    return verbs_refuse(EINVAL, "%s: %zu octets at %#llx, of %zu; both are to be multiples of %d", call, length,
                        (unsigned long long)offset, dm->length, DM_WORD);
}

static int dm_write(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
    struct verbs_dm *dm = (struct verbs_dm *)ibv;
    int error = dm_refuse(dm, "ibv_memcpy_to_dm", offset, length);

    if (!error)
        memcpy(dm->memory + offset, from, length);
    return error;
}

static int dm_read(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
    const struct verbs_dm *dm = (struct verbs_dm *)ibv;
    int error = dm_refuse(dm, "ibv_memcpy_from_dm", offset, length);

    if (!error)
        memcpy(to, dm->memory + offset, length);
    return error;
}

static struct verbs_dm *dm_new(size_t length, uint32_t align_log)
{
    size_t align = (size_t)1 << (align_log < DM_ALIGN_LOG_MIN ? DM_ALIGN_LOG_MIN : align_log);
    struct verbs_dm *dm = calloc(1, sizeof(*dm));

    if (!dm)
        return NULL;
    dm->memory = aligned_alloc(align, (length + align - 1) & ~(align - 1));
    if (!dm->memory) {
        free(dm);
        return NULL;
    }
    memset(dm->memory, 0, length);
    dm->length = length;
    return dm;
}

static void dm_discard(struct verbs_dm *dm)
{
    if (dm)
        free(dm->memory);
    free(dm);
}

struct ibv_dm *dm_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    struct verbs_dm *dm;

    if (attr->comp_mask || !attr->length || attr->length > VERBS_DM_OCTETS || attr->log_align_req > DM_ALIGN_LOG_MAX) {
        verbs_refuse(EINVAL, "ibv_alloc_dm: %zu octets of 1 to %d, log_align_req %u of at most %d, comp_mask %#x",
                     attr->length, VERBS_DM_OCTETS, attr->log_align_req, DM_ALIGN_LOG_MAX, attr->comp_mask);
        return NULL;
    }
    dm = dm_new(attr->length, attr->log_align_req);
    if (!dm || !dm_take(attr->length)) {
        dm_discard(dm);
        verbs_refuse(ENOMEM, "ibv_alloc_dm: %zu octets, where %zu of %d are in use", attr->length, (size_t)dm_taken,
                     VERBS_DM_OCTETS);
        return NULL;
    }
    dm->ibv.context = context;
    dm->ibv.memcpy_to_dm = dm_write;
    dm->ibv.memcpy_from_dm = dm_read;
    return &dm->ibv;
}

int dm_free(struct ibv_dm *ibv)
{
    struct verbs_dm *dm = (struct verbs_dm *)ibv;

    if (dm->users)
        return verbs_refuse(EBUSY, "ibv_free_dm: %u regions use it", (unsigned)dm->users);
    dm_taken -= dm->length;
    dm_discard(dm);
    return 0;
}

struct ibv_mr *dm_reg_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length, unsigned access)
{
    struct verbs_dm *dm = (struct verbs_dm *)ibv;
    struct ibv_mr *mr;

    if (access & ~(unsigned)(DM_ACCESS | IBV_ACCESS_OPTIONAL_RANGE) || !(access & IBV_ACCESS_ZERO_BASED) ||
        !dm_has(dm, offset, length)) {
        verbs_refuse(EINVAL, "ibv_reg_dm_mr: %zu octets at %#llx of %zu, access %#x, which must be zero-based", length,
                     (unsigned long long)offset, dm->length, access);
        return NULL;
    }
    mr = ibv_reg_mr_iova2(pd, dm->memory + offset, length, 0, access);
    if (!mr)
        return NULL;
    mr->addr = NULL;
    ((struct verbs_mr *)mr)->dm_users = &dm->users; /* counted down by ibv_dereg_mr() */
    dm->users++;
    return mr;
}
