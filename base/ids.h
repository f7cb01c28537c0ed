/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ids.h - numbers that are given out once at a time: a bit for each, taken in turn, so that one given back rests. */
#ifndef RDDP_BASE_IDS_H
#define RDDP_BASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct ids {
    uint64_t *taken; /* a bit for each number */
    uint32_t count;  /* numbers are 0 to count - 1; a multiple of 64 */
    uint32_t next;   /* where the search for a free one begins */
};

/* `taken` is room for count / 64 zeroed words, the caller's. The first number given out is `first`, if nobody has it.
 */
void ids_init(struct ids *ids, uint64_t *taken, uint32_t count, uint32_t first);

/* The next number that is free, into *id. False: all are taken. */
bool ids_get(struct ids *ids, uint32_t *id);
void ids_put(struct ids *ids, uint32_t id);

#endif
