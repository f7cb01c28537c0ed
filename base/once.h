/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* once.h - a copy to memory that a program looks at meanwhile. */
#ifndef RDDP_BASE_ONCE_H
#define RDDP_BASE_ONCE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ONCE_SMALL = 64, ONCE_TAIL = 8 };

typedef uint64_t once_word __attribute__((may_alias, aligned(1)));

/* Copies n octets; the last ones, or all of a small message, are stored in order, each once. A program may wait for the
 * last octet of a message to change and then write there itself. memcpy() stores in any order, and some octets twice,
 * where its vectors overlap: what the program has written would be gone. */
static inline void copy_once(uint8_t *to, const uint8_t *from, size_t n)
{
    size_t at = n > ONCE_SMALL ? n - ONCE_TAIL : 0;

    if (at) {
        memcpy(to, from, at);
#ifdef __SANITIZE_THREAD__ /* knows no fences */
        atomic_signal_fence(memory_order_release);
#else
        atomic_thread_fence(memory_order_release);
#endif
    }
    for (; n - at >= sizeof(once_word); at += sizeof(once_word))
        *(volatile once_word *)(to + at) = *(const once_word *)(from + at);
    for (; at < n; at++)
        *(volatile uint8_t *)(to + at) = from[at];
}

#endif
