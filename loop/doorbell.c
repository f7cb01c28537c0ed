/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell.c - a lock with a bell in one word: one atomic operation decides which thread does the work. */
#include "loop/doorbell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/spin.h"

enum { SPINS = 200 }; /* attempts before sleeping: most holders have released it by then */

/* Marks the word as waited for and sleeps until the holder has released it. */
static void sleep_once(struct doorbell *doorbell)
{
    uint32_t word = atomic_load(&doorbell->word);

    if (!(word & DOORBELL_HELD))
        return;
    if (!(word & DOORBELL_WAITED_FOR) &&
        !atomic_compare_exchange_strong(&doorbell->word, &word, word | DOORBELL_WAITED_FOR))
        return;
    syscall(SYS_futex, &doorbell->word, FUTEX_WAIT_PRIVATE, word | DOORBELL_WAITED_FOR, NULL, NULL, 0);
}

void doorbell_hold(struct doorbell *doorbell)
{
    for (unsigned i = 0; !doorbell_try(doorbell); i++)
        if (i < SPINS)
            spin_pause();
        else
            sleep_once(doorbell);
}

bool doorbell_answer(struct doorbell *doorbell)
{
    uint32_t word = atomic_load_explicit(&doorbell->word, memory_order_relaxed);

    do {
        if ((word & (DOORBELL_RUNG | DOORBELL_WAITED_FOR)) == DOORBELL_RUNG) {
            /* Clear the bell before the work: requests during the work ring it again. */
            atomic_fetch_and(&doorbell->word, ~(uint32_t)DOORBELL_RUNG);
            return false;
        }
    } while (
        !atomic_compare_exchange_weak(&doorbell->word, &word, word & DOORBELL_WAITED_FOR ? word & DOORBELL_RUNG : 0));
    /* The next holder may free the word; the futex call uses its address only as a number. */
    if (word & DOORBELL_WAITED_FOR)
        syscall(SYS_futex, &doorbell->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return true;
}

bool doorbell_is_held(const struct doorbell *doorbell)
{
    return atomic_load(&doorbell->word) & DOORBELL_HELD;
}
