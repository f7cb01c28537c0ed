/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c - regions by key; the only place where a peer's key and offset become a pointer. */
#include "core/mr.h"

#include <assert.h>
#include <rddp/wr.h>

size_t mr_slots_size(uint32_t count)
{
    static_assert(sizeof(struct mr_slots) <= sizeof(struct mr_slot), "see mr.h");
    return sizeof(struct mr_slots) + count * sizeof(struct mr_slot);
}

void mr_table_init(struct mr_table *table, void *buffer, uint32_t count)
{
    struct mr_slots *slots = buffer;

    assert((count & (count - 1)) == 0);
    slots->count = count;
    table->used = table->live = 0;
    table->copier = NULL;
    atomic_init(&table->slots, slots);
    epochs_init(&table->epochs, NULL, 0);
}

/* At most half full: a probe then looks at two or three slots, whether the key exists or not, and always terminates. */
bool mr_table_has_space(const struct mr_table *table)
{
    return table->used < atomic_load_explicit(&table->slots, memory_order_relaxed)->count / 2;
}

/* Returns the slot of `key`, or the free slot where it belongs. The keys are random, so their low bits serve as
 * hash. */
static struct mr_slot *probe(struct mr_slots *slots, uint32_t key)
{
    uint32_t i = key & (slots->count - 1), found;

    while ((found = atomic_load_explicit(&slots->slot[i].key, memory_order_acquire)) != key && found)
        i = (i + 1) & (slots->count - 1);
    return &slots->slot[i];
}

/* A window is entered under its key with a tag of 0, so that it is found whatever its tag is. */
static uint32_t entered_key(const struct mr *mr)
{
    return mr->kind == MR_REGION ? mr->key : mr->key & ~(uint32_t)MR_TAGS;
}

static void mr_fill(struct mr_slot *slot, uint32_t key, struct mr *mr)
{
    atomic_store_explicit(&slot->mr, mr, memory_order_relaxed);
    atomic_store_explicit(&slot->key, key, memory_order_release);
}

void *mr_table_move(struct mr_table *table, void *buffer, uint32_t count)
{
    struct mr_slots *from = atomic_load_explicit(&table->slots, memory_order_relaxed), *to = buffer;

    assert(count >= 2 * (table->live + 1) && (count & (count - 1)) == 0);
    to->count = count;
    for (uint32_t i = 0; i < from->count; i++)
        if (from->slot[i].mr)
            mr_fill(probe(to, from->slot[i].key), from->slot[i].key, from->slot[i].mr);
    table->used = table->live;
    atomic_store(&table->slots, to);
    return from;
}

/* Has a region, a window or a tombstone this key? */
static bool is_taken(const struct mr_table *table, uint32_t key)
{
    return probe(atomic_load_explicit(&table->slots, memory_order_relaxed), key)->key;
}

static void mr_enter(struct mr_table *table, struct mr *mr, uint32_t key)
{
    assert(mr_table_has_space(table));
    mr->key = key;
    key = entered_key(mr);
    mr_fill(probe(atomic_load_explicit(&table->slots, memory_order_relaxed), key), key, mr);
    table->used++;
    table->live++;
}

bool mr_insert(struct mr_table *table, struct mr *mr, uint32_t key)
{
    /* 0 marks a free slot, and wires send the STag 0 where they mean none. */
    if (!key || is_taken(table, key) || mr_find_window(table, key))
        return false;
    mr->valid = true;
    if (mr->parent)
        mr->parent->parts++;
    mr_enter(table, mr, key);
    return true;
}

bool mr_insert_window(struct mr_table *table, struct mr *window, uint32_t key)
{
    uint32_t first = key & ~(uint32_t)MR_TAGS;

    if (!first)
        return false;
    for (uint32_t tag = 0; tag <= MR_TAGS; tag++)
        if (is_taken(table, first | tag))
            return false;
    window->valid = false;
    mr_enter(table, window, key);
    return true;
}

bool mr_close(struct mr *mr)
{
    uint32_t none = 0;

    return atomic_compare_exchange_strong(&mr->parts, &none, MR_CLOSED);
}

void mr_open(struct mr *mr)
{
    mr->parts = 0;
}

/* Sequentially consistent, like the look-up: either the look-up finds nothing, or the remover sees the reader. */
void mr_remove(struct mr_table *table, struct mr *mr)
{
    struct mr_slot *slot = probe(atomic_load_explicit(&table->slots, memory_order_relaxed), entered_key(mr));
    bool was_valid;

    assert(slot->mr == mr);
    atomic_store(&slot->mr, NULL);
    table->live--;
    was_valid = atomic_exchange(&mr->valid, false);
    /* A window is a part while it is bound. */
    if (mr->parent && (mr->kind == MR_REGION || was_valid))
        mr->parent->parts--;
}

void mr_replace(struct mr_table *table, struct mr *before, struct mr *mr)
{
    struct mr_slot *slot = probe(atomic_load_explicit(&table->slots, memory_order_relaxed), before->key);

    assert(slot->mr == before && before->kind == MR_REGION && before->parts == MR_CLOSED);
    mr->key = before->key;
    mr_lend(before);
    mr->valid = before->valid;
    mr_lend(mr);
    atomic_store(&slot->mr, mr);
}

bool mr_part(struct mr *part, struct mr *parent, uint8_t *at, uint64_t length, unsigned access)
{
    const unsigned of_memory = RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE | RDDP_ACCESS_ON_DEMAND;
    const unsigned own = RDDP_ACCESS_ZERO_BASED | RDDP_ACCESS_ONE_SHOT;
    uint64_t offset = (uintptr_t)at - (uintptr_t)parent->base; /* wraps and is too large in front of the parent */
    uint64_t start = parent->access & RDDP_ACCESS_ZERO_BASED ? (uintptr_t)at : parent->start + offset;

    if (parent->parent || !parent->valid || access & ~(parent->access | own))
        return false;
    if (offset > parent->length || length > parent->length - offset)
        return false;
    *part = (struct mr){
        .pd = parent->pd,
        .base = at,
        .start = access & RDDP_ACCESS_ZERO_BASED ? 0 : start,
        .length = length,
        .access = access | (parent->access & of_memory),
        .parent = parent,
    };
    return true;
}

bool mr_is_valid(const struct mr *mr)
{
    return mr->valid && (!mr->parent || mr->parent->valid);
}

/* Unlike probe() it reads each key once: the free slot at which it ends may be being filled with another key. */
__attribute__((always_inline)) static inline struct mr *mr_at(const struct mr_table *table, uint64_t key)
{
    const struct mr_slots *slots = atomic_load(&table->slots);
    uint32_t i = (uint32_t)key & (slots->count - 1), found;

    if (!key || key > UINT32_MAX)
        return NULL;
    while ((found = atomic_load_explicit(&slots->slot[i].key, memory_order_acquire)) != key) {
        if (!found)
            return NULL;
        i = (i + 1) & (slots->count - 1);
    }
    return atomic_load(&slots->slot[i].mr);
}

/* Not inlined, so that looking up a region does not pay for it. */
struct mr *mr_find_window(const struct mr_table *table, uint32_t key)
{
    struct mr *mr = mr_at(table, key & ~(uint32_t)MR_TAGS);

    return mr && mr->kind != MR_REGION ? mr : NULL;
}

/* Returns the region of `key`, or the window that had it a moment ago: see has_key(). */
static inline struct mr *mr_look_up(const struct mr_table *table, uint64_t key)
{
    struct mr *mr = mr_at(table, key);

    return mr || key > UINT32_MAX ? mr : mr_find_window(table, (uint32_t)key);
}

/* To be asked after mr_is_valid(): a window that was valid keeps its key until all readers of that time have left. */
static inline bool has_key(const struct mr *mr, uint64_t key)
{
    return atomic_load_explicit(&mr->key, memory_order_relaxed) == key;
}

struct mr *mr_find(const struct mr_table *table, uint64_t key)
{
    struct mr *mr = mr_look_up(table, key);

    return mr && has_key(mr, key) ? mr : NULL;
}

/* Is this the key of a window, and good for what needs these rights? */
static bool window_allows(const struct mr *mr, uint64_t key, unsigned rights)
{
    return has_key(mr, key) && rights & ~(unsigned)RDDP_ACCESS_LOCAL_WRITE;
}

/* A null region has no octets of its own, so it comes here for each of them. */
static enum fault mr_reach_null(struct mr *mr, uint64_t length, unsigned rights, uint8_t **at, struct mr **found)
{
    if (!mr->sink || length > MR_NULL_OCTETS)
        return FAULT_BOUNDS;
    *at = rights & RDDP_ACCESS_LOCAL_WRITE ? mr->sink : mr->base;
    if (found)
        *found = mr;
    return FAULT_NONE;
}

enum fault mr_check(const struct mr_table *table, const struct pd *pd, uint64_t key, uint64_t offset, uint64_t length,
                    unsigned rights, uint8_t **at, struct mr **found)
{
    struct mr *mr = mr_look_up(table, key);

    if (!mr || !mr_is_valid(mr) || (mr->kind != MR_REGION && !window_allows(mr, key, rights)))
        return FAULT_KEY;
    if (mr->pd != pd)
        return FAULT_DOMAIN;
    if ((mr->access & rights) != rights)
        return FAULT_RIGHT;
    /* "A 64-bit unsigned sum ... does not wrap" (RFC 5041 7.1): 2^64 itself counts as wrapping. */
    if (length > UINT64_MAX - offset)
        return FAULT_WRAP;
    /* No value from a peer is added to anything before this check has passed. */
    if (offset < mr->start || offset - mr->start > mr->length || length > mr->length - (offset - mr->start))
        return mr_reach_null(mr, length, rights, at, found);
    *at = (uint8_t *)((uintptr_t)mr->base + (offset - mr->start)); /* on demand, the region may begin at address 0 */
    if (found)
        *found = mr;
    return FAULT_NONE;
}

bool mr_claim(struct mr *window)
{
    return !atomic_exchange(&window->claimed, true);
}

void mr_release(struct mr *window)
{
    window->claimed = false;
}

void mr_unbind(struct mr_table *table, struct mr *window)
{
    if (!atomic_exchange(&window->valid, false))
        return;
    window->retired = epoch_advance(&table->epochs);
    window->parent->parts--;
}

/* Who has claimed the window binds or removes it, or invalidates it just now. */
static enum fault window_invalidate(struct mr_table *table, struct mr *window, uint64_t *epoch)
{
    enum fault fault = FAULT_INVALIDATE;

    if (!mr_claim(window))
        return fault;
    if (window->valid) {
        mr_unbind(table, window);
        *epoch = window->retired;
        fault = FAULT_NONE;
    }
    mr_release(window);
    return fault;
}

enum fault mr_invalidate(struct mr_table *table, const struct pd *pd, uint64_t key, bool remote, uint64_t *epoch)
{
    const unsigned any_remote = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC;
    struct mr *mr = mr_find(table, key);

    if (!mr || mr->pd != pd || mr->kind == MR_WINDOW || !mr->valid || !has_key(mr, key) ||
        (remote && !(mr->access & any_remote)))
        return FAULT_INVALIDATE;
    if (mr->kind != MR_REGION)
        return window_invalidate(table, mr, epoch);
    /* If two threads invalidate at once, one of them fails, unless a change of the region came between their
     * look-ups: then one has found each of both, and the key is invalid all the same. */
    if (!atomic_exchange(&mr->valid, false))
        return FAULT_INVALIDATE;
    *epoch = epoch_advance(&table->epochs);
    return FAULT_NONE;
}

/* The user of a window is known once it is valid, and for as long as this reader stays. */
enum fault mr_invalidate_for(struct mr_table *table, const struct pd *pd, uint64_t user, uint64_t key, uint64_t *epoch)
{
    const struct mr *mr = mr_find(table, key);

    if (!mr || !mr->valid || (mr->user && mr->user != user))
        return FAULT_INVALIDATE;
    return mr_invalidate(table, pd, key, true, epoch);
}

/* The spans of a part are spans of its parent, too, whose invalidation covers the part's key. */
void mr_lend(struct mr *mr)
{
    if (mr->parent)
        mr->parent->sending++;
    mr->sending++;
}

/* A region whose count falls to 0 may be freed at once; its parent stays as long as the part. */
void mr_give_back(struct mr *mr)
{
    if (mr->parent)
        mr->parent->sending--;
    mr->sending--;
}

bool mr_is_lent(const struct mr_table *table, uint64_t key)
{
    const struct mr *mr = mr_find(table, key);

    return mr && mr->sending;
}

/* The readers first: only they lend spans, and what they have lent is seen when they have left. */
bool mr_is_unused(const struct mr_table *table, uint64_t key, uint64_t epoch)
{
    return !epoch || (epoch_is_over(&table->epochs, epoch) && !mr_is_lent(table, key));
}
