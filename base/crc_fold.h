/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_fold.h - the arithmetic that the carry-less multiplication kernels share. Only crc_fold_*.c include it.
 *
 * Sixteen octets loaded into a vector register are a polynomial of degree 127 in which bit i stands for x^(127-i),
 * since the first octet's lowest bit comes first. Write it V = H*x^64 + L: H is the low half of the register, L the
 * high one. To fold V is to replace it by something congruent modulo P that lies D bits further on and can be added
 * there:
 *
 *     V*x^D = H*x^(D+64) + L*x^D                  (mod P)
 *
 * A constant r = R is 32 bits wide with bit i for x^(31-i). In a 64-bit half, where bit i stands for x^(63-i), the same
 * bits mean R*x^32. PCLMULQDQ of two halves A and B gives A*B*x: bit 0 times bit 0, x^63 times x^63, comes to lie in
 * bit 0 of 128, which stands for x^127. Together A times r is A*R*x^33. So H needs R = x^(D+64-33) and L needs R =
 * x^(D-33), and both products keep within 128 bits: degree 63 + 31 + 33. */
#ifndef RDDP_BASE_CRC_FOLD_H
#define RDDP_BASE_CRC_FOLD_H

#include "base/crc.h"

#include <immintrin.h>

/* CRC = V*x^32 mod P for the 128 bits V that are left.
 *
 * First U = H*x^128 + L*x^64, congruent to V*x^64 and without its 32 lowest powers: the constant for H is
 * x^(128-33), which folding by 128 bits has already, and L only moves down. Then the multiple of P is added that clears
 * bits 0..63 of U (Montgomery's reduction): q = U * inverse modulo y^64, U + q*modulus. Of 96 bits 64..95 stay, that is
 * R*x^32 with R = U*x^-32 = V*x^32 modulo P. */
__attribute__((target("pclmul,sse4.1"), always_inline)) static inline uint32_t crc_reduce(const struct crc_poly *poly,
                                                                                          __m128i v)
{
    const __m128i by128 = _mm_loadu_si128((const __m128i *)poly->fold[FOLD_128]);
    const __m128i barrett = _mm_set_epi64x((int64_t)poly->modulus, (int64_t)poly->inverse);
    __m128i u = _mm_xor_si128(_mm_clmulepi64_si128(v, by128, 0x10), _mm_srli_si128(v, 8));
    __m128i q = _mm_clmulepi64_si128(u, barrett, 0x00);

    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(u, _mm_clmulepi64_si128(q, barrett, 0x10)), 2);
}

#endif
