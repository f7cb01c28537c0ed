/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32c.c - CRC32c gives the results of RFC 3720 B.4 in every variant that runs here, and detects the errors that it
 * has to detect. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/lib/crc_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct crc_subject subject = {&crc32c_poly, crc32c_variants, crc32c, crc32c_copy, crc32c_name};

/* The examples of RFC 3720 B.4, which show octets in wire order, least significant first. MPA-3.2-09. */
static void rfc3720_examples(void **state)
{
    static const uint8_t read_command[48] = {
        [0] = 0x01, [1] = 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    uint8_t octets[4][32];
    unsigned i;

    (void)state;
    memset(octets[0], 0x00, 32);
    memset(octets[1], 0xff, 32);
    for (i = 0; i < 32; i++) {
        octets[2][i] = (uint8_t)i;
        octets[3][i] = (uint8_t)(31 - i);
    }
    assert_int_equal(crc32c(0, octets[0], 32), 0x8a9136aa);
    assert_int_equal(crc32c(0, octets[1], 32), 0x62a8ab43);
    assert_int_equal(crc32c(0, octets[2], 32), 0x46dd794e);
    assert_int_equal(crc32c(0, octets[3], 32), 0x113fdb5c);
    assert_int_equal(crc32c(0, read_command, sizeof(read_command)), 0xd9963a56);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
}

/* Octets followed by their own stored CRC always give the same result. */
static void residue(void **state)
{
    uint8_t octets[104];
    size_t n;

    (void)state;
    crc_fill(octets, sizeof(octets), 29);
    for (n = 0; n <= 100; n++) {
        put32le(octets + n, crc32c(0, octets, n));
        assert_int_equal(crc32c(0, octets, n + 4), 0x48674bc7);
    }
}

static void lane_constants(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < CRC32C_OVER_UNITS; i++)
        assert_int_equal(crc32c_over[i], crc_power_of_x(&crc32c_poly, 8 * CRC32C_OVER_UNIT * (i + 1) - 33));
}

enum { FPDU = 28, FPDU_BITS = 8 * FPDU };

static void flip(uint8_t *p, unsigned bit)
{
    p[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static bool accepted(const uint8_t *fpdu)
{
    return crc32c(0, fpdu, FPDU - 4) == get32le(fpdu + FPDU - 4);
}

/* MPA-3.2-09: any one, two or three wrong bits of an FPDU are found, in the CRC itself too. */
static void finds_three_wrong_bits(void **state)
{
    uint8_t fpdu[FPDU];
    unsigned i, j, k;

    (void)state;
    crc_fill(fpdu, FPDU - 4, 31);
    put32le(fpdu + FPDU - 4, crc32c(0, fpdu, FPDU - 4));
    assert_true(accepted(fpdu));
    for (i = 0; i < FPDU_BITS; i++) {
        flip(fpdu, i);
        assert_false(accepted(fpdu));
        for (j = i + 1; j < FPDU_BITS; j++) {
            flip(fpdu, j);
            if (accepted(fpdu))
                fail_msg("bits %u and %u pass", i, j);
            for (k = j + 1; k < FPDU_BITS; k++) {
                flip(fpdu, k);
                if (accepted(fpdu))
                    fail_msg("bits %u, %u and %u pass", i, j, k);
                flip(fpdu, k);
            }
            flip(fpdu, j);
        }
        flip(fpdu, i);
    }
    assert_true(accepted(fpdu));
}

/* MPA-3.2-09: a burst of up to 32 bits is found wherever it is. Its first and its last bit are wrong; those between are
 * random. */
static void finds_bursts(void **state)
{
    uint8_t fpdu[FPDU], bad[FPDU];
    uint32_t seed = 37, burst;
    unsigned start, length, round, i;

    (void)state;
    crc_fill(fpdu, FPDU - 4, 41);
    put32le(fpdu + FPDU - 4, crc32c(0, fpdu, FPDU - 4));
    for (length = 1; length <= 32; length++) {
        for (start = 0; start + length <= FPDU_BITS; start++) {
            for (round = 0; round < 20; round++) {
                burst = crc_random(&seed) | 1 | 1u << (length - 1);
                memcpy(bad, fpdu, FPDU);
                for (i = 0; i < length; i++)
                    if (burst >> i & 1)
                        flip(bad, start + i);
                if (accepted(bad))
                    fail_msg("a burst of %u bits at bit %u passes (%#x)", length, start, burst);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CRC_CHECKS(&subject),
        cmocka_unit_test(rfc3720_examples),
        cmocka_unit_test(residue),
        cmocka_unit_test(lane_constants),
        cmocka_unit_test(finds_three_wrong_bits),
        cmocka_unit_test(finds_bursts),
    };

    return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
