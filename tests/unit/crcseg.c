/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crcseg.c - the segments' CRC follows from the document's generator, in every variant that runs here. */
#include "base/bytes.h"
#include "base/crcseg.h"
#include "tests/lib/crc_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct crc_subject subject = {&crcseg_poly, crcseg_variants, crcseg, crcseg_copy, crcseg_name};

/* SEG-3.4-40: "exactly the Ethernet CRC" except for the generator, given as its exponents and as 0xDB710641. */
static void generator(void **state)
{
    static const unsigned exponents[] = {31, 30, 28, 27, 25, 24, 22, 21, 20, 16, 10, 9, 6, 0};
    uint32_t msb_first = 0, reflected = 0;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++) {
        msb_first |= 1u << exponents[i];
        reflected |= 1u << (31 - exponents[i]);
    }
    assert_int_equal(msb_first, 0xdb710641);
    assert_int_equal(crcseg_poly.reflected, reflected);
}

/* SEG-3.4-40 as stored octets, and SEG-3.4-42: the result differs from that of generators easily confused with it. */
static void stored_octets(void **state)
{
    static const uint8_t check[4] = {0x1e, 0x66, 0x7e, 0xe0}, ethernet[4] = {0x26, 0x39, 0xf4, 0xcb},
                         not_reflected[4] = {0xc2, 0x81, 0xfb, 0xc7};
    uint8_t stored[4];

    (void)state;
    put32le(stored, crcseg(0, "123456789", 9));
    assert_memory_equal(stored, check, 4);
    assert_memory_not_equal(stored, ethernet, 4);
    assert_memory_not_equal(stored, not_reflected, 4);
}

static void known_results(void **state)
{
    uint8_t octets[4][32];
    unsigned i;

    (void)state;
    memset(octets[0], 0x00, 32);
    memset(octets[1], 0xff, 32);
    for (i = 0; i < 32; i++) {
        octets[2][i] = (uint8_t)i;
        octets[3][i] = (uint8_t)(31 - i);
    }
    assert_int_equal(crcseg(0, octets[0], 32), 0xf2f1998c);
    assert_int_equal(crcseg(0, octets[1], 32), 0x654f1871);
    assert_int_equal(crcseg(0, octets[2], 32), 0x10a7db23);
    assert_int_equal(crcseg(0, octets[3], 32), 0xfe953313);
    assert_int_equal(crcseg(0, "", 0), 0);
}

/* Octets followed by their own stored CRC always give the same result, and only in this octet order. */
static void residue(void **state)
{
    uint8_t octets[104];
    size_t n;

    (void)state;
    crc_fill(octets, sizeof(octets), 29);
    for (n = 0; n <= 100; n++) {
        put32le(octets + n, crcseg(0, octets, n));
        assert_int_equal(crcseg(0, octets, n + 4), 0xb9509bb6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CRC_CHECKS(&subject),
        cmocka_unit_test(generator),
        cmocka_unit_test(stored_octets),
        cmocka_unit_test(known_results),
        cmocka_unit_test(residue),
    };

    return cmocka_run_group_tests_name("crcseg", tests, NULL, NULL);
}
