/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spin.h - decides whether to poll once more before sleeping. Polling helps where each end has a processor of its own.
 * It harms where other threads wait for this processor, or where the answer takes longer in any case. Both are
 * detected, and polling is then suspended. */
#ifndef RDDP_RPC_SPIN_H
#define RDDP_RPC_SPIN_H

#include <stdbool.h>

#include "rpc/clock.h"

enum {
    SPIN_GAP_US = 150, /* a longer gap between two polls means that another thread ran: suspend for SPIN_BUSY_US */
    SPIN_BUSY_US = 1000000,
    SPIN_MISSES = 4, /* polling in vain this often in a row: suspend for SPIN_LATE_US */
    SPIN_LATE_US = 20000,
};

struct rpc_spin {
    uint64_t until_us, last_us, again_us;
    unsigned misses;
};

static inline void spin_begin(struct rpc_spin *spin, uint32_t spin_us)
{
    spin->last_us = clock_us();
    spin->until_us = spin->last_us < spin->again_us ? 0 : spin->last_us + spin_us;
}

/* Returns false when it is time to sleep. */
static inline bool spin_goes_on(struct rpc_spin *spin)
{
    uint64_t now = clock_us(), gap = now - spin->last_us;

    spin->last_us = now;
    if (now < spin->until_us && gap < SPIN_GAP_US)
        return true;
    if (spin->until_us && gap >= SPIN_GAP_US) {
        spin->again_us = now + SPIN_BUSY_US;
    } else if (spin->until_us && ++spin->misses == SPIN_MISSES) {
        spin->again_us = now + SPIN_LATE_US;
        spin->misses = 0;
    }
    spin->until_us = 0;
    return false;
}

/* Polling found something. */
static inline void spin_hit(struct rpc_spin *spin)
{
    if (spin->until_us)
        spin->misses = 0;
}

#endif
