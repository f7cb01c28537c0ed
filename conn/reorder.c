/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder.c - the headers of units whose payload was placed before their turn, in stream order. */
#include "conn/reorder.h"

#include <assert.h>
#include <string.h>

void reorder_init(struct reorder *reorder)
{
    reorder->first = reorder->count = 0;
    reorder->boundary = 0;
}

struct seg *reorder_first(struct reorder *reorder)
{
    return reorder->count ? &reorder->unit[reorder->first] : NULL;
}

void reorder_pop(struct reorder *reorder)
{
    assert(reorder->count);
    reorder->first++;
    reorder->count--;
    if (!reorder->count)
        reorder->first = 0;
}

/* Returns how many recorded units begin before `pos`. Most new units come after all others. */
static uint32_t reorder_before(const struct reorder *reorder, uint64_t pos)
{
    const struct seg *unit = reorder->unit + reorder->first;
    uint32_t low = 0, high = reorder->count;

    if (!high || unit[high - 1].begin < pos)
        return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (unit[middle].begin < pos)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool reorder_is_boundary(const struct reorder *reorder, uint64_t pos)
{
    uint32_t n = reorder_before(reorder, pos);

    return (reorder->boundary && pos == reorder->boundary) || (n && reorder->unit[reorder->first + n - 1].end == pos);
}

enum reorder_fit reorder_fit(const struct reorder *reorder, uint64_t begin, uint64_t end)
{
    const struct seg *unit = reorder->unit + reorder->first;
    uint32_t n = reorder_before(reorder, begin);

    if (n < reorder->count && unit[n].begin == begin && unit[n].end == end)
        return REORDER_RECORDED;
    if (reorder->count == REORDER_MAX || (n && unit[n - 1].end > begin) || (n < reorder->count && unit[n].begin < end))
        return REORDER_NO;
    return REORDER_FITS;
}

void reorder_add(struct reorder *reorder, const struct seg *seg)
{
    uint32_t n = reorder_before(reorder, seg->begin);
    struct seg *unit;

    assert(reorder->count < REORDER_MAX);
    if (reorder->first + reorder->count == REORDER_MAX) {
        memmove(reorder->unit, reorder->unit + reorder->first, reorder->count * sizeof(*reorder->unit));
        reorder->first = 0;
    }
    unit = reorder->unit + reorder->first + n;
    memmove(unit + 1, unit, (reorder->count++ - n) * sizeof(*unit));
    *unit = *seg;
    unit->flags |= SEG_PLACED;
    unit->data = unit->control = unit->head = NULL;
    unit->control_length = unit->head_length = 0;
}
