/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32.c - Ethernet's CRC-32 in every variant that runs here, and what a change of its register becomes. */
#include "base/bytes.h"
#include "base/crc32.h"
#include "tests/lib/crc_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct crc_subject subject = {&crc32_poly, crc32_variants, crc32, crc32_copy, crc32_name};

static void known_results(void **state)
{
    static const uint8_t check[4] = {0x26, 0x39, 0xf4, 0xcb};
    uint8_t stored[4], zeros[32] = {0};

    (void)state;
    put32le(stored, crc32(0, "123456789", 9));
    assert_memory_equal(stored, check, 4);
    assert_int_equal(crc32(0, zeros, 32), 0x190a55ad);
    assert_int_equal(crc32(0, "", 0), 0);
}

/* A CRC is linear: octets that differ change it by the same amount, whatever else is in them. */
static void shift(void **state)
{
    uint8_t octets[4200], other[4200];

    (void)state;
    crc_fill(octets, sizeof(octets), 7);
    for (size_t behind = 0; behind + 1 < sizeof(octets); behind += behind < 70 ? 1 : 61) {
        size_t at = sizeof(octets) - 1 - behind;

        memcpy(other, octets, sizeof(octets));
        other[at] ^= 0x5a;
        assert_int_equal(crc32(0, octets, sizeof(octets)) ^ crc32(0, other, sizeof(other)),
                         crc32_shift(crc32_poly.table[0][0x5a], behind));
    }
    assert_int_equal(crc32_shift(0, 1000), 0);
    assert_int_equal(crc32_shift(0x12345678, 0), 0x12345678);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CRC_CHECKS(&subject),
        cmocka_unit_test(known_results),
        cmocka_unit_test(shift),
    };

    return cmocka_run_group_tests_name("crc32", tests, NULL, NULL);
}
