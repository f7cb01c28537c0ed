/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.h - the headers of units whose payload was placed before their turn, in stream order. */
#ifndef RDDP_CONN_EARLY_H
#define RDDP_CONN_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/seg.h"

enum { EARLY_MAX = 1024 }; /* units behind a gap: as many packets as are on the way on a long, fast path */

/* The host's; as large as the table, so only a link that brings octets in any order lends one. */
struct early {
    uint32_t first, count;
    uint64_t boundary; /* here begins a unit: the one before it was whole, whether it could be placed or not; 0: none */
    struct seg unit[EARLY_MAX];
};

void early_init(struct early *early);

/* The unit whose turn is first, or NULL. */
struct seg *early_first(struct early *early);
void early_pop(struct early *early);

/* Is it known that a unit begins at `pos`? */
bool early_is_boundary(const struct early *early, uint64_t pos);

/* Where a unit [begin, end) belongs. */
enum early_fit {
    EARLY_FITS,
    EARLY_THERE, /* it is there already */
    EARLY_NOT,   /* no room, or it overlaps another */
};
enum early_fit early_fit(const struct early *early, uint64_t begin, uint64_t end);

/* Keeps the header of a unit that fits. */
void early_add(struct early *early, const struct seg *seg);

#endif
