/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timers.c - a binary heap of timers, earliest first. */
#include "loop/timers.h"

#include <errno.h>
#include <stdlib.h>

static void put_timer(struct timers *t, uint32_t place, struct timer *timer)
{
    t->heap[place] = timer;
    timer->place = place;
}

static void sift_up(struct timers *t, uint32_t place, struct timer *timer)
{
    while (place > 1 && t->heap[place / 2]->at_us > timer->at_us) {
        put_timer(t, place, t->heap[place / 2]);
        place /= 2;
    }
    put_timer(t, place, timer);
}

static void sift_down(struct timers *t, uint32_t place, struct timer *timer)
{
    for (uint32_t child; (child = 2 * place) <= t->count; place = child) {
        if (child < t->count && t->heap[child + 1]->at_us < t->heap[child]->at_us)
            child++;
        if (t->heap[child]->at_us >= timer->at_us)
            break;
        put_timer(t, place, t->heap[child]);
    }
    put_timer(t, place, timer);
}

static void timers_unset(struct timers *t, struct timer *timer)
{
    uint32_t place = timer->place;
    struct timer *last;

    if (!place)
        return;
    timer->place = 0;
    last = t->heap[t->count--];
    if (last == timer)
        return;
    if (place > 1 && t->heap[place / 2]->at_us > last->at_us)
        sift_up(t, place, last);
    else
        sift_down(t, place, last);
}

static int grow_heap(struct timers *t)
{
    uint32_t space = 2 * t->capacity + 64;
    struct timer **heap = realloc(t->heap, ((size_t)space + 1) * sizeof(*heap)); /* place 0 is not used */

    if (!heap)
        return -ENOMEM;
    t->heap = heap;
    t->capacity = space;
    return 0;
}

int timers_add(struct timers *t, struct timer *timer)
{
    int error = 0;

    timer->place = 0;
    if (t->users == t->capacity)
        error = grow_heap(t);
    t->users += !error;
    return error;
}

void timers_forget(struct timers *t, struct timer *timer)
{
    timers_unset(t, timer);
    t->users--;
}

void timers_set(struct timers *t, struct timer *timer, uint64_t at_us)
{
    timers_unset(t, timer);
    if (at_us == UINT64_MAX)
        return;
    timer->at_us = at_us;
    t->count++;
    sift_up(t, t->count, timer);
}

uint64_t timers_first_us(const struct timers *t)
{
    return t->count ? t->heap[1]->at_us : UINT64_MAX;
}

struct timer *timers_take(struct timers *t, uint64_t now_us)
{
    struct timer *timer = t->count ? t->heap[1] : NULL;

    if (!timer || timer->at_us > now_us)
        return NULL;
    timers_unset(t, timer);
    return timer;
}

void timers_fini(struct timers *t)
{
    free(t->heap);
    t->heap = NULL;
}
