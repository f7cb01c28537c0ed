/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer_digest.c - the digest of a file depends on its octets alone, not on how they come or which of them are holes; a
 * hole of any length costs as much as one block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "tools/xfer/digest.c"

#include "tests/lib/rng.h"

enum { LENGTH = 5 * DIGEST_BLOCK, ROUNDS = 300 };

static void value_of(const uint8_t *p, size_t n, uint8_t value[XFER_DIGEST])
{
    struct file_digest digest;

    assert_true(digest_open(&digest));
    digest_octets(&digest, p, n);
    digest_value(&digest, value);
    digest_close(&digest);
}

/* Blocks of zeros, of data, and with a few octets at chance. */
static size_t make_file(struct rng *r, uint8_t *p)
{
    size_t n = rng_below(r, LENGTH + 1);

    memset(p, 0, LENGTH);
    for (size_t i = 0; i < LENGTH; i += DIGEST_BLOCK) {
        uint32_t kind = rng_below(r, 4);

        if (kind == 1)
            rng_fill(r, p + i, DIGEST_BLOCK);
        else if (kind == 2)
            p[i + rng_below(r, DIGEST_BLOCK)] = 1;
        else if (kind == 3)
            p[i + (rng_below(r, 2) ? 0 : DIGEST_BLOCK - 1)] = 1;
    }
    return n;
}

static void depends_on_octets_alone(void **state)
{
    static uint8_t octets[LENGTH];
    struct rng r = {3};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t whole[XFER_DIGEST], pieces[XFER_DIGEST];
        struct file_digest digest;
        size_t n = make_file(&r, octets);

        value_of(octets, n, whole);
        assert_true(digest_open(&digest));
        for (size_t at = 0; at < n;) {
            size_t most = rng_below(&r, 3) ? DIGEST_BLOCK : LENGTH;
            size_t take = 1 + rng_below(&r, (uint32_t)most);

            take = take < n - at ? take : n - at;
            if (all_zero(octets + at, take) && rng_below(&r, 2))
                digest_zeros(&digest, take);
            else
                digest_octets(&digest, octets + at, take);
            at += take;
            if (rng_below(&r, 4) == 0) {
                value_of(octets, at, pieces);
                digest_value(&digest, whole);
                assert_memory_equal(pieces, whole, XFER_DIGEST);
                value_of(octets, n, whole);
            }
        }
        digest_value(&digest, pieces);
        assert_memory_equal(pieces, whole, XFER_DIGEST);
        digest_close(&digest);
    }
}

/* Each of these differs from all others. */
static void notices_each_octet(void **state)
{
    static uint8_t octets[LENGTH];
    static uint8_t values[LENGTH / 512 + 8][XFER_DIGEST];
    size_t count = 0;

    (void)state;
    value_of(octets, 0, values[count++]);
    value_of(octets, 1, values[count++]);
    value_of(octets, DIGEST_BLOCK - 1, values[count++]);
    value_of(octets, DIGEST_BLOCK, values[count++]);
    value_of(octets, DIGEST_BLOCK + 1, values[count++]);
    value_of(octets, LENGTH, values[count++]);
    for (size_t at = 0; at < LENGTH; at += 512) {
        octets[at] = 1;
        value_of(octets, LENGTH, values[count++]);
        octets[at] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(values[i], values[k], XFER_DIGEST);
    }
}

/* Computed from doc/cp-protocol.md by another program: it is the same on each machine. */
static void as_documented(void **state)
{
    static const uint8_t of_nothing[XFER_DIGEST] = {0x62, 0x3c, 0x0c, 0x1e, 0x1d, 0x09, 0x36, 0xfd,
                                                    0xde, 0x95, 0xcb, 0x2d, 0xc1, 0x91, 0xc8, 0xa1};
    static const uint8_t of_file[XFER_DIGEST] = {0x7e, 0x1c, 0xaf, 0x6d, 0xda, 0xb3, 0xfe, 0x59,
                                                 0xdd, 0x4e, 0x93, 0x40, 0xc2, 0x2f, 0x56, 0xd7};
    uint8_t value[XFER_DIGEST];
    struct file_digest digest;

    (void)state;
    assert_true(digest_open(&digest));
    digest_value(&digest, value);
    assert_memory_equal(value, of_nothing, XFER_DIGEST);
    digest_octets(&digest, (const uint8_t *)"abc", 3);
    digest_zeros(&digest, 20000);
    digest_octets(&digest, (const uint8_t *)"xyz", 3);
    digest_zeros(&digest, 5000);
    digest_value(&digest, value);
    assert_memory_equal(value, of_file, XFER_DIGEST);
    digest_close(&digest);
}

/* Would take years if it hashed what it counts. */
static void long_holes(void **state)
{
    const uint64_t huge = UINT64_C(1) << 62;
    uint8_t first[XFER_DIGEST], second[XFER_DIGEST];
    struct file_digest digest;

    (void)state;
    assert_true(digest_open(&digest));
    digest_octets(&digest, (const uint8_t *)"x", 1);
    for (int i = 0; i < 1000; i++)
        digest_zeros(&digest, huge / 1000);
    digest_value(&digest, first);
    digest_reset(&digest);
    digest_octets(&digest, (const uint8_t *)"x", 1);
    digest_zeros(&digest, huge / 1000 * 1000);
    digest_value(&digest, second);
    assert_memory_equal(first, second, XFER_DIGEST);
    digest_zeros(&digest, 1);
    digest_value(&digest, second);
    assert_memory_not_equal(first, second, XFER_DIGEST);
    digest_close(&digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depends_on_octets_alone),
        cmocka_unit_test(notices_each_octet),
        cmocka_unit_test(long_holes),
        cmocka_unit_test(as_documented),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
