/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spin.h - a spinlock for sections of a few dozen instructions without system calls, allocation or callbacks. */
#ifndef RDDP_BASE_SPIN_H
#define RDDP_BASE_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>

/* Zeroed memory is an unlocked lock. */
struct spin {
    _Atomic bool taken;
};

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Returns when the lock was seen free. */
void spin_wait(const struct spin *spin);

/* Acquires the lock, and sees everything that was written before it was last released. */
static inline void spin_lock(struct spin *spin)
{
    while (atomic_exchange_explicit(&spin->taken, true, memory_order_acquire))
        spin_wait(spin);
}

/* Acquires the lock if it is free. */
static inline bool spin_try(struct spin *spin)
{
    return !atomic_exchange_explicit(&spin->taken, true, memory_order_acquire);
}

static inline void spin_unlock(struct spin *spin)
{
    atomic_store_explicit(&spin->taken, false, memory_order_release);
}

#endif
