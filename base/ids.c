/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ids.c - allocates numbers from a bitmap. The search goes round, so that a returned number is not reused at once. */
#include "base/ids.h"

#include <assert.h>

enum { BITS = 64 };

static uint64_t bit(uint32_t id)
{
    return UINT64_C(1) << (id % BITS);
}

void ids_init(struct ids *ids, uint64_t *taken, uint32_t count, uint32_t first)
{
    assert(count && count % BITS == 0);
    *ids = (struct ids){.taken = taken, .count = count, .next = first % count};
}

bool ids_get(struct ids *ids, uint32_t *id)
{
    uint32_t at = ids->next;

    for (uint32_t looked = 0; looked < ids->count;) {
        uint32_t step = 1;

        if (!(ids->taken[at / BITS] & bit(at))) {
            ids->taken[at / BITS] |= bit(at);
            ids->next = (at + 1) % ids->count;
            *id = at;
            return true;
        }
        if (at % BITS == 0 && ids->taken[at / BITS] == UINT64_MAX)
            step = BITS;
        looked += step;
        at = (at + step) % ids->count;
    }
    return false;
}

bool ids_take(struct ids *ids, uint32_t id)
{
    assert(id < ids->count);
    if (ids->taken[id / BITS] & bit(id))
        return false;
    ids->taken[id / BITS] |= bit(id);
    return true;
}

void ids_put(struct ids *ids, uint32_t id)
{
    assert(id < ids->count && (ids->taken[id / BITS] & bit(id)));
    ids->taken[id / BITS] &= ~bit(id);
}
