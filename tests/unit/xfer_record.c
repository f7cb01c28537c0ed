/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer_record.c - records of the copying protocol: what is encoded is decoded, at its place on the wire, and nothing
 * that is cut off, or longer than its record, is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "tools/xfer/record_code.c"

/* Each octet of a number is another one. */
static const struct xfer_record full = {
    .result = 0x1112,
    .flags = 0x2122,
    .id = 0x31323334,
    .mode = 0x41424344,
    .length = 0x51525354,
    .key = 0x61626364,
    .address = 0x7172737475767778,
    .size = 0x8182838485868788,
    .offset = 0x9192939495969798,
    .count = 0xa1a2a3a4a5a6a7a8,
    .seconds = -2,
    .nanoseconds = 999999999,
    .digest = "0123456789abcde",
    .path = "dir/name",
    .name = "target",
};

/* The fields of a FILE, as doc/cp-protocol.md has them. */
static const uint8_t file_octets[] = {
    0,    10,   0,    59,                                        /* type, length */
    0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,              /* id, mode */
    0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,              /* size */
    0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,              /* offset */
    0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,              /* count */
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,              /* seconds */
    0x3b, 0x9a, 0xc9, 0xff,                                      /* nanoseconds */
    0,    9,    'd',  'i',  'r',  '/',  'n',  'a',  'm', 'e', 0, /* path */
};

static void order_on_the_wire(void **state)
{
    uint8_t octets[XFER_RECORD_MAX];
    struct xfer_record record = full;

    (void)state;
    record.type = XFER_FILE;
    assert_int_equal(xfer_encode(octets, &record), file_octets[3]);
    assert_memory_equal(octets, file_octets, file_octets[3]);
}

/* Each type comes back as it was sent, and then it is the same when it is sent again. */
static void every_type(void **state)
{
    (void)state;
    for (int type = 1; type < XFER_TYPES; type++) {
        uint8_t octets[XFER_RECORD_MAX] = {0}, again[XFER_RECORD_MAX] = {0};
        struct xfer_record record = full, got;

        record.type = (enum xfer_type)type;
        size_t n = xfer_encode(octets, &record);
        assert_true(n >= 4);
        assert_int_equal(xfer_decode(octets, n, &got), n);
        assert_int_equal(got.type, type);
        assert_int_equal(xfer_encode(again, &got), n);
        assert_memory_equal(octets, again, n);
        /* It may be followed by another one, but has to be all there. */
        assert_int_equal(xfer_decode(octets, sizeof(octets), &got), n);
        for (size_t cut = 0; cut < n; cut++) {
            uint8_t *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees a look behind it */
            assert_non_null(exact);
            memcpy(exact, octets, cut);
            assert_int_equal(xfer_decode(exact, cut, &got), 0);
            if (cut >= 4) {
                fields_put(exact + 2, cut, 2);
                assert_int_equal(xfer_decode(exact, cut, &got), 0);
            }
            free(exact);
        }
        fields_put(octets + 2, n + 1, 2);
        assert_int_equal(xfer_decode(octets, n + 1, &got), 0);
    }
}

static void limits(void **state)
{
    static char longest[XFER_PATH + 2];
    uint8_t octets[XFER_RECORD_MAX + 16];
    struct xfer_record record = {.type = XFER_START, .path = longest, .name = longest}, got;

    (void)state;
    memset(longest, 'x', XFER_PATH);
    size_t n = xfer_encode(octets, &record);
    assert_true(n <= XFER_RECORD_MAX);
    assert_int_equal(xfer_decode(octets, n, &got), n);
    assert_string_equal(got.path, longest);
    fields_put(octets, XFER_TYPES, 2);
    assert_int_equal(xfer_decode(octets, n, &got), 0);
    fields_put(octets, 0, 2);
    assert_int_equal(xfer_decode(octets, n, &got), 0);
    record = full;
    record.type = XFER_DIRECTORY_END;
    record.nanoseconds = 1000000000;
    assert_int_equal(xfer_decode(octets, xfer_encode(octets, &record), &got), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_on_the_wire),
        cmocka_unit_test(every_type),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
