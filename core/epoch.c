/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* epoch.c - epochs of readers: the threads that may be using what they looked up.
 *
 * All accesses are sequentially consistent: either a reader does not find what was removed, or the remover sees the
 * reader. */
#include "core/epoch.h"

#include <stddef.h>

void epochs_init(struct epochs *epochs, struct epoch_reader *slots, uint32_t count)
{
    epochs->reader = slots;
    epochs->count = count;
    atomic_init(&epochs->now, 1);
}

void epoch_enter(struct epochs *epochs, struct epoch_reader *reader)
{
    atomic_store(&reader->epoch, atomic_load(&epochs->now));
}

void epoch_leave(struct epoch_reader *reader)
{
    atomic_store_explicit(&reader->epoch, 0, memory_order_release);
}

struct epoch_reader *epoch_enter_any(struct epochs *epochs, uint32_t first, uint32_t wish)
{
    uint32_t slots = epochs->count - first, at = wish < slots ? wish : wish % slots;
    uint64_t now = atomic_load(&epochs->now);

    for (uint32_t i = 0; i < slots; i++, at = at + 1 < slots ? at + 1 : 0) {
        struct epoch_reader *reader = &epochs->reader[first + at];
        uint64_t outside = 0;

        if (!atomic_load_explicit(&reader->epoch, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&reader->epoch, &outside, now))
            return reader;
    }
    return NULL;
}

void epoch_renew(struct epochs *epochs, struct epoch_reader *reader)
{
    if (reader)
        epoch_enter(epochs, reader);
}

uint64_t epoch_advance(struct epochs *epochs)
{
    return atomic_fetch_add(&epochs->now, 1) + 1;
}

bool epoch_is_over(const struct epochs *epochs, uint64_t epoch)
{
    for (uint32_t i = 0; i < epochs->count && epoch; i++) {
        uint64_t entered = atomic_load(&epochs->reader[i].epoch);

        if (entered && entered < epoch)
            return false;
    }
    return true;
}
