/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.h - what a reflected 32-bit CRC is made of and what computes it: the inside of crc32c.h and crcseg.h. */
#ifndef RDDP_BASE_CRC_H
#define RDDP_BASE_CRC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Distances in bits over which the folding kernels carry what they have read; crc_fold.h says how. */
enum crc_distance { FOLD_2048, FOLD_1024, FOLD_512, FOLD_384, FOLD_256, FOLD_128, FOLD_LAST, FOLD_ROWS };

/* All that depends on the generator polynomial P. Every constant is a remainder x^k mod P written as the register is,
 * bit 31 for x^0 and bit 0 for x^31; tests/lib/crc_check.c works each of them out anew, bit by bit. */
struct crc_poly {
    uint32_t reflected;           /* P without x^32 */
    const uint32_t (*table)[256]; /* table[s][i]: the register after octet i and s zero octets, 16 rows */
    uint64_t fold[FOLD_ROWS][2];  /* a distance of D bits: x^(D+31) mod P, x^(D-33) mod P; FOLD_LAST is zero */
    uint64_t modulus;             /* P with x^32: reflected << 1 | 1 */
    uint64_t inverse;             /* modulus * inverse = 1 modulo y^64, bit i of both taken as y^i */
};

/* Carries the bare register over n octets of src, and copies them to dst unless it is NULL. No complement here.
 * Each octet of src is read once: the result describes what dst holds even while somebody else writes to src. */
typedef uint32_t crc_kernel(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n);

crc_kernel crc_slice; /* runs everywhere */

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && !defined(__ARM_BIG_ENDIAN)
#define CRC32C_ARM 1
#endif
#if defined(__x86_64__) || defined(CRC32C_ARM)
crc_kernel crc32c_instr; /* CRC32c, whatever the polynomial */
#endif
#if defined(__x86_64__)
bool crc32c_instr_runs(void);
crc_kernel crc_fold_pclmul;
bool crc_fold_pclmul_runs(void);
crc_kernel crc_fold_vpclmul;
bool crc_fold_vpclmul_runs(void);
#endif

/* For crc32c_instr.c: crc32c_over[i] carries a register over (i + 1) * CRC32C_OVER_UNIT octets. With k = 256 * (i + 1)
 * it is R = x^(k-33) mod P. A register A times R, each with bit i for x^(31-i), is as a word of 64 bits, with bit i for
 * x^(63-i), A*R*x, and the crc32 instruction multiplies the word it takes by x^32. */
enum { CRC32C_OVER_UNIT = 32, CRC32C_OVER_UNITS = 64 };
extern const uint32_t crc32c_over[CRC32C_OVER_UNITS];

/* A list of variants runs from the fastest to one that runs everywhere (runs is NULL) and ends with a NULL name. */
struct crc_variant {
    const char *name;
    bool (*runs)(void);
    crc_kernel *run;
};

extern const struct crc_poly crc32c_poly, crcseg_poly;
extern const struct crc_variant crc32c_variants[], crcseg_variants[];

static inline bool crc_variant_runs(const struct crc_variant *v)
{
    return !v->runs || v->runs();
}

/* The first variant of the list that runs here. Threads that come here together all find the same answer, and it points
 * to constants, so a relaxed pointer is all the synchronisation there is to do. */
static inline const struct crc_variant *crc_choose(_Atomic(const struct crc_variant *) *chosen,
                                                   const struct crc_variant *list)
{
    const struct crc_variant *v = atomic_load_explicit(chosen, memory_order_relaxed);

    if (!v) {
        v = list;
        while (!crc_variant_runs(v))
            v++;
        atomic_store_explicit(chosen, v, memory_order_relaxed);
    }
    return v;
}

#endif
