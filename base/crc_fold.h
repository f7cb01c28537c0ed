/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_fold.h - the arithmetic of the carry-less multiplication kernels. Only crc_fold_*.c include it.
 *
 * Sixteen octets in a vector register are a polynomial of degree 127 in which bit i stands for x^(127-i), since the
 * lowest bit of the first octet comes first. Write it as V = H*x^64 + L, where H is the low half of the register and
 * L the high half. Folding replaces V by a congruent polynomial that stands D bits further on, where it can be
 * added:
 *
 *     V*x^D = H*x^(D+64) + L*x^D                  (mod P)
 *
 * A constant R has 32 bits, with bit i for x^(31-i). In a 64-bit half, where bit i stands for x^(63-i), the same
 * bits mean R*x^32. PCLMULQDQ of two halves A and B yields A*B*x: the product of the bits 0, x^63 and x^63, is
 * placed in bit 0 of 128, which stands for x^127. So A times the constant is A*R*x^33. H therefore needs R =
 * x^(D+64-33), L needs R = x^(D-33), and both products fit into 128 bits: their degree is at most 63 + 31 + 33. */
#ifndef RDDP_BASE_CRC_FOLD_H
#define RDDP_BASE_CRC_FOLD_H

#include "base/crc.h"

#include <immintrin.h>

/* Returns the CRC, V*x^32 mod P, for the remaining 128 bits V.
 *
 * First U = H*x^128 + L*x^64, which is congruent to V*x^64 and whose 32 lowest powers are zero: the constant for H
 * is x^(128-33), as in folding by 128 bits, and L is only shifted. Then add the multiple of P that clears bits 0..63
 * of U (Montgomery reduction): q = U * inverse modulo y^64, and U + q*modulus. Of the 96 bits, bits 64..95 are left:
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
