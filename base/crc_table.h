/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_table.h - the tables of crc_slice.c for CRC_POLY, computed by the compiler. Each CRC's source file includes it
 * once. */

/* The register after a single octet 0x80 is x^32 mod P, after 0x40 it is x^33, and each further zero octet multiplies
 * it by x^8. So table[s][0x80 >> j] is x^(32 + 8s + j) mod P. A CRC is linear, so all other entries are sums of these.
 * The enumerators are these powers; each is the previous one times x. */
#define CRC_TIMES_X(r) ((int)((uint32_t)(r) >> 1 ^ ((r)&1 ? CRC_POLY : 0u)))
#define CRC_POWERS(s, before) \
    POWER##s##_0 = CRC_TIMES_X(before), POWER##s##_1 = CRC_TIMES_X(POWER##s##_0), \
    POWER##s##_2 = CRC_TIMES_X(POWER##s##_1), POWER##s##_3 = CRC_TIMES_X(POWER##s##_2), \
    POWER##s##_4 = CRC_TIMES_X(POWER##s##_3), POWER##s##_5 = CRC_TIMES_X(POWER##s##_4), \
    POWER##s##_6 = CRC_TIMES_X(POWER##s##_5), POWER##s##_7 = CRC_TIMES_X(POWER##s##_6)

enum {
    CRC_POWERS(0, 1), /* the register 1 is x^31 */
    CRC_POWERS(1, POWER0_7),
    CRC_POWERS(2, POWER1_7),
    CRC_POWERS(3, POWER2_7),
    CRC_POWERS(4, POWER3_7),
    CRC_POWERS(5, POWER4_7),
    CRC_POWERS(6, POWER5_7),
    CRC_POWERS(7, POWER6_7),
    CRC_POWERS(8, POWER7_7),
    CRC_POWERS(9, POWER8_7),
    CRC_POWERS(10, POWER9_7),
    CRC_POWERS(11, POWER10_7),
    CRC_POWERS(12, POWER11_7),
    CRC_POWERS(13, POWER12_7),
    CRC_POWERS(14, POWER13_7),
    CRC_POWERS(15, POWER14_7),
};

#define CRC_TERM(s, i, j) ((i) & (0x80 >> j) ? (uint32_t)POWER##s##_##j : 0u)
#define CRC_ENTRY(s, i) \
    (CRC_TERM(s, i, 0) ^ CRC_TERM(s, i, 1) ^ CRC_TERM(s, i, 2) ^ CRC_TERM(s, i, 3) ^ CRC_TERM(s, i, 4) ^ \
     CRC_TERM(s, i, 5) ^ CRC_TERM(s, i, 6) ^ CRC_TERM(s, i, 7))
#define CRC_4(s, i) CRC_ENTRY(s, i), CRC_ENTRY(s, i + 1), CRC_ENTRY(s, i + 2), CRC_ENTRY(s, i + 3)
#define CRC_16(s, i) CRC_4(s, i), CRC_4(s, i + 4), CRC_4(s, i + 8), CRC_4(s, i + 12)
#define CRC_64(s, i) CRC_16(s, i), CRC_16(s, i + 16), CRC_16(s, i + 32), CRC_16(s, i + 48)
#define CRC_256(s) CRC_64(s, 0), CRC_64(s, 64), CRC_64(s, 128), CRC_64(s, 192)

static const uint32_t crc_table[16][256] = {
    {CRC_256(0)},  {CRC_256(1)},  {CRC_256(2)},  {CRC_256(3)},  {CRC_256(4)},  {CRC_256(5)},
    {CRC_256(6)},  {CRC_256(7)},  {CRC_256(8)},  {CRC_256(9)},  {CRC_256(10)}, {CRC_256(11)},
    {CRC_256(12)}, {CRC_256(13)}, {CRC_256(14)}, {CRC_256(15)},
};
