/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool.c - a few free buffers of one size, which save a busy connection most calls of the allocator. */
#include "endpoint/pool.h"

#include <sys/mman.h>

/* The buffers are mapped, not taken from the heap, so that an untouched page of a buffer takes no memory. */
void *pool_get(struct pool *pool)
{
    void *buffer = NULL;

    spin_lock(&pool->spin);
    if (pool->count)
        buffer = pool->free[--pool->count];
    spin_unlock(&pool->spin);
    if (buffer)
        return buffer;
    buffer = mmap(NULL, pool->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return buffer == MAP_FAILED ? NULL : buffer;
}

void pool_put(struct pool *pool, void *buffer)
{
    spin_lock(&pool->spin);
    if (pool->count < POOL_KEEP) {
        pool->free[pool->count++] = buffer;
        buffer = NULL;
    }
    spin_unlock(&pool->spin);
    if (buffer)
        munmap(buffer, pool->size);
}

void pool_fini(struct pool *pool)
{
    while (pool->count)
        munmap(pool->free[--pool->count], pool->size);
}
