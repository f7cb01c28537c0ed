/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdrbytes.c - the bounded XDR stream: numbers, opaques with their padding, and streams that are too short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/xdrbytes.h"

/* RPCR-2.2.4-01, RPCR-2.2.4-02 */
static void round_trip(void **state)
{
    static const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8}, zeros[4];
    uint8_t buffer[64];

    (void)state;
    for (size_t n = 0; n <= sizeof(data); n++) {
        struct xdr_out out = {.at = buffer, .left = sizeof(buffer)};
        struct xdr_in in;
        const uint8_t *got;

        memset(buffer, 0xff, sizeof(buffer));
        xdr_put32(&out, 0x01020304);
        xdr_putopaque(&out, data, n);
        xdr_put64(&out, 0x1122334455667788);
        assert_false(out.bad);
        in = (struct xdr_in){.at = buffer, .left = sizeof(buffer) - out.left};
        assert_int_equal(in.left, 12 + n + xdr_roundup(n));
        assert_int_equal(xdr_get32(&in), 0x01020304);
        got = xdr_getopaque(&in, n);
        assert_memory_equal(got, data, n);
        assert_memory_equal(got + n, zeros, xdr_roundup(n));
        assert_true(xdr_get64(&in) == 0x1122334455667788);
        assert_true(in.left == 0 && !in.bad);
    }
}

/* RPCR-8.2.2.3-04: the reader ignores the value of padding octets. */
static void roundup_is_ignored(void **state)
{
    static const uint8_t bytes[8] = {1, 2, 3, 4, 5, 9, 9, 9};
    struct xdr_in in = {.at = bytes, .left = 8};

    (void)state;
    assert_ptr_equal(xdr_getopaque(&in, 5), bytes);
    assert_true(in.left == 0 && !in.bad);
}

static void short_streams(void **state)
{
    uint8_t buffer[16] = {0};

    (void)state;
    for (size_t n = 0; n < 12; n++) {
        struct xdr_in in = {.at = buffer, .left = n};
        struct xdr_out out = {.at = buffer, .left = n};

        xdr_get32(&in);
        xdr_get64(&in);
        assert_true(in.bad);
        xdr_put64(&out, 0);
        xdr_put32(&out, 0);
        assert_true(out.bad);
        in = (struct xdr_in){.at = buffer, .left = n};
        assert_null(xdr_getopaque(&in, n + 1));
        in = (struct xdr_in){.at = buffer, .left = n};
        assert_null(xdr_getopaque(&in, SIZE_MAX - 1));
        assert_true(in.bad);
        out = (struct xdr_out){.at = buffer, .left = n};
        xdr_putopaque(&out, buffer, n + 1);
        assert_true(out.bad);
    }
}

static void booleans(void **state)
{
    static const uint8_t bytes[12] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2};
    struct xdr_in in = {.at = bytes, .left = 12};

    (void)state;
    assert_false(xdr_getbool(&in));
    assert_true(xdr_getbool(&in) && !in.bad);
    assert_false(xdr_getbool(&in));
    assert_true(in.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(roundup_is_ignored),
        cmocka_unit_test(short_streams),
        cmocka_unit_test(booleans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
