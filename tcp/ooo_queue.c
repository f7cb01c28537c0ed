/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ooo_queue.c - a sorted array of intervals with slack at both ends, because most are added at the end and removed at
 * the start. */
#include "tcp/ooo_queue.h"

#include <assert.h>
#include <string.h>

void utcp_ooo_init(struct utcp_ooo *h, struct utcp_ooo_range *slots, uint32_t ranges)
{
    *h = (struct utcp_ooo){.range = slots, .capacity = ranges};
}

static struct utcp_ooo_range *held_at(const struct utcp_ooo *h, uint32_t i)
{
    return &h->range[h->first + i];
}

/* Returns the first range that ends behind `position`, or `count`. */
static uint32_t held_find(const struct utcp_ooo *h, uint64_t position)
{
    uint32_t low = 0, high = h->count;

    if (high && held_at(h, high - 1)->to <= position)
        return high;
    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (held_at(h, middle)->to > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool utcp_ooo_missing(const struct utcp_ooo *h, uint64_t *from, uint64_t *to)
{
    uint32_t i = held_find(h, *from);

    for (; i < h->count && held_at(h, i)->from <= *from; i++)
        *from = held_at(h, i)->to;
    if (*from >= *to)
        return false;
    if (i < h->count && held_at(h, i)->from < *to)
        *to = held_at(h, i)->from;
    return true;
}

/* The range at `position` changed: it is reported first, once, and the others after it. */
static void held_remember(struct utcp_ooo *h, uint64_t position)
{
    const struct utcp_ooo_range *r = held_at(h, held_find(h, position));
    uint64_t before[UTCP_OOO_RECENT];
    uint32_t n = 1;

    if (!h->unreported || h->recent[0] < r->from || h->recent[0] >= r->to)
        h->unreported++;
    memcpy(before, h->recent, sizeof(before));
    h->recent[0] = position;
    for (uint32_t i = 0; i < UTCP_OOO_RECENT && n < UTCP_OOO_RECENT; i++)
        if (before[i] < r->from || before[i] >= r->to)
            h->recent[n++] = before[i];
}

static void held_drop(struct utcp_ooo *h, uint32_t i)
{
    memmove(held_at(h, i), held_at(h, i + 1), (h->count - i - 1) * sizeof(*h->range));
    h->count--;
}

/* Makes room for a range before index `i`, moving the shorter side. */
static void open_gap(struct utcp_ooo *h, uint32_t i)
{
    if (h->first && i < h->count / 2) {
        memmove(held_at(h, 0) - 1, held_at(h, 0), i * sizeof(*h->range));
        h->first--;
    } else {
        if (h->first + h->count == h->capacity) {
            memmove(h->range, held_at(h, 0), h->count * sizeof(*h->range));
            h->first = 0;
        }
        memmove(held_at(h, i + 1), held_at(h, i), (h->count - i) * sizeof(*h->range));
    }
    h->count++;
}

bool utcp_ooo_fits(const struct utcp_ooo *h, uint64_t from, uint64_t to)
{
    uint32_t i = held_find(h, from);

    return h->count < h->capacity || (i && held_at(h, i - 1)->to == from) ||
           (i < h->count && held_at(h, i)->from == to);
}

bool utcp_ooo_add(struct utcp_ooo *h, uint64_t from, uint64_t to, uint64_t kept)
{
    uint32_t i = held_find(h, from);
    bool before = i && held_at(h, i - 1)->to == from, behind = i < h->count && held_at(h, i)->from == to;

    assert(from < to && (i == h->count || held_at(h, i)->from >= to));
    if (!utcp_ooo_fits(h, from, to))
        return false;
    if (before && behind) {
        held_at(h, i - 1)->to = held_at(h, i)->to;
        held_at(h, i - 1)->kept += kept + held_at(h, i)->kept;
        held_drop(h, i);
    } else if (before) {
        held_at(h, i - 1)->to = to;
        held_at(h, i - 1)->kept += kept;
    } else if (behind) {
        held_at(h, i)->from = from;
        held_at(h, i)->kept += kept;
    } else {
        open_gap(h, i);
        *held_at(h, i) = (struct utcp_ooo_range){from, to, kept};
    }
    h->kept += kept;
    held_remember(h, from);
    return true;
}

void utcp_ooo_keep(struct utcp_ooo *h, uint64_t position, uint64_t octets)
{
    struct utcp_ooo_range *r = held_at(h, held_find(h, position));

    assert(r->from <= position && r->kept + octets <= r->to - r->from);
    r->kept += octets;
    h->kept += octets;
}

uint64_t utcp_ooo_advance(struct utcp_ooo *h, uint64_t next, uint64_t *kept)
{
    while (h->count && held_at(h, 0)->from <= next) {
        if (held_at(h, 0)->to > next)
            next = held_at(h, 0)->to;
        *kept += held_at(h, 0)->kept;
        h->kept -= held_at(h, 0)->kept;
        h->first = --h->count ? h->first + 1 : 0;
    }
    return next;
}

void utcp_ooo_reported(struct utcp_ooo *h)
{
    h->unreported = 0;
}

static bool listed(const struct utcp_block *block, uint32_t blocks, uint32_t from)
{
    while (blocks--)
        if (block[blocks].from == from)
            return true;
    return false;
}

uint32_t utcp_ooo_blocks(const struct utcp_ooo *h, uint32_t start, struct utcp_block *block, uint32_t capacity)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < UTCP_OOO_RECENT && n < capacity; r++) {
        uint32_t i = held_find(h, h->recent[r]);

        if (i == h->count || held_at(h, i)->from > h->recent[r] ||
            listed(block, n, start + (uint32_t)held_at(h, i)->from))
            continue;
        block[n++] = (struct utcp_block){start + (uint32_t)held_at(h, i)->from, start + (uint32_t)held_at(h, i)->to};
    }
    return n;
}
