/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell.h - a lock that can be rung: whoever wants work done takes the lock if it is free; otherwise its holder does
 * the work. */
#ifndef RDDP_LOOP_DOORBELL_H
#define RDDP_LOOP_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { DOORBELL_HELD = 1, DOORBELL_RUNG = 2, DOORBELL_WAITED_FOR = 4 }; /* bits of the word */

/* Zeroed memory is a doorbell that is free and not rung. Any thread may call; no call but doorbell_hold() waits. */
struct doorbell {
    _Atomic uint32_t word;
};

/* Rings. Returns true if the lock was free: the caller holds it now, and does the work. Returns false if not: the
 * holder will see the bell before it releases the lock. The caller must not touch what the lock guards, which may be
 * freed at any time. */
static inline bool doorbell_ring(struct doorbell *doorbell)
{
    uint32_t word = 0;

    return atomic_compare_exchange_strong(&doorbell->word, &word, DOORBELL_HELD) ||
           !(atomic_fetch_or(&doorbell->word, DOORBELL_HELD | DOORBELL_RUNG) & DOORBELL_HELD);
}

/* Takes the lock if it is free. Returns whether the caller holds it now. */
static inline bool doorbell_try(struct doorbell *doorbell)
{
    uint32_t word = atomic_load_explicit(&doorbell->word, memory_order_relaxed);

    return !(word & DOORBELL_HELD) && atomic_compare_exchange_strong(&doorbell->word, &word, word | DOORBELL_HELD);
}

/* Waits until the lock is free, and takes it. */
void doorbell_hold(struct doorbell *doorbell);

/* For doorbell_release() alone: the bell was rung, or a thread waits. */
bool doorbell_answer(struct doorbell *doorbell);

/* Releases the lock and returns true. Returns false if the bell was rung; the caller still holds the lock, does the
 * work, and calls again:
 *     while (!doorbell_release(&doorbell))
 *         work();
 * If the bell rings while a thread waits in doorbell_hold(), that thread gets the lock and finds the bell rung. */
static inline bool doorbell_release(struct doorbell *doorbell)
{
    uint32_t word = DOORBELL_HELD;

    return atomic_compare_exchange_strong(&doorbell->word, &word, 0) || doorbell_answer(doorbell);
}

/* Is the lock held? If not, every look-up made under the lock before this call has ended. */
bool doorbell_is_held(const struct doorbell *doorbell);

#endif
