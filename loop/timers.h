/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timers.h - timers in the order of their times. The caller excludes others. */
#ifndef RDDP_LOOP_TIMERS_H
#define RDDP_LOOP_TIMERS_H

#include <stdatomic.h>
#include <stdint.h>

/* A timer. fire() is called once at that time, by the reactor, without its timer_lock. Setting a timer again
 * moves it. */
struct timer {
    _Atomic uint64_t at_us;
    _Atomic uint32_t place; /* position in the heap, counted from 1; 0: not set */
    void (*fire)(struct timer *timer, uint64_t now_us);
};

struct timers {
    struct timer **heap;
    uint32_t count, users, capacity; /* timers set; timers added; of the heap */
};

/* Reserves room for one more timer, so that setting it cannot fail. Returns 0 or -ENOMEM. timers_forget() unsets it and
 * releases the room. */
int timers_add(struct timers *t, struct timer *timer);
void timers_forget(struct timers *t, struct timer *timer);

void timers_set(struct timers *t, struct timer *timer, uint64_t at_us); /* UINT64_MAX: unset */

/* When is the earliest due? UINT64_MAX: none is set. */
uint64_t timers_first_us(const struct timers *t);

/* Unsets the earliest, if it is due, and returns it; or NULL. */
struct timer *timers_take(struct timers *t, uint64_t now_us);

void timers_fini(struct timers *t);

#endif
