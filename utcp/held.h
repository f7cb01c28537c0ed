/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* held.h - which octets behind a hole of the incoming stream are there: disjoint intervals in room that is given. */
#ifndef RDDP_UTCP_HELD_H
#define RDDP_UTCP_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "utcp/packet.h"

struct utcp_held_range {
    uint64_t from, to; /* [from, to) */
    uint64_t kept;     /* octets of it that take room */
};

enum { UTCP_HELD_RECENT = 4 };

struct utcp_held {
    struct utcp_held_range *range; /* sorted, apart from each other */
    uint32_t capacity, first, count;
    uint64_t recent[UTCP_HELD_RECENT]; /* an octet of each of the ranges that changed last, the latest first */
    uint64_t kept;                     /* octets that take room, of all ranges */
    uint32_t fresh;                    /* ranges that changed since utcp_held_told() */
};

/* The room need not hold anything yet. */
void utcp_held_init(struct utcp_held *h, struct utcp_held_range *room, uint32_t ranges);

/* The first part of [*from, *to) that is not there; false if all is. */
bool utcp_held_missing(const struct utcp_held *h, uint64_t *from, uint64_t *to);

/* Adds [from, to), which must be missing. False, and nothing changes, if there is no room for one more range. */
bool utcp_held_add(struct utcp_held *h, uint64_t from, uint64_t to, uint64_t kept);
bool utcp_held_fits(const struct utcp_held *h, uint64_t from, uint64_t to);

/* Takes out what is there without a gap from `next` on. Returns where that ends, and adds what it kept to *kept. */
uint64_t utcp_held_advance(struct utcp_held *h, uint64_t next, uint64_t *kept);

/* Somebody has been told about what changed. */
void utcp_held_told(struct utcp_held *h);

/* SACK blocks as RFC 2018 4 wants them, the most recent first; `start` is the sequence number of octet 0. */
uint32_t utcp_held_blocks(const struct utcp_held *h, uint32_t start, struct utcp_block *block, uint32_t capacity);

#endif
