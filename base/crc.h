/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.h - the parameters and kernels of a reflected 32-bit CRC: internal to crc32.h, crc32c.h and crcseg.h. */
#ifndef RDDP_BASE_CRC_H
#define RDDP_BASE_CRC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The distances in bits over which the folding kernels carry a register; see crc_fold.h. */
enum crc_distance { FOLD_2048, FOLD_1024, FOLD_512, FOLD_384, FOLD_256, FOLD_128, FOLD_LAST, FOLD_ROWS };

/* All constants that depend on the generator polynomial P. Each is a remainder x^k mod P in the bit order of the
 * register: bit 31 for x^0, bit 0 for x^31. tests/lib/crc_check.c computes each of them bit by bit. */
struct crc_poly {
    uint32_t reflected;           /* P without x^32 */
    const uint32_t (*table)[256]; /* table[s][i]: the register after octet i and s zero octets, 16 rows */
    uint64_t fold[FOLD_ROWS][2];  /* a distance of D bits: x^(D+31) mod P, x^(D-33) mod P; FOLD_LAST is zero */
    uint64_t modulus;             /* P with x^32: reflected << 1 | 1 */
    uint64_t inverse;             /* modulus * inverse = 1 modulo y^64, bit i of both taken as y^i */
};

/* Advances the bare register (not complemented) over the n octets of src, and copies them to dst unless it is NULL.
 * Each octet of src is read once, so the result describes dst even if another thread writes to src. */
typedef uint32_t crc_kernel(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n);

crc_kernel crc_slice; /* runs on all machines */

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && !defined(__ARM_BIG_ENDIAN)
#define CRC32C_ARM 1
#endif
#if defined(__x86_64__) || defined(CRC32C_ARM)
crc_kernel crc32c_instr; /* computes CRC32c whatever the polynomial */
#endif
#if defined(__x86_64__)
bool crc32c_instr_runs(void);
crc_kernel crc_fold_pclmul;
bool crc_fold_pclmul_runs(void);
crc_kernel crc_fold_vpclmul;
bool crc_fold_vpclmul_runs(void);
#endif

/* For crc32c_instr.c: crc32c_over[i] advances a register over (i + 1) * CRC32C_OVER_UNIT octets. With k = 256 * (i + 1)
 * it is R = x^(k-33) mod P. In a register A and in R, bit i stands for x^(31-i). Their carry-less product, read as a
 * 64-bit word with bit i for x^(63-i), is A*R*x, and the crc32 instruction multiplies its operand by x^32. */
enum { CRC32C_OVER_UNIT = 32, CRC32C_OVER_UNITS = 64 };
extern const uint32_t crc32c_over[CRC32C_OVER_UNITS];

/* A list of variants starts with the fastest. One before its end runs on all machines (`runs` is NULL), and a NULL name
 * ends it. */
struct crc_variant {
    const char *name;
    bool (*runs)(void);
    crc_kernel *run;
};

extern const struct crc_poly crc32_poly, crc32c_poly, crcseg_poly;
extern const struct crc_variant crc32_variants[], crc32c_variants[], crcseg_variants[];

static inline bool crc_variant_runs(const struct crc_variant *v)
{
    return !v->runs || v->runs();
}

/* Returns the first variant of the list that runs here, and caches it in `chosen`. Threads that race find the same
 * answer, and it points to constants, so a relaxed load and store are enough. */
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
