/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* held.h - the octets that were received behind a gap: disjoint intervals in memory of the caller. */
#ifndef RDDP_TCP_OOO_QUEUE_H
#define RDDP_TCP_OOO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/packet.h"

struct utcp_held_range {
    uint64_t from, to; /* [from, to) */
    uint64_t kept;     /* octets of it that the user keeps */
};

enum { UTCP_HELD_RECENT = 4 };

struct utcp_held {
    struct utcp_held_range *range; /* sorted; neighbours do not touch */
    uint32_t capacity, first, count;
    uint64_t recent[UTCP_HELD_RECENT]; /* an octet of each of the ranges that changed last, latest first */
    uint64_t kept;                     /* octets that the user keeps, in all ranges */
    uint32_t fresh;                    /* ranges that changed since utcp_held_told() */
};

/* `slots` holds `ranges` entries, which need not be initialised; it stays the caller's and must outlive *h. */
void utcp_held_init(struct utcp_held *h, struct utcp_held_range *slots, uint32_t ranges);

/* Narrows [*from, *to) to its first missing part; returns false if nothing is missing. */
bool utcp_held_missing(const struct utcp_held *h, uint64_t *from, uint64_t *to);

/* Adds [from, to), which must be missing, and of which the user keeps `kept` octets. Returns false, and changes
 * nothing, if there is no room for another range. utcp_held_fits() says in advance whether there is. */
bool utcp_held_add(struct utcp_held *h, uint64_t from, uint64_t to, uint64_t kept);
bool utcp_held_fits(const struct utcp_held *h, uint64_t from, uint64_t to);

/* Removes what is present without a gap from `next` on. Returns its end, and adds its kept octets to *kept. */
uint64_t utcp_held_advance(struct utcp_held *h, uint64_t next, uint64_t *kept);

/* The changes were reported to the peer. */
void utcp_held_told(struct utcp_held *h);

/* Writes SACK blocks in the order of RFC 2018 4, most recent first. `start` is the sequence number of octet 0. Returns
 * their number. */
uint32_t utcp_held_blocks(const struct utcp_held *h, uint32_t start, struct utcp_block *block, uint32_t capacity);

#endif
