/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_slice.c - processes sixteen octets at a time with sixteen tables; runs on all machines. */
#include "base/crc.h"

#include <string.h>

/* Uses words instead of octets: compilers would copy and look up sixteen octets one at a time. */
static inline uint32_t little_endian(uint32_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap32(word);
#else
    return word;
#endif
}

/* The first of the four octets is followed by the most octets, so it uses the last table. */
static inline uint32_t crc_slice_look_up(const uint32_t (*t)[256], uint32_t w)
{
    return t[0][w >> 24] ^ t[1][w >> 16 & 0xff] ^ t[2][w >> 8 & 0xff] ^ t[3][w & 0xff];
}

__attribute__((always_inline)) static inline uint32_t crc_slice_run(const uint32_t (*t)[256], uint32_t reg,
                                                                    uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t at = 0;

    for (; n - at >= 16; at += 16) {
        uint32_t w[4];

        memcpy(w, src + at, sizeof(w));
        if (dst)
            memcpy(dst + at, w, sizeof(w));
        reg = crc_slice_look_up(t, little_endian(w[3])) ^ crc_slice_look_up(t + 4, little_endian(w[2])) ^
              crc_slice_look_up(t + 8, little_endian(w[1])) ^ crc_slice_look_up(t + 12, little_endian(w[0]) ^ reg);
    }
    for (; n - at >= 4; at += 4) {
        uint32_t w;

        memcpy(&w, src + at, sizeof(w));
        if (dst)
            memcpy(dst + at, &w, sizeof(w));
        reg = crc_slice_look_up(t, little_endian(w) ^ reg);
    }
    for (; at < n; at++) {
        uint8_t octet = src[at];

        if (dst)
            dst[at] = octet;
        reg = reg >> 8 ^ t[0][(reg ^ octet) & 0xff];
    }
    return reg;
}

uint32_t crc_slice(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n)
{
    return dst ? crc_slice_run(poly->table, reg, dst, src, n) : crc_slice_run(poly->table, reg, NULL, src, n);
}
