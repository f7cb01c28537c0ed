/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_ooo.c - the ranges received behind holes, compared with a model; their limit; the order of SACK blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tcp/ooo_queue.h"

enum { OCTETS = 400, BUFFER = 300 };

static void against_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct utcp_ooo_range slots[BUFFER];
        struct utcp_ooo h;
        struct rng r = {seed};
        bool there[OCTETS + 1] = {0};
        uint64_t next = 1, kept = 0, total = 0;

        utcp_ooo_init(&h, slots, BUFFER);
        for (int step = 0; step < 300; step++) {
            uint64_t from = next + 1 + rng_below(&r, 60), to = from + 1 + rng_size(&r, 30), gap_from, gap_to;

            for (; from < to && to <= OCTETS; from = gap_to) {
                gap_from = from;
                gap_to = to;
                if (!utcp_ooo_missing(&h, &gap_from, &gap_to)) {
                    for (uint64_t i = from; i < to; i++)
                        assert_true(there[i]);
                    break;
                }
                for (uint64_t i = from; i < gap_to; i++) {
                    assert_int_equal(there[i], i < gap_from);
                    there[i] = true;
                }
                total += (gap_to - gap_from) / 2;
                assert_true(utcp_ooo_add(&h, gap_from, gap_to, (gap_to - gap_from) / 2));
            }
            assert_true(h.kept + kept == total);
            if (rng_one_in(&r, 5) && next < OCTETS) {
                there[next] = true;
                next = utcp_ooo_advance(&h, next + 1, &kept);
                assert_false(next <= OCTETS && there[next]);
                for (uint64_t i = 1; i < next; i++)
                    assert_true(there[i]);
            }
        }
    }
}

/* Ranges up to the limit fit; one more is refused. An addition that touches a range needs no new entry. */
static void limit(void **state)
{
    struct utcp_ooo_range slots[4];
    struct utcp_ooo h;
    uint64_t kept = 0;

    (void)state;
    utcp_ooo_init(&h, slots, 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(utcp_ooo_fits(&h, 10 + 4 * i, 12 + 4 * i));
        assert_true(utcp_ooo_add(&h, 10 + 4 * i, 12 + 4 * i, 2));
    }
    assert_false(utcp_ooo_fits(&h, 100, 101));
    assert_false(utcp_ooo_add(&h, 100, 101, 1));
    assert_false(utcp_ooo_add(&h, 5, 6, 1));
    assert_true(h.count == 4 && h.kept == 8);
    assert_true(utcp_ooo_add(&h, 12, 14, 2));
    assert_int_equal(h.count, 3);
    assert_true(utcp_ooo_add(&h, 5, 6, 1));
    assert_int_equal(utcp_ooo_advance(&h, 5, &kept), 6);
    assert_int_equal(kept, 1);
    assert_int_equal(utcp_ooo_advance(&h, 10, &kept), 16);
    assert_int_equal(kept, 7);
}

/* RFC 2018 4: the range of the latest segment comes first, then the earlier ones, each once. */
static void blocks(void **state)
{
    struct utcp_ooo_range slots[8];
    struct utcp_ooo h;
    struct utcp_block b[4];

    (void)state;
    utcp_ooo_init(&h, slots, 8);
    assert_int_equal(utcp_ooo_blocks(&h, 0, b, 4), 0);
    for (uint64_t i = 1; i <= 5; i++)
        utcp_ooo_add(&h, 10 * i, 10 * i + 3, 0);
    utcp_ooo_add(&h, 23, 25, 0);
    assert_int_equal(utcp_ooo_blocks(&h, 0xfffffff0, b, 4), 4);
    assert_true(b[0].from == 20 + 0xfffffff0 && b[0].to == 25 + 0xfffffff0);
    assert_true(b[1].from == 50 + 0xfffffff0 && b[2].from == 40 + 0xfffffff0 && b[3].from == 30 + 0xfffffff0);
    assert_int_equal(utcp_ooo_blocks(&h, 0, b, 2), 2);
    /* A range that grows repeatedly does not displace the others. */
    for (uint64_t i = 0; i < 10; i++)
        utcp_ooo_add(&h, 53 + i, 54 + i, 0);
    assert_int_equal(utcp_ooo_blocks(&h, 0, b, 4), 4);
    assert_true(b[0].from == 50 && b[0].to == 63 && b[1].from == 20 && b[2].from == 40 && b[3].from == 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_a_model),
        cmocka_unit_test(limit),
        cmocka_unit_test(blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
