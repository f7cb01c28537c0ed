/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32c.c - CRC32c: its constants, its variants and its functions. */
#include "base/crc32c.h"

#include "base/crc.h"

#define CRC_POLY 0x82f63b78u /* x^32 + 0x1edc6f41, bits reversed */
#include "base/crc_table.h"

const struct crc_poly crc32c_poly = {
    .reflected = CRC_POLY,
    .table = crc_table,
    .fold =
        {
            [FOLD_2048] = {0xdcb17aa4, 0xb9e02b86}, /* x^2079, x^2015 */
            [FOLD_1024] = {0x6992cea2, 0x0d3b6092}, /* x^1055, x^991 */
            [FOLD_512] = {0x740eef02, 0x9e4addf8},  /* x^543, x^479 */
            [FOLD_384] = {0x1c291d04, 0xddc0152b},  /* x^415, x^351 */
            [FOLD_256] = {0x3da6d0cb, 0xba4fc28e},  /* x^287, x^223 */
            [FOLD_128] = {0xf20c0dfe, 0x493c7d27},  /* x^159, x^95 */
        },
    .modulus = 0x105ec76f1,
    .inverse = 0x4869ec38dea713f1,
};

const uint32_t crc32c_over[CRC32C_OVER_UNITS] = {
    0xba4fc28e, 0x9e4addf8, 0x0715ce53, 0x0d3b6092, 0x878a92a7, 0xab7aff2a, 0x83348832, 0xb9e02b86,
    0xb6dd949b, 0xbac2fd7b, 0xce7f39f4, 0xd270f1a2, 0x2b3cac5d, 0x1b03397f, 0xb3e32c28, 0xdd7e3b0c,
    0x10746f3c, 0x271d9844, 0x93a5f730, 0x6b749fb2, 0xcec3662e, 0xe6fc4e6a, 0xb0cd4768, 0xd7a4825c,
    0x0167d312, 0x26f6a60a, 0x98d8d9cb, 0x68bce87a, 0x6956fc3b, 0x3771e98f, 0x2178513a, 0x170076fa,
    0x6f345e45, 0xff0dba97, 0xf872e54c, 0x86d8e4d2, 0x5bb8f1bc, 0xb3af077a, 0xca6ef3ac, 0xdd66cbbb,
    0xe9e28eb4, 0xc9c8b782, 0x93e106a4, 0xd813b325, 0x2342001e, 0x6d9a4957, 0xd2c3ed1a, 0x9ef68d35,
    0xf2271e60, 0x2664fd8b, 0x02ee03b2, 0x363bd6b3, 0x5fabe670, 0x00bcf5f6, 0x17f27698, 0xaa7c7ad5,
    0xded288f8, 0x6d390dec, 0x6353c1cc, 0xf48642e9, 0xdd35bc8d, 0x9a5ede41, 0x45cddf4e, 0xa51b6135,
};

#if defined(__x86_64__)
/* Measured: below this length in octets the crc32 instruction is faster than a folding kernel. */
enum { FOLD_MIN = 192 };

static uint32_t instr_or_fold(const struct crc_poly *poly, uint32_t reg, uint8_t *dst, const uint8_t *src, size_t n)
{
    return n < FOLD_MIN ? crc32c_instr(poly, reg, dst, src, n) : crc_fold_vpclmul(poly, reg, dst, src, n);
}

static bool both_run(void)
{
    return crc32c_instr_runs() && crc_fold_vpclmul_runs();
}
#endif

/* The folding kernels alone are never chosen, since a faster variant precedes each; they are listed for tests and
 * benchmarks. */
const struct crc_variant crc32c_variants[] = {
#if defined(__x86_64__)
    {"sse4.2+vpclmulqdq", both_run, instr_or_fold},
    {"vpclmulqdq", crc_fold_vpclmul_runs, crc_fold_vpclmul},
    {"sse4.2", crc32c_instr_runs, crc32c_instr},
    {"pclmulqdq", crc_fold_pclmul_runs, crc_fold_pclmul},
#elif defined(CRC32C_ARM)
    {"armv8", NULL, crc32c_instr},
#endif
    {"portable", NULL, crc_slice},
    {NULL, NULL, NULL},
};

static _Atomic(const struct crc_variant *) chosen;

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    return ~crc_choose(&chosen, crc32c_variants)->run(&crc32c_poly, ~crc, NULL, p, n);
}

uint32_t crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    return ~crc_choose(&chosen, crc32c_variants)->run(&crc32c_poly, ~crc, dst, src, n);
}

const char *crc32c_name(void)
{
    return crc_choose(&chosen, crc32c_variants)->name;
}
