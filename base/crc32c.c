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
