/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bytes.h - reads and writes big-endian numbers and octets at any alignment, and little-endian ones (put32le). A put
 * returns the address after what it wrote. */
#ifndef RDDP_BASE_BYTES_H
#define RDDP_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static inline uint8_t *put8(uint8_t *p, uint8_t v)
{
    *p = v;
    return p + 1;
}

static inline uint8_t *put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

/* Words are stored whole: gcc merges single octets with those of the words beside them, at great length. */
static inline uint8_t *put32(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

static inline uint8_t *put64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

static inline uint32_t get32le(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint8_t *put32le(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

/* Small messages are copied without a call of the library: from 8 to 16 octets take two words, which may overlap. */
static inline uint8_t *put_bytes(uint8_t *p, const void *from, size_t n)
{
    if (n >= 8 && n <= 16) {
        uint64_t first, last;

        memcpy(&first, from, sizeof(first));
        memcpy(&last, (const uint8_t *)from + n - sizeof(last), sizeof(last));
        memcpy(p, &first, sizeof(first));
        memcpy(p + n - sizeof(last), &last, sizeof(last));
    } else if (n) {
        memcpy(p, from, n);
    }
    return p + n;
}

#endif
