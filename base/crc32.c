/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32.c - the CRC-32 of Ethernet: its constants, its variants and its functions. */
#include "base/crc32.h"

#include "base/crc.h"

#define CRC_POLY 0xedb88320u /* x^32 + 0x04c11db7, bits reversed */
#include "base/crc_table.h"

const struct crc_poly crc32_poly = {
    .reflected = CRC_POLY,
    .table = crc_table,
    .fold =
        {
            [FOLD_2048] = {0xce3371cb, 0xe95c1271}, /* x^2079, x^2015 */
            [FOLD_1024] = {0x33fff533, 0x910eeec1}, /* x^1055, x^991 */
            [FOLD_512] = {0x8f352d95, 0x1d9513d7},  /* x^543, x^479 */
            [FOLD_384] = {0x3db1ecdc, 0xaf449247},  /* x^415, x^351 */
            [FOLD_256] = {0xf1da05aa, 0x81256527},  /* x^287, x^223 */
            [FOLD_128] = {0xae689191, 0xccaa009e},  /* x^159, x^95 */
        },
    .modulus = 0x1db710641,
    .inverse = 0xb4e5b025f7011641,
};

const struct crc_variant crc32_variants[] = {
#if defined(__x86_64__)
    {"vpclmulqdq", crc_fold_vpclmul_runs, crc_fold_vpclmul},
    {"pclmulqdq", crc_fold_pclmul_runs, crc_fold_pclmul},
#endif
    {"portable", NULL, crc_slice},
    {NULL, NULL, NULL},
};

static _Atomic(const struct crc_variant *) chosen;

uint32_t crc32(uint32_t crc, const void *p, size_t n)
{
    return ~crc_choose(&chosen, crc32_variants)->run(&crc32_poly, ~crc, NULL, p, n);
}

uint32_t crc32_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    return ~crc_choose(&chosen, crc32_variants)->run(&crc32_poly, ~crc, dst, src, n);
}

const char *crc32_name(void)
{
    return crc_choose(&chosen, crc32_variants)->name;
}

/* The product of two registers modulo P; bit 31 stands for x^0. */
static uint32_t crc32_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = b >> 1 ^ (b & 1 ? CRC_POLY : 0);
    }
    return product;
}

uint32_t crc32_shift(uint32_t change, size_t n)
{
    uint32_t square = 1u << 23; /* x^8, and its squares */

    for (; n; n >>= 1) {
        if (n & 1)
            change = crc32_multiply(change, square);
        square = crc32_multiply(square, square);
    }
    return change;
}
