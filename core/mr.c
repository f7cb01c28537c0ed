/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c - regions by key, and the one place where a peer's key and offset become a pointer. */
#include "core/mr.h"

#include <assert.h>
#include <rddp/wr.h>

void mr_table_init(struct mr_table *table, struct mr_slot *slot, uint32_t slots)
{
    assert((slots & (slots - 1)) == 0);
    *table = (struct mr_table){.slot = slot, .slots = slots};
}

/* Half full at most: a probe then looks at two or three slots whether the key is there or not, and always ends. */
bool mr_table_has_room(const struct mr_table *table)
{
    return table->used < table->slots / 2;
}

/* The slot of `key`, or the free one where it would go. The keys are random: their own bits spread them. */
static struct mr_slot *probe(const struct mr_table *table, uint32_t key)
{
    uint32_t mask = table->slots - 1, i = key & mask;

    while (table->slot[i].key != key && table->slot[i].key)
        i = (i + 1) & mask;
    return &table->slot[i];
}

struct mr_slot *mr_table_move(struct mr_table *table, struct mr_slot *slot, uint32_t slots)
{
    struct mr_table to;

    assert(slots >= 2 * (table->live + 1));
    mr_table_init(&to, slot, slots);
    for (uint32_t i = 0; i < table->slots; i++)
        if (table->slot[i].mr)
            *probe(&to, table->slot[i].key) = table->slot[i];
    to.used = to.live = table->live;
    slot = table->slot;
    *table = to;
    return slot;
}

bool mr_insert(struct mr_table *table, struct mr *mr, uint32_t key)
{
    struct mr_slot *slot;

    assert(mr_table_has_room(table));
    /* 0 marks a free slot, and is the STag that wires send where they mean none. */
    if (!key)
        return false;
    slot = probe(table, key);
    if (slot->key)
        return false;
    mr->key = key;
    mr->valid = true;
    *slot = (struct mr_slot){key, mr};
    table->used++;
    table->live++;
    return true;
}

void mr_remove(struct mr_table *table, struct mr *mr)
{
    struct mr_slot *slot = probe(table, mr->key);

    assert(slot->mr == mr);
    slot->mr = NULL;
    table->live--;
    mr->valid = false;
}

struct mr *mr_find(const struct mr_table *table, uint64_t key)
{
    if (!key || key > UINT32_MAX || !table->slots)
        return NULL;
    return probe(table, (uint32_t)key)->mr;
}

enum fault mr_check(const struct mr_table *table, const struct pd *pd, uint64_t key, uint64_t offset, uint64_t length,
                    unsigned rights, uint8_t **at, struct mr **found)
{
    struct mr *mr = mr_find(table, key);

    if (!mr || !mr->valid)
        return FAULT_KEY;
    if (mr->pd != pd)
        return FAULT_DOMAIN;
    if ((mr->access & rights) != rights)
        return FAULT_RIGHT;
    /* "A 64-bit unsigned sum ... does not wrap" (RFC 5041 7.1): 2^64 itself already does. */
    if (length > UINT64_MAX - offset)
        return FAULT_WRAP;
    /* Nothing that a peer sent is ever added to anything before this line has been passed. */
    if (offset < mr->start || offset - mr->start > mr->length || length > mr->length - (offset - mr->start))
        return FAULT_BOUNDS;
    *at = mr->base + (offset - mr->start);
    if (found)
        *found = mr;
    return FAULT_NONE;
}

enum fault mr_invalidate(struct mr_table *table, const struct pd *pd, uint64_t key, bool remote)
{
    const unsigned any_remote = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ;
    struct mr *mr = mr_find(table, key);

    if (!mr || !mr->valid || mr->pd != pd || (remote && !(mr->access & any_remote)))
        return FAULT_INVALIDATE;
    mr->valid = false;
    return FAULT_NONE;
}
