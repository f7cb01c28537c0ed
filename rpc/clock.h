/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.h - the only clock of rpc/: CLOCK_MONOTONIC. */
#ifndef RDDP_RPC_CLOCK_H
#define RDDP_RPC_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline uint64_t clock_ms(void)
{
    return clock_us() / 1000;
}

#endif
