/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw.h - memory windows are bound to parts of regions. */
#ifndef RDDP_CORE_MW_H
#define RDDP_CORE_MW_H

#include <rddp/wr.h>

#include "core/mr.h"

/* What a request wants of the window whose key has the upper 24 bits of `key`, which is its key from then on. */
struct mw_bind {
    uint32_t key;
    struct rddp_mw_bind to;
};

/* Binds a window, for a queue pair of the domain `pd` whose number among the users of the table is `user`. The caller
 * is a reader. Returns FAULT_NONE: the window is bound, or, with a length of 0, one of type 1 is not bound any more,
 * and nothing uses what it was bound to. FAULT_NOT_NOW: a reader from before may use the window, which is invalid, or
 * another binds it, or the region changes; the caller leaves the epoch and calls again. FAULT_LOCAL_KEY: there is no
 * such window in the domain, it is of type 2 and bound, or it may not be bound to that. The window is then as it was.
 * *joined is NULL at first, and from call to call the region that waits for the window, which counts it as a part:
 * mw_part_from() gives that up when there is to be no other call. */
enum fault mw_bind(struct mr_table *table, const struct pd *pd, uint64_t user, const struct mw_bind *bind,
                   struct mr **joined);
void mw_part_from(struct mr **joined);

#endif
