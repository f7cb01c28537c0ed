/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.h - a few free buffers of one size, so that a busy connection does not go to the allocator for each. */
#ifndef RDDP_API_POOL_H
#define RDDP_API_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/spin.h"

enum { POOL_KEEP = 4 /* free buffers that are kept */ };

struct pool {
    struct spin spin; /* guards `free` and `count` */
    void *free[POOL_KEEP];
    uint32_t count;
    size_t size;
};

/* From any thread. The buffer is the caller's until pool_put(). NULL if there is no memory. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *buffer);

/* Frees the buffers that were put back; by then all of them should have been. */
void pool_fini(struct pool *pool);

#endif
