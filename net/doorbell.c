/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell.c - a lock with a bell in one word: one atomic operation decides which thread does the work. */
#include "net/doorbell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/spin.h"

enum {
    HELD = 1,
    RUNG = 2,
    WAITED_FOR = 4,
    SPINS = 200, /* attempts before sleeping: most holders have let go by then */
};

bool doorbell_ring(struct doorbell *doorbell)
{
    return !(atomic_fetch_or(&doorbell->word, HELD | RUNG) & HELD);
}

bool doorbell_try(struct doorbell *doorbell)
{
    uint32_t word = atomic_load_explicit(&doorbell->word, memory_order_relaxed);

    return !(word & HELD) && atomic_compare_exchange_strong(&doorbell->word, &word, word | HELD);
}

/* Marks the word as waited for and sleeps until the holder has let go. */
static void sleep_once(struct doorbell *doorbell)
{
    uint32_t word = atomic_load(&doorbell->word);

    if (!(word & HELD))
        return;
    if (!(word & WAITED_FOR) && !atomic_compare_exchange_strong(&doorbell->word, &word, word | WAITED_FOR))
        return;
    syscall(SYS_futex, &doorbell->word, FUTEX_WAIT_PRIVATE, word | WAITED_FOR, NULL, NULL, 0);
}

void doorbell_hold(struct doorbell *doorbell)
{
    for (unsigned i = 0; !doorbell_try(doorbell); i++)
        if (i < SPINS)
            spin_pause();
        else
            sleep_once(doorbell);
}

bool doorbell_let_go(struct doorbell *doorbell)
{
    uint32_t word = atomic_load_explicit(&doorbell->word, memory_order_relaxed);

    do {
        if ((word & (RUNG | WAITED_FOR)) == RUNG) {
            /* Clear the bell before the work: requests during the work ring it again. */
            atomic_fetch_and(&doorbell->word, ~(uint32_t)RUNG);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&doorbell->word, &word, word & WAITED_FOR ? word & RUNG : 0));
    /* The next holder may free the word; the futex call uses its address only as a number. */
    if (word & WAITED_FOR)
        syscall(SYS_futex, &doorbell->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return true;
}

bool doorbell_is_held(const struct doorbell *doorbell)
{
    return atomic_load(&doorbell->word) & HELD;
}
