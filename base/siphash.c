/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siphash.c - SipHash-2-4 (Aumasson and Bernstein, 2012). */
#include "base/siphash.h"

#include "base/bytes.h"

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int n)
{
    while (n--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

static uint64_t word_at(const uint8_t *p, size_t n)
{
    uint64_t word = 0;

    while (n--)
        word = word << 8 | p[n];
    return word;
}

uint64_t siphash(const uint64_t key[2], const void *octets, size_t n)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                     key[1] ^ 0x7465646279746573};
    const uint8_t *p = octets;
    size_t left = n;

    for (; left >= 8; left -= 8, p += 8)
        absorb(v, word_at(p, 8));
    absorb(v, (uint64_t)n << 56 | word_at(p, left));
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
