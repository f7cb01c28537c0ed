/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ranges.h - which octets of a message have arrived: up to RANGES_MAX disjoint intervals, sorted and merged. */
#ifndef RDDP_BASE_RANGES_H
#define RDDP_BASE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { RANGES_MAX = 4 };

struct range {
    uint32_t from, to; /* [from, to) */
};

struct ranges {
    uint32_t count;
    struct range range[RANGES_MAX];
};

/* Adds [from, to). Returns false and changes nothing if that would need more than RANGES_MAX intervals. */
bool ranges_add(struct ranges *r, uint32_t from, uint32_t to);

/* The number of octets from 0 on without a gap. */
uint32_t ranges_prefix(const struct ranges *r);

/* Whether all of [0, length) is there. True for length 0. */
bool ranges_cover(const struct ranges *r, uint32_t length);

#endif
