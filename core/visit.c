/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* visit.c - epochs of the threads that may be using what they looked up.
 *
 * All accesses are sequentially consistent: either a visitor does not find what was removed, or the remover sees the
 * visitor. */
#include "core/visit.h"

#include <stddef.h>

void visits_init(struct visits *visits, struct visit *slots, uint32_t count)
{
    visits->visit = slots;
    visits->count = count;
    atomic_init(&visits->now, 1);
}

void visit_enter(struct visits *visits, struct visit *visit)
{
    atomic_store(&visit->since, atomic_load(&visits->now));
}

void visit_leave(struct visit *visit)
{
    atomic_store_explicit(&visit->since, 0, memory_order_release);
}

struct visit *visit_enter_any(struct visits *visits, uint32_t first)
{
    uint64_t now = atomic_load(&visits->now);

    for (uint32_t i = first; i < visits->count; i++) {
        uint64_t outside = 0;

        if (!atomic_load_explicit(&visits->visit[i].since, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&visits->visit[i].since, &outside, now))
            return &visits->visit[i];
    }
    return NULL;
}

void visit_renew(struct visits *visits, struct visit *visit)
{
    if (visit)
        visit_enter(visits, visit);
}

uint64_t visits_part(struct visits *visits)
{
    return atomic_fetch_add(&visits->now, 1) + 1;
}

bool visits_are_over(const struct visits *visits, uint64_t moment)
{
    for (uint32_t i = 0; i < visits->count && moment; i++) {
        uint64_t since = atomic_load(&visits->visit[i].since);

        if (since && since < moment)
            return false;
    }
    return true;
}
