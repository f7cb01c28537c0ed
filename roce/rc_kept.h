/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_kept.h - requests that arrived behind a gap, whole and in the order of their positions, until their turn comes.
 *
 * They are copies in a pool, which the queue pairs of a port share: a queue pair owns no memory for what it may lose.
 * The caller gives the memory of the pool, and excludes others. Memory of a pool that was never needed is not
 * touched. */
#ifndef RDDP_ROCE_RC_KEPT_H
#define RDDP_ROCE_RC_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/bth.h"

enum {
    RC_KEEP_SPAN = 256, /* packets are kept up to this position behind the expected one: at most 1 MiB, */
    RC_KEEP_HOLE = 16,  /* if no more than this were lost in front of them, and none was kept behind */
};

/* A packet that is kept, or a free place. */
struct rc_cell {
    uint64_t position, end; /* of its first PSN, and behind its last */
    struct rc_cell *next;
    struct bth bth; /* its data are the octets of this place */
};

/* The packets of a queue pair. */
struct rc_kept {
    struct rc_pool *pool; /* NULL: nothing is kept */
    struct rc_cell *first, *last;
    struct rc_kept *older, *newer; /* neighbours in the pool, while there are any, by when one was kept last */
    uint32_t asked;                /* of the pool, at that time */
    uint32_t count;                /* packets in the list */
};

struct rc_pool {
    struct rc_cell *cell;  /* the caller's */
    uint8_t *octets;       /* BTH_MTU_MAX for each, behind the cells */
    uint32_t cells, begun; /* how many there are, and how many were ever used */
    struct rc_cell *free;
    struct rc_kept ends; /* the newest is the older one of it, the oldest the newer */
    uint32_t asked;      /* counts the packets that a place was wanted for */
};

/* `buffer` has rc_pool_size() octets, is aligned for any type, and stays the caller's, as the pool does where it is. */
size_t rc_pool_size(uint32_t cells);
void rc_pool_init(struct rc_pool *pool, void *buffer, uint32_t cells);

/* Returns how many packets there is place for. */
uint32_t rc_pool_free(const struct rc_pool *pool);

/* Keeps a copy of the packet at this position, behind `expected`. Returns false: it is there already, too far away, too
 * long for the path MTU, or the pool is empty. Those of another queue pair give way if it has kept nothing more while a
 * place was wanted as often as there are places: its peer may be gone. */
bool rc_kept_put(struct rc_kept *kept, const struct bth *b, uint64_t position, uint64_t expected, uint32_t mtu);

/* Forgets those before this position. Returns the packet at it, which stays until then, or NULL. */
const struct bth *rc_kept_at(struct rc_kept *kept, uint64_t position);

/* Forgets all: before the pool or the queue pair goes. */
void rc_kept_clear(struct rc_kept *kept);

#endif
