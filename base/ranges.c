/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ranges.c - adds an interval, merges it with those that it touches, and keeps the others sorted and disjoint. */
#include "base/ranges.h"

#include <assert.h>
#include <string.h>

bool ranges_add(struct ranges *r, uint32_t from, uint32_t to)
{
    uint32_t first = 0, after;

    assert(from <= to);
    if (from == to)
        return true;
    while (first < r->count && r->range[first].to < from)
        first++;
    /* [first, after) are the intervals that the new one overlaps or touches. */
    for (after = first; after < r->count && r->range[after].from <= to; after++) {
        from = r->range[after].from < from ? r->range[after].from : from;
        to = r->range[after].to > to ? r->range[after].to : to;
    }
    if (after == first && r->count == RANGES_MAX)
        return false;
    if (after != first + 1)
        memmove(&r->range[first + 1], &r->range[after], (r->count - after) * sizeof(r->range[0]));
    r->count = r->count + 1 - (after - first);
    r->range[first] = (struct range){from, to};
    return true;
}

uint32_t ranges_prefix(const struct ranges *r)
{
    return r->count && r->range[0].from == 0 ? r->range[0].to : 0;
}

bool ranges_cover(const struct ranges *r, uint32_t length)
{
    return ranges_prefix(r) >= length;
}
