/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder.h - the headers of units whose payload was placed before their turn, in stream order. */
#ifndef RDDP_CONN_REORDER_H
#define RDDP_CONN_REORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/seg.h"

enum { REORDER_MAX = 1024 }; /* units behind a gap: the packets in flight on a long, fast path */

/* Owned by the host. Because of its size only a link that delivers octets in any order attaches one. */
struct reorder {
    uint32_t first, count;
    uint64_t boundary; /* a unit begins here because the unit before it was complete, placed or not; 0: unknown */
    struct seg unit[REORDER_MAX];
};

void reorder_init(struct reorder *reorder);

/* Returns the unit whose turn comes first, or NULL. */
struct seg *reorder_first(struct reorder *reorder);
void reorder_pop(struct reorder *reorder);

/* Is it known that a unit begins at `pos`? */
bool reorder_is_boundary(const struct reorder *reorder, uint64_t pos);

/* How a unit [begin, end) fits between the recorded ones. */
enum reorder_fit {
    REORDER_FITS,
    REORDER_RECORDED, /* it was recorded before */
    REORDER_NO,       /* the table is full, or it overlaps another unit */
};
enum reorder_fit reorder_fit(const struct reorder *reorder, uint64_t begin, uint64_t end);

/* Records the header of a unit that fits. Pointers in *seg are not kept. */
void reorder_add(struct reorder *reorder, const struct seg *seg);

#endif
