/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - how many slots a ring has whose places are counted without a limit. */
#ifndef RDDP_BASE_RING_H
#define RDDP_BASE_RING_H

#include <stdint.h>

/* Returns the slots of a ring for `depth` entries: a power of two. */
static inline uint32_t ring_slots(uint32_t depth)
{
    uint32_t slots = 1;

    while (slots < depth)
        slots *= 2;
    return slots;
}

#endif
