/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ranges.h - which octets of a message are there: a few disjoint intervals, kept sorted and merged. */
#ifndef RDDP_BASE_RANGES_H
#define RDDP_BASE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { RANGES_MAX = 4 };

struct range {
    uint32_t from, to; /* [from, to) */
};

struct ranges {
    struct range range[RANGES_MAX];
    uint32_t count;
};

/* Adds [from, to). False, and nothing changes, if that would need more intervals than there are. */
bool ranges_add(struct ranges *r, uint32_t from, uint32_t to);

/* Octets there without a gap from 0. */
uint32_t ranges_prefix(const struct ranges *r);

/* Are all of [0, length) there? True for length 0. */
bool ranges_cover(const struct ranges *r, uint32_t length);

#endif
