/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ranges.c - intervals merge, stay sorted, are limited in number, and agree with a bitmap. */
#include <string.h>

#include "base/ranges.h"
#include "tests/lib/engine.h"

static void expect(const struct ranges *r, uint32_t count, const struct range *range)
{
    assert_int_equal(r->count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(r->range[i].from, range[i].from);
        assert_int_equal(r->range[i].to, range[i].to);
    }
}

#define EXPECT(r, ...) \
    expect(r, sizeof((struct range[]){__VA_ARGS__}) / sizeof(struct range), (struct range[]){__VA_ARGS__})

static void test_merge(void **state)
{
    struct ranges r = {.count = 0};

    (void)state;
    assert_true(ranges_add(&r, 10, 20));
    EXPECT(&r, {10, 20});
    assert_true(ranges_add(&r, 10, 20));
    EXPECT(&r, {10, 20});
    assert_true(ranges_add(&r, 12, 15)); /* lies inside */
    EXPECT(&r, {10, 20});
    assert_true(ranges_add(&r, 20, 30)); /* touches the end */
    EXPECT(&r, {10, 30});
    assert_true(ranges_add(&r, 5, 10)); /* touches the beginning */
    EXPECT(&r, {5, 30});
    assert_true(ranges_add(&r, 40, 50));
    assert_true(ranges_add(&r, 32, 38));
    EXPECT(&r, {5, 30}, {32, 38}, {40, 50});
    assert_true(ranges_add(&r, 31, 39)); /* covers one interval, touches no other */
    EXPECT(&r, {5, 30}, {31, 39}, {40, 50});
    assert_true(ranges_add(&r, 39, 40)); /* closes a gap */
    EXPECT(&r, {5, 30}, {31, 50});
    assert_true(ranges_add(&r, 0, UINT32_MAX)); /* covers all */
    EXPECT(&r, {0, UINT32_MAX});
}

static void test_limit(void **state)
{
    struct ranges r = {.count = 0}, before;

    (void)state;
    for (uint32_t i = 0; i < RANGES_MAX - 1; i++)
        assert_true(ranges_add(&r, 10 * i + 10, 10 * i + 15));
    assert_int_equal(r.count, RANGES_MAX - 1);
    assert_true(ranges_add(&r, 90, 95));
    assert_int_equal(r.count, RANGES_MAX);
    before = r;
    assert_false(ranges_add(&r, 0, 5));
    assert_false(ranges_add(&r, 16, 19));
    assert_false(ranges_add(&r, 96, 97));
    assert_memory_equal(&r, &before, sizeof(r));
    assert_true(ranges_add(&r, 0, 0)); /* an empty interval needs no place */
    assert_true(ranges_add(&r, 50, 50));
    assert_memory_equal(&r, &before, sizeof(r));
    assert_true(ranges_add(&r, 95, 96)); /* an interval that touches another needs no place */
    assert_true(ranges_add(&r, 15, 20));
    assert_int_equal(r.count, RANGES_MAX - 1);
}

static void test_prefix_and_cover(void **state)
{
    struct ranges r = {.count = 0};

    (void)state;
    assert_int_equal(ranges_prefix(&r), 0);
    assert_true(ranges_cover(&r, 0));
    assert_false(ranges_cover(&r, 1));
    assert_true(ranges_add(&r, 1, 9));
    assert_int_equal(ranges_prefix(&r), 0);
    assert_false(ranges_cover(&r, 1));
    assert_true(ranges_add(&r, 0, 1));
    assert_int_equal(ranges_prefix(&r), 9);
    assert_true(ranges_cover(&r, 8));
    assert_true(ranges_cover(&r, 9));
    assert_false(ranges_cover(&r, 10));
    assert_true(ranges_add(&r, 11, UINT32_MAX));
    assert_false(ranges_cover(&r, UINT32_MAX));
    assert_true(ranges_add(&r, 9, 11));
    assert_true(ranges_cover(&r, UINT32_MAX));
}

/* Count the runs of set bits. Each run must be one interval. */
static uint32_t count_runs(const bool *bit, uint32_t n)
{
    uint32_t runs = 0;

    for (uint32_t i = 0; i < n; i++)
        runs += bit[i] && (i == 0 || !bit[i - 1]);
    return runs;
}

static void check_against(const struct ranges *r, const bool *bit, uint32_t n)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        for (; at < r->range[i].from; at++)
            assert_false(bit[at]);
        for (; at < r->range[i].to; at++)
            assert_true(bit[at]);
    }
    for (; at < n; at++)
        assert_false(bit[at]);
}

static void test_model(void **state)
{
    enum { N = 48 };
    uint32_t seed = 20021;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct ranges r = {.count = 0};
        bool bit[N] = {false}, with[N];

        for (int step = 0; step < 24; step++) {
            uint32_t from = chance(&seed) % N, to = from + chance(&seed) % 7;

            to = to > N ? N : to;
            memcpy(with, bit, sizeof(with));
            memset(with + from, true, to - from);
            assert_int_equal(ranges_add(&r, from, to), from == to || count_runs(with, N) <= RANGES_MAX);
            if (count_runs(with, N) <= RANGES_MAX)
                memcpy(bit, with, sizeof(bit));
            assert_int_equal(r.count, count_runs(bit, N));
            check_against(&r, bit, N);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_prefix_and_cover),
        cmocka_unit_test(test_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
