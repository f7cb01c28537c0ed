/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ooo_queue.h - the octets that were received behind a gap: disjoint intervals in memory of the caller. */
#ifndef RDDP_TCP_OOO_QUEUE_H
#define RDDP_TCP_OOO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/packet.h"

struct utcp_ooo_range {
    uint64_t from, to; /* [from, to) */
    uint64_t kept;     /* octets of it that the user keeps */
};

enum { UTCP_OOO_RECENT = 4 };

struct utcp_ooo {
    struct utcp_ooo_range *range; /* sorted; neighbours do not touch */
    uint32_t capacity, first, count;
    uint64_t recent[UTCP_OOO_RECENT]; /* an octet of each of the ranges that changed last, latest first */
    uint64_t kept;                    /* octets that the user keeps, in all ranges */
    uint32_t unreported;              /* ranges that changed since utcp_ooo_reported() */
};

/* `slots` holds `ranges` entries, which need not be initialised; it stays the caller's and must outlive *h. */
void utcp_ooo_init(struct utcp_ooo *h, struct utcp_ooo_range *slots, uint32_t ranges);

/* Narrows [*from, *to) to its first missing part; returns false if nothing is missing. */
bool utcp_ooo_missing(const struct utcp_ooo *h, uint64_t *from, uint64_t *to);

/* Adds [from, to), which must be missing, and of which the user keeps `kept` octets. Returns false, and changes
 * nothing, if there is no room for another range. utcp_ooo_fits() says in advance whether there is. */
bool utcp_ooo_add(struct utcp_ooo *h, uint64_t from, uint64_t to, uint64_t kept);
bool utcp_ooo_fits(const struct utcp_ooo *h, uint64_t from, uint64_t to);

/* The user keeps `octets` more octets of the range that contains `position`. */
void utcp_ooo_keep(struct utcp_ooo *h, uint64_t position, uint64_t octets);

/* Removes what is present without a gap from `next` on. Returns its end, and adds its kept octets to *kept. */
uint64_t utcp_ooo_advance(struct utcp_ooo *h, uint64_t next, uint64_t *kept);

/* The changes were reported to the peer. */
void utcp_ooo_reported(struct utcp_ooo *h);

/* Writes SACK blocks in the order of RFC 2018 4, most recent first. `start` is the sequence number of octet 0. Returns
 * their number. */
uint32_t utcp_ooo_blocks(const struct utcp_ooo *h, uint32_t start, struct utcp_block *block, uint32_t capacity);

#endif
