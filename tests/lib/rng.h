/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rng.h - randomness as an argument: splitmix64, the same numbers for the same seed everywhere. */
#ifndef TESTS_LIB_RNG_H
#define TESTS_LIB_RNG_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Returns an independent generator, so that one part of a test does not change what another draws. */
static inline struct rng rng_fork(struct rng *r)
{
    return (struct rng){rng_next(r)};
}

/* Returns 0 to limit - 1; 0 if limit is 0. */
static inline uint32_t rng_below(struct rng *r, uint32_t limit)
{
    return limit ? (uint32_t)(rng_next(r) >> 32) % limit : 0;
}

/* Returns `from` to `to`, both included. */
static inline uint32_t rng_between(struct rng *r, uint32_t from, uint32_t to)
{
    return from + rng_below(r, to - from + 1);
}

static inline bool rng_one_in(struct rng *r, uint32_t n)
{
    return rng_below(r, n) == 0;
}

/* Returns up to `most`, every order of magnitude equally likely: below 16 as often as between 2^15 and 2^16. */
static inline uint32_t rng_size(struct rng *r, uint32_t most)
{
    uint32_t bits = 0, size;

    while (bits < 32 && most >> bits)
        bits++;
    size = (uint32_t)(rng_next(r) >> 32) & (uint32_t)((1ULL << rng_below(r, bits + 1)) - 1);
    return size < most ? size : most;
}

static inline void rng_fill(struct rng *r, void *to, size_t n)
{
    uint8_t *p = to;
    uint64_t word;

    for (; n >= 8; n -= 8, p += 8) {
        word = htole64(rng_next(r));
        memcpy(p, &word, 8);
    }
    for (word = n ? rng_next(r) : 0; n; n--, word >>= 8)
        *p++ = (uint8_t)word;
}

#endif
