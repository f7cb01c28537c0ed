/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crcseg.c - the CRC of RDMA/TCP segments: its constants, its variants and its functions. */
#include "base/crcseg.h"

#include "base/crc.h"

#define CRC_POLY 0x82608edbu /* x^32 + 0xdb710641, bits reversed */
#include "base/crc_table.h"

const struct crc_poly crcseg_poly = {
    .reflected = CRC_POLY,
    .table = crc_table,
    .fold =
        {
            [FOLD_2048] = {0x826a2394, 0x94f059c7}, /* x^2079, x^2015 */
            [FOLD_1024] = {0x64402c5d, 0x6ff458b6}, /* x^1055, x^991 */
            [FOLD_512] = {0x487b9c8a, 0x0a7f26c7},  /* x^543, x^479 */
            [FOLD_384] = {0x80426eb9, 0xcd96cbd7},  /* x^415, x^351 */
            [FOLD_256] = {0xbc029fb1, 0xe4f01484},  /* x^287, x^223 */
            [FOLD_128] = {0x9259a548, 0xd02dd974},  /* x^159, x^95 */
        },
    .modulus = 0x104c11db7,
    .inverse = 0xd33ca1fec8851aab,
};

const struct crc_variant crcseg_variants[] = {
#if defined(__x86_64__)
    {"vpclmulqdq", crc_fold_vpclmul_runs, crc_fold_vpclmul},
    {"pclmulqdq", crc_fold_pclmul_runs, crc_fold_pclmul},
#endif
    {"portable", NULL, crc_slice},
    {NULL, NULL, NULL},
};

static _Atomic(const struct crc_variant *) chosen;

uint32_t crcseg(uint32_t crc, const void *p, size_t n)
{
    return ~crc_choose(&chosen, crcseg_variants)->run(&crcseg_poly, ~crc, NULL, p, n);
}

uint32_t crcseg_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    return ~crc_choose(&chosen, crcseg_variants)->run(&crcseg_poly, ~crc, dst, src, n);
}

const char *crcseg_name(void)
{
    return crc_choose(&chosen, crcseg_variants)->name;
}
