/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_kept.c - a list of packets in the order of their positions, and the pool that its places come from. */
#include "roce/rc_kept.h"

#include <string.h>

#include "roce/psn.h"

size_t rc_pool_size(uint32_t cells)
{
    return cells * (sizeof(struct rc_cell) + BTH_MTU_MAX);
}

void rc_pool_init(struct rc_pool *pool, void *buffer, uint32_t cells)
{
    *pool =
        (struct rc_pool){.cell = buffer, .octets = (uint8_t *)buffer + cells * sizeof(struct rc_cell), .cells = cells};
    pool->ends.older = pool->ends.newer = &pool->ends;
}

uint32_t rc_pool_free(const struct rc_pool *pool)
{
    uint32_t count = pool->cells - pool->begun;

    for (const struct rc_cell *cell = pool->free; cell; cell = cell->next)
        count++;
    return count;
}

static void leave_line(struct rc_kept *kept)
{
    if (!kept->older)
        return;
    kept->older->newer = kept->newer;
    kept->newer->older = kept->older;
    kept->older = kept->newer = NULL;
}

static void become_newest(struct rc_kept *kept)
{
    struct rc_kept *ends = &kept->pool->ends;

    leave_line(kept);
    kept->asked = kept->pool->asked;
    kept->older = ends->older;
    kept->newer = ends;
    kept->older->newer = ends->older = kept;
}

static void oldest_gives_way(struct rc_pool *pool, const struct rc_kept *to)
{
    struct rc_kept *oldest = pool->ends.newer == to ? to->newer : pool->ends.newer;

    if (oldest != &pool->ends && pool->asked - oldest->asked > pool->cells)
        rc_kept_clear(oldest);
}

/* The place that was left last comes first: its memory is there, and near. */
static struct rc_cell *take_cell(struct rc_kept *kept)
{
    struct rc_pool *pool = kept->pool;
    struct rc_cell *cell;

    pool->asked++;
    if (!pool->free && pool->begun == pool->cells)
        oldest_gives_way(pool, kept);
    cell = pool->free;
    if (cell)
        pool->free = cell->next;
    else if (pool->begun < pool->cells)
        cell = &pool->cell[pool->begun++];
    return cell;
}

static void leave_cell(struct rc_pool *pool, struct rc_cell *cell)
{
    cell->next = pool->free;
    pool->free = cell;
}

/* Where a packet at this position belongs. NULL: there is one. Most come behind the last. */
static struct rc_cell **rc_kept_place(struct rc_kept *kept, uint64_t position)
{
    struct rc_cell **at = &kept->first;

    if (kept->last && kept->last->position < position)
        return &kept->last->next;
    while (*at && (*at)->position < position)
        at = &(*at)->next;
    return *at && (*at)->position == position ? NULL : at;
}

static uint64_t kept_end(const struct bth *b, uint64_t position, uint32_t mtu)
{
    return position + (b->op == BTH_READ_REQUEST ? psn_packets(b->dma_length, mtu) : 1);
}

static void copy_octets(struct rc_pool *pool, struct rc_cell *cell)
{
    uint8_t *octets = pool->octets + (size_t)(cell - pool->cell) * BTH_MTU_MAX;

    if (cell->bth.length)
        memcpy(octets, cell->bth.data, cell->bth.length);
    cell->bth.data = octets;
}

bool rc_kept_put(struct rc_kept *kept, const struct bth *b, uint64_t position, uint64_t expected, uint32_t mtu)
{
    uint64_t known = kept->last && kept->last->end > expected ? kept->last->end : expected;
    struct rc_cell *cell, **at;

    if (!kept->pool || b->length > mtu || position - expected > RC_KEEP_SPAN ||
        (position > known && position - known > RC_KEEP_HOLE))
        return false;
    at = rc_kept_place(kept, position);
    cell = at ? take_cell(kept) : NULL;
    if (!cell)
        return false;
    *cell = (struct rc_cell){.position = position, .end = kept_end(b, position, mtu), .next = *at, .bth = *b};
    copy_octets(kept->pool, cell);
    *at = cell;
    kept->count++;
    if (!cell->next)
        kept->last = cell;
    become_newest(kept);
    return true;
}

const struct bth *rc_kept_at(struct rc_kept *kept, uint64_t position)
{
    struct rc_cell *cell;

    while ((cell = kept->first) && cell->position < position) {
        kept->first = cell->next;
        kept->count--;
        leave_cell(kept->pool, cell);
    }
    if (!cell) {
        kept->last = NULL;
        leave_line(kept);
    }
    return cell && cell->position == position ? &cell->bth : NULL;
}

void rc_kept_clear(struct rc_kept *kept)
{
    (void)rc_kept_at(kept, UINT64_MAX);
}
