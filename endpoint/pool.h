/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.h - a few free buffers of one size, so that a busy connection does not go to the allocator for each. */
#ifndef RDDP_ENDPOINT_POOL_H
#define RDDP_ENDPOINT_POOL_H

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

/* pool_get() returns a buffer of `size` octets, which is the caller's until pool_put(); NULL: no memory. Any thread may
 * call. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *buffer);

/* Frees the buffers in the pool. All buffers must have been put back. */
void pool_fini(struct pool *pool);

#endif
