/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c - protection domains and memory regions for the application. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "api/api.h"

enum {
    ACCESS_ALL = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_STABLE |
                 RDDP_ACCESS_VOLATILE | RDDP_ACCESS_ZERO_BASED
};

struct rddp_pd *rddp_alloc_pd(struct rddp_context *context)
{
    struct rddp_pd *pd = calloc(1, sizeof(*pd));

    if (!pd)
        return NULL;
    pd->context = context;
    lock(context);
    context->objects++;
    unlock(context);
    return pd;
}

int rddp_dealloc_pd(struct rddp_pd *pd)
{
    struct rddp_context *context = pd->context;

    lock(context);
    if (pd->pd.users) {
        unlock(context);
        return -EBUSY;
    }
    context->objects--;
    unlock(context);
    free(pd);
    return 0;
}

/* 32 unguessable bits (RFC 5040 8.1.1), fetched from the kernel a few at a time. 0 if there are none to be had. */
static uint32_t draw(struct rddp_context *context)
{
    if (!context->randoms) {
        if (getrandom(context->random, sizeof(context->random), 0) != sizeof(context->random))
            return 0;
        context->randoms = sizeof(context->random) / sizeof(*context->random);
    }
    return context->random[--context->randoms];
}

static int make_room(struct mr_table *mrs)
{
    struct mr_slot *slot;
    uint32_t slots = MR_SLOTS;

    if (mr_table_has_room(mrs))
        return 0;
    while (slots < 4 * (mrs->live + 1))
        slots *= 2;
    slot = calloc(slots, sizeof(*slot));
    if (!slot)
        return -ENOMEM;
    free(mr_table_move(mrs, slot, slots));
    return 0;
}

static int insert(struct rddp_context *context, struct rddp_mr *mr)
{
    int error = make_room(&context->mrs);
    uint32_t key;

    if (error)
        return error;
    do {
        key = draw(context);
        if (!key && !context->randoms)
            return -ENOMEM;
    } while (!mr_insert(&context->mrs, &mr->mr, key));
    mr->mr.pd->users++;
    return 0;
}

static bool is_sane(const void *addr, size_t length, unsigned access)
{
    if (access & ~(unsigned)ACCESS_ALL)
        return false;
    if ((access & RDDP_ACCESS_STABLE) && (access & RDDP_ACCESS_VOLATILE))
        return false;
    if ((access & RDDP_ACCESS_REMOTE_WRITE) && (!(access & RDDP_ACCESS_LOCAL_WRITE) || (access & RDDP_ACCESS_STABLE)))
        return false;
    return length <= UINTPTR_MAX - (uintptr_t)addr && (addr || !length);
}

struct rddp_mr *rddp_reg_mr(struct rddp_pd *pd, void *addr, size_t length, unsigned access)
{
    struct rddp_context *context = pd->context;
    struct rddp_mr *mr;
    int error;

    if (!is_sane(addr, length, access)) {
        errno = EINVAL;
        return NULL;
    }
    if (!memory_allows(addr, length, access)) {
        errno = EFAULT;
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    mr->context = context;
    mr->mr = (struct mr){.pd = &pd->pd, .base = addr, .length = length, .access = access, .valid = true};
    mr->mr.start = access & RDDP_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
    lock(context);
    error = insert(context, mr);
    unlock(context);
    if (error) {
        free(mr);
        errno = -error;
        return NULL;
    }
    return mr;
}

/* What was already cut into segments leaves from a copy: TCP, too, would have sent it from one. */
static void stop_sending(struct rddp_context *context, const struct mr *mr)
{
    for (struct endpoint *endpoint = context->endpoints; endpoint && mr->sending; endpoint = endpoint->next)
        if (endpoint->conn.life.out && out_uses(endpoint->conn.life.out, mr))
            out_own(endpoint->conn.life.out);
}

int rddp_dereg_mr(struct rddp_mr *mr)
{
    struct rddp_context *context = mr->context;

    lock(context);
    stop_sending(context, &mr->mr);
    mr_remove(&context->mrs, &mr->mr);
    mr->mr.pd->users--;
    unlock(context);
    free(mr);
    return 0;
}

uint32_t rddp_mr_key(const struct rddp_mr *mr)
{
    return mr->mr.key;
}

uint64_t rddp_mr_offset(const struct rddp_mr *mr, const void *local)
{
    return mr->mr.start + ((uintptr_t)local - (uintptr_t)mr->mr.base);
}

bool rddp_mr_is_valid(const struct rddp_mr *mr)
{
    bool valid;

    lock(mr->context);
    valid = mr->mr.valid;
    unlock(mr->context);
    return valid;
}
