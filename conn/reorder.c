/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.c - the headers of units whose payload was placed before their turn, in stream order. */
#include "conn/reorder.h"

#include <assert.h>
#include <string.h>

void early_init(struct early *early)
{
    early->first = early->count = 0;
    early->boundary = 0;
}

struct seg *early_first(struct early *early)
{
    return early->count ? &early->unit[early->first] : NULL;
}

void early_pop(struct early *early)
{
    assert(early->count);
    early->first++;
    early->count--;
    if (!early->count)
        early->first = 0;
}

/* Returns how many recorded units begin before `pos`. Most new units come after all others. */
static uint32_t early_before(const struct early *early, uint64_t pos)
{
    const struct seg *unit = early->unit + early->first;
    uint32_t low = 0, high = early->count;

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

bool early_is_boundary(const struct early *early, uint64_t pos)
{
    uint32_t n = early_before(early, pos);

    return (early->boundary && pos == early->boundary) || (n && early->unit[early->first + n - 1].end == pos);
}

enum early_fit early_fit(const struct early *early, uint64_t begin, uint64_t end)
{
    const struct seg *unit = early->unit + early->first;
    uint32_t n = early_before(early, begin);

    if (n < early->count && unit[n].begin == begin && unit[n].end == end)
        return EARLY_THERE;
    if (early->count == EARLY_MAX || (n && unit[n - 1].end > begin) || (n < early->count && unit[n].begin < end))
        return EARLY_NOT;
    return EARLY_FITS;
}

void early_add(struct early *early, const struct seg *seg)
{
    uint32_t n = early_before(early, seg->begin);
    struct seg *unit;

    assert(early->count < EARLY_MAX);
    if (early->first + early->count == EARLY_MAX) {
        memmove(early->unit, early->unit + early->first, early->count * sizeof(*early->unit));
        early->first = 0;
    }
    unit = early->unit + early->first + n;
    memmove(unit + 1, unit, (early->count++ - n) * sizeof(*unit));
    *unit = *seg;
    unit->flags |= SEG_PLACED;
    unit->data = unit->control = unit->head = NULL;
    unit->control_length = unit->head_length = 0;
}
