/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ids.h - allocates numbers from a bitmap. The search goes round, so that a returned number is not reused at once. The
 * caller serializes all calls. */
#ifndef RDDP_BASE_IDS_H
#define RDDP_BASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct ids {
    uint64_t *taken; /* the bitmap: a bit for each number */
    uint32_t count;  /* numbers are 0 to count - 1; count is a multiple of 64 */
    uint32_t next;   /* where the next search begins */
};

/* `taken` has count / 64 zeroed words and belongs to the caller. The first search begins at `first`. */
void ids_init(struct ids *ids, uint64_t *taken, uint32_t count, uint32_t first);

/* Allocates a number and stores it in *id. Returns false if all are taken. */
bool ids_get(struct ids *ids, uint32_t *id);
/* Allocates this number. Returns false if it is taken. */
bool ids_take(struct ids *ids, uint32_t id);
void ids_put(struct ids *ids, uint32_t id);

#endif
