/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.h - the headers of units whose payload was placed before their turn, in stream order. */
#ifndef RDDP_CONN_REORDER_H
#define RDDP_CONN_REORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/seg.h"

enum { EARLY_MAX = 1024 }; /* units behind a gap: the packets in flight on a long, fast path */

/* Owned by the host. Because of its size only a link that delivers octets in any order lends one. */
struct early {
    uint32_t first, count;
    uint64_t boundary; /* a unit begins here because the unit before it was complete, placed or not; 0: unknown */
    struct seg unit[EARLY_MAX];
};

void early_init(struct early *early);

/* Returns the unit whose turn comes first, or NULL. */
struct seg *early_first(struct early *early);
void early_pop(struct early *early);

/* Is it known that a unit begins at `pos`? */
bool early_is_boundary(const struct early *early, uint64_t pos);

/* How a unit [begin, end) fits between the recorded ones. */
enum early_fit {
    EARLY_FITS,
    EARLY_THERE, /* it was recorded before */
    EARLY_NOT,   /* the table is full, or it overlaps another unit */
};
enum early_fit early_fit(const struct early *early, uint64_t begin, uint64_t end);

/* Records the header of a unit that fits. Pointers in *seg are not kept. */
void early_add(struct early *early, const struct seg *seg);

#endif
