/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spin.c - waiting for a spinlock: its holder needs nanoseconds, or has lost its processor, perhaps to this thread. */
#include "base/spin.h"

#include <threads.h>

enum {
    PAUSES = 100,  /* attempts that do not yield the processor: a holder that runs has released the lock by then */
    YIELDS = 10,   /* attempts that leave it to another thread; one of a lower real-time priority gets nothing ... */
    NAP_NS = 20000 /* ... so that all later attempts sleep */
};

void spin_wait(const struct spin *spin)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};

    for (unsigned i = 0; atomic_load_explicit(&spin->taken, memory_order_relaxed); i++)
        if (i < PAUSES)
            spin_pause();
        else if (i < PAUSES + YIELDS)
            thrd_yield();
        else
            thrd_sleep(&nap, NULL);
}
