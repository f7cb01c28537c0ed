/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw.c - memory windows are bound: every check stands before the first change. */
#include "core/mw.h"

enum {
    WRITES = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_ATOMIC,
    RIGHTS = WRITES | RDDP_ACCESS_REMOTE_READ,
};

/* May a window grant these rights, over this region? Those of the region for its own key do not count. */
static bool are_granted(const struct mr *window, const struct mr *region, unsigned access)
{
    unsigned known = window->kind == MR_WINDOW ? RIGHTS : RIGHTS | RDDP_ACCESS_ZERO_BASED;

    if (access & ~known || !(region->access & RDDP_ACCESS_MW_BIND) || region->access & RDDP_ACCESS_ZERO_BASED)
        return false;
    return !(access & WRITES) ||
           (region->access & (RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_STABLE)) == RDDP_ACCESS_LOCAL_WRITE;
}

static bool has_octets(const struct mr *region, uint64_t at, uint64_t length)
{
    return at >= region->start && at - region->start <= region->length &&
           length <= region->length - (at - region->start);
}

/* Counts one more part of a region. False: it is being deregistered. */
static bool is_joined(struct mr *region)
{
    uint32_t parts = region->parts;

    while (parts != MR_CLOSED)
        if (atomic_compare_exchange_weak(&region->parts, &parts, parts + 1))
            return true;
    return false;
}

/* Returns the region that this window may be bound to, or NULL. */
static struct mr *mw_region(const struct mr_table *table, const struct mr *window, const struct rddp_mw_bind *to)
{
    struct mr *region = mr_find(table, to->lkey);

    if (!region || region->kind != MR_REGION || region->parent || !region->valid || region->pd != window->pd ||
        !are_granted(window, region, to->access) || !has_octets(region, to->addr, to->length))
        return NULL;
    return region;
}

/* The window is invalid, claimed, and out of use: nothing reads what changes here before it is valid again. */
static void mw_open(struct mr *window, struct mr *region, uint64_t user, const struct rddp_mw_bind *to)
{
    window->base = (uint8_t *)((uintptr_t)region->base + (to->addr - region->start));
    window->start = to->access & RDDP_ACCESS_ZERO_BASED ? 0 : to->addr;
    window->length = to->length;
    window->access =
        to->access | (region->access & (RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE | RDDP_ACCESS_ON_DEMAND));
    window->parent = region;
    window->user = window->kind == MR_WINDOW ? 0 : user;
}

/* What is wrong leaves the window as it is: other queue pairs of the domain may use one of type 1. So it becomes
 * invalid only when the region is joined: then that can neither go nor change. */
static enum fault bind_claimed(struct mr_table *table, struct mr *window, uint64_t user, const struct mw_bind *bind,
                               struct mr **joined)
{
    bool is_of_qp = window->kind == MR_WINDOW_OF_QP, is_to_memory = bind->to.length;
    struct mr *region = *joined;

    if (!region && is_to_memory)
        region = mw_region(table, window, &bind->to);
    if (is_to_memory ? !region || (is_of_qp && window->valid) : is_of_qp)
        return FAULT_LOCAL_KEY;
    if (region && !*joined && !is_joined(region))
        return FAULT_NOT_NOW; /* it changes, or goes */
    *joined = region;
    mr_unbind(table, window);
    if (!epoch_is_over(&table->epochs, window->retired) || window->sending)
        return FAULT_NOT_NOW;
    if (region)
        mw_open(window, region, user, &bind->to);
    *joined = NULL; /* the window is that part now */
    window->key = bind->key;
    window->valid = region;
    return FAULT_NONE;
}

enum fault mw_bind(struct mr_table *table, const struct pd *pd, uint64_t user, const struct mw_bind *bind,
                   struct mr **joined)
{
    struct mr *window = mr_find_window(table, bind->key);
    enum fault fault = FAULT_LOCAL_KEY;

    if (window && window->pd == pd) {
        if (!mr_claim(window))
            return FAULT_NOT_NOW;
        fault = bind_claimed(table, window, user, bind, joined);
        mr_release(window);
    }
    if (fault == FAULT_LOCAL_KEY)
        mw_part_from(joined);
    return fault;
}

void mw_part_from(struct mr **joined)
{
    if (*joined)
        (*joined)->parts--;
    *joined = NULL;
}
