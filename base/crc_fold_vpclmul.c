/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_fold_vpclmul.c - folds four registers of 512 bits with VPCLMULQDQ. */
#include "base/crc.h"

#if defined(__x86_64__)
#include "base/crc_fold.h"

#include <cpuid.h>

#define ISA "avx512f,avx512bw,avx512vbmi,vpclmulqdq,pclmul,sse4.1"
#define TARGET __attribute__((target(ISA)))
#define INLINE __attribute__((target(ISA), always_inline)) static inline

/* The processor must have the instructions, and the kernel must save the registers: XCR0 has a bit for each of xmm,
 * ymm, the masks, the high halves of zmm0-15, and zmm16-31. */
bool crc_fold_vpclmul_runs(void)
{
    const unsigned need_b = bit_AVX512F | bit_AVX512BW, need_c = bit_AVX512VBMI | bit_VPCLMULQDQ, saved = 0xe6;
    unsigned a, b, c, d, low, high;

    if (!crc_fold_pclmul_runs() || !__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & saved) == saved && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & need_b) == need_b &&
           (c & need_c) == need_c;
}

/* Folding 512 bits is folding 128 bits four times over the same distance. */
INLINE __m512i crc_fold_vpclmul_constants(const struct crc_poly *poly, enum crc_distance distance)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)poly->fold[distance]));
}

INLINE __m512i crc_fold_vpclmul_fold(__m512i v, __m512i by, __m512i onto)
{
    enum { XOR3 = 0x96 };

    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, by, 0x00), _mm512_clmulepi64_epi128(v, by, 0x11), onto,
                                     XOR3);
}

INLINE __m512i crc_fold_vpclmul_take(uint8_t *dst, const uint8_t *src, size_t at)
{
    __m512i v = _mm512_loadu_si512(src + at);

    if (dst)
        _mm512_storeu_si512(dst + at, v);
    return v;
}

INLINE __m512i take_some(uint8_t *dst, const uint8_t *src, size_t at, size_t r)
{
    __mmask64 some = ~0ull >> (64 - r);
    __m512i v = _mm512_maskz_loadu_epi8(some, src + at);

    if (dst)
        _mm512_mask_storeu_epi8(dst + at, some, v);
    return v;
}

/* Adds the r octets at the front of `some`, 0 < r < 64. Of v followed by them, the first r octets are folded onto the
 * other 64: rotating v by r octets moves these r to the back, where the rotated `some` is added. */
INLINE __m512i crc_fold_vpclmul_append(__m512i v, __m512i by512, __m512i some, size_t r)
{
    static const uint8_t count[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                      32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                      48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i turn = _mm512_add_epi8(_mm512_loadu_si512(count), _mm512_set1_epi8((char)r));
    const __mmask64 back = ~0ull << (64 - r);

    v = _mm512_permutexvar_epi8(turn, v);
    some = _mm512_mask_mov_epi8(v, back, _mm512_permutexvar_epi8(turn, some));
    return crc_fold_vpclmul_fold(_mm512_maskz_mov_epi8(back, v), by512, some);
}

/* The four quarters are 384, 256, 128 and 0 bits from the end. The constants of the last are zero, so it is added
 * unchanged. */
INLINE uint32_t reduce_lanes(const struct crc_poly *poly, __m512i v)
{
    const __m512i by = _mm512_loadu_si512(poly->fold[FOLD_384]);
    __m256i half;

    v = crc_fold_vpclmul_fold(v, by, _mm512_maskz_mov_epi64(0xc0, v));
    half = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return crc_reduce(poly, _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

INLINE uint32_t crc_fold_vpclmul_run(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src,
                                     size_t n)
{
    const __m512i by512 = crc_fold_vpclmul_constants(poly, FOLD_512),
                  first = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)reg));
    size_t at = 64;
    __m512i v;

    if (n < 64)
        return reduce_lanes(poly, crc_fold_vpclmul_append(_mm512_setzero_si512(), by512,
                                                          _mm512_xor_si512(take_some(dst, src, 0, n), first), n));

    v = _mm512_xor_si512(crc_fold_vpclmul_take(dst, src, 0), first);
    if (n >= 256) {
        const __m512i by2048 = crc_fold_vpclmul_constants(poly, FOLD_2048),
                      by1024 = crc_fold_vpclmul_constants(poly, FOLD_1024);
        __m512i b = crc_fold_vpclmul_take(dst, src, 64), c = crc_fold_vpclmul_take(dst, src, 128),
                d = crc_fold_vpclmul_take(dst, src, 192);

        for (at = 256; n - at >= 256; at += 256) {
            v = crc_fold_vpclmul_fold(v, by2048, crc_fold_vpclmul_take(dst, src, at));
            b = crc_fold_vpclmul_fold(b, by2048, crc_fold_vpclmul_take(dst, src, at + 64));
            c = crc_fold_vpclmul_fold(c, by2048, crc_fold_vpclmul_take(dst, src, at + 128));
            d = crc_fold_vpclmul_fold(d, by2048, crc_fold_vpclmul_take(dst, src, at + 192));
        }
        v = crc_fold_vpclmul_fold(crc_fold_vpclmul_fold(v, by1024, c), by512, crc_fold_vpclmul_fold(b, by1024, d));
    }
    for (; n - at >= 64; at += 64)
        v = crc_fold_vpclmul_fold(v, by512, crc_fold_vpclmul_take(dst, src, at));
    if (at < n)
        v = crc_fold_vpclmul_append(v, by512, take_some(dst, src, at, n - at), n - at);
    return reduce_lanes(poly, v);
}

/* Needs four octets, since the register is added to the first four. */
TARGET uint32_t crc_fold_vpclmul(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n < 4)
        return crc_slice(poly, reg, dst, src, n);
    return dst ? crc_fold_vpclmul_run(poly, reg, dst, src, n) : crc_fold_vpclmul_run(poly, reg, NULL, src, n);
}
#endif
