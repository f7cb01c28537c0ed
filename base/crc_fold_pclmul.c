/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_fold_pclmul.c - folds four registers of 128 bits with PCLMULQDQ. */
#include "base/crc.h"

#if defined(__x86_64__)
#include "base/crc_fold.h"

#include <cpuid.h>
#include <string.h>

#define TARGET __attribute__((target("pclmul,sse4.1,ssse3")))
#define INLINE __attribute__((target("pclmul,sse4.1,ssse3"), always_inline)) static inline

bool crc_fold_pclmul_runs(void)
{
    const unsigned need = bit_PCLMUL | bit_SSE4_1 | bit_SSSE3;
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & need) == need;
}

INLINE __m128i crc_fold_pclmul_constants(const struct crc_poly *poly, enum crc_distance distance)
{
    return _mm_loadu_si128((const __m128i *)poly->fold[distance]);
}

INLINE __m128i crc_fold_pclmul_fold(__m128i v, __m128i by, __m128i onto)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_clmulepi64_si128(v, by, 0x11)), onto);
}

INLINE __m128i crc_fold_pclmul_take(uint8_t *dst, const uint8_t *src, size_t at)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(src + at));

    if (dst)
        _mm_storeu_si128((__m128i *)(dst + at), v);
    return v;
}

/* Adds the last r octets, 0 < r < 16. Of v followed by them, the first r octets are folded onto the other 16. The 16
 * octets of `turn` from offset r shift v; an index with its top bit set selects zero. */
INLINE __m128i take_last(__m128i v, __m128i by128, uint8_t *dst, const uint8_t *src, size_t at, size_t r)
{
    static const uint8_t turn[48] = {
        0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
        0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
        0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    };
    const __m128i to_front = _mm_loadu_si128((const __m128i *)(turn + 16 + r));
    const __m128i to_back = _mm_loadu_si128((const __m128i *)(turn + r));
    __m128i last;

    if (dst) {
        memcpy(dst + at, src + at, r);
        src = dst;
    }
    last = _mm_loadu_si128((const __m128i *)(src + at + r - 16));
    last = _mm_blendv_epi8(_mm_shuffle_epi8(v, to_front), last, to_front);
    return crc_fold_pclmul_fold(_mm_shuffle_epi8(v, to_back), by128, last);
}

INLINE uint32_t crc_fold_pclmul_run(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src,
                                    size_t n)
{
    const __m128i by128 = crc_fold_pclmul_constants(poly, FOLD_128);
    __m128i v = _mm_xor_si128(crc_fold_pclmul_take(dst, src, 0), _mm_cvtsi32_si128((int)reg));
    size_t at = 16;

    if (n >= 64) {
        const __m128i by512 = crc_fold_pclmul_constants(poly, FOLD_512),
                      by256 = crc_fold_pclmul_constants(poly, FOLD_256);
        __m128i b = crc_fold_pclmul_take(dst, src, 16), c = crc_fold_pclmul_take(dst, src, 32),
                d = crc_fold_pclmul_take(dst, src, 48);

        for (at = 64; n - at >= 64; at += 64) {
            v = crc_fold_pclmul_fold(v, by512, crc_fold_pclmul_take(dst, src, at));
            b = crc_fold_pclmul_fold(b, by512, crc_fold_pclmul_take(dst, src, at + 16));
            c = crc_fold_pclmul_fold(c, by512, crc_fold_pclmul_take(dst, src, at + 32));
            d = crc_fold_pclmul_fold(d, by512, crc_fold_pclmul_take(dst, src, at + 48));
        }
        v = crc_fold_pclmul_fold(crc_fold_pclmul_fold(v, by256, c), by128, crc_fold_pclmul_fold(b, by256, d));
    }
    for (; n - at >= 16; at += 16)
        v = crc_fold_pclmul_fold(v, by128, crc_fold_pclmul_take(dst, src, at));
    if (at < n)
        v = take_last(v, by128, dst, src, at, n - at);
    return crc_reduce(poly, v);
}

TARGET uint32_t crc_fold_pclmul(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n < 16)
        return crc_slice(poly, reg, dst, src, n);
    return dst ? crc_fold_pclmul_run(poly, reg, dst, src, n) : crc_fold_pclmul_run(poly, reg, NULL, src, n);
}
#endif
