/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.h - decides whether to poll once more before sleeping. Polling helps where each end has a processor of its own.
 * It harms where other threads wait for this processor, or where the answer takes longer in any case. Both are
 * detected, and polling is then suspended. */
#ifndef RDDP_RPC_POLL_H
#define RDDP_RPC_POLL_H

#include <stdbool.h>

#include "rpc/clock.h"

enum {
    POLL_GAP_US = 150, /* a longer gap between two polls means that another thread ran: suspend for POLL_BUSY_US */
    POLL_BUSY_US = 1000000,
    POLL_MISSES = 4, /* polling in vain this often in a row: suspend for POLL_LATE_US */
    POLL_LATE_US = 20000,
};

struct rpc_poll {
    uint64_t until_us, last_us, again_us;
    unsigned misses;
};

static inline void poll_begin(struct rpc_poll *polling, uint32_t spin_us)
{
    polling->last_us = clock_us();
    polling->until_us = polling->last_us < polling->again_us ? 0 : polling->last_us + spin_us;
}

/* Returns false when it is time to sleep. */
static inline bool poll_goes_on(struct rpc_poll *polling)
{
    uint64_t now = clock_us(), gap = now - polling->last_us;

    polling->last_us = now;
    if (now < polling->until_us && gap < POLL_GAP_US)
        return true;
    if (polling->until_us && gap >= POLL_GAP_US) {
        polling->again_us = now + POLL_BUSY_US;
    } else if (polling->until_us && ++polling->misses == POLL_MISSES) {
        polling->again_us = now + POLL_LATE_US;
        polling->misses = 0;
    }
    polling->until_us = 0;
    return false;
}

/* Polling found something. */
static inline void poll_hit(struct rpc_poll *polling)
{
    if (polling->until_us)
        polling->misses = 0;
}

#endif
