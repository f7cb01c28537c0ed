/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_reorder.c - headers of units that arrived before their turn: in stream order, never merged, and within the
 * limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conn/reorder.h"
#include "tests/lib/rng.h"

static struct reorder *reorder;

static int set_up(void **state)
{
    (void)state;
    reorder = malloc(sizeof(*reorder));
    if (!reorder)
        return -1;
    reorder_init(reorder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(reorder);
    return 0;
}

static void add(uint64_t begin, uint64_t end)
{
    const struct seg seg = {
        .op = SEG_WRITE, .begin = begin, .end = end, .data = (const uint8_t *)"", .control_length = 4};

    assert_int_equal(reorder_fit(reorder, begin, end), REORDER_FITS);
    reorder_add(reorder, &seg);
    assert_int_equal(reorder_fit(reorder, begin, end), REORDER_RECORDED);
}

/* Two units never share an octet. */
static void units_are_apart(void **state)
{
    (void)state;
    add(100, 200);
    add(300, 400);
    assert_int_equal(reorder_fit(reorder, 99, 101), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 100, 199), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 100, 201), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 101, 200), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 199, 300), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 200, 301), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 90, 410), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 399, 500), REORDER_NO);
    assert_int_equal(reorder_fit(reorder, 50, 100), REORDER_FITS);
    assert_int_equal(reorder_fit(reorder, 400, 500), REORDER_FITS);
    add(200, 300);
    assert_true(reorder_is_boundary(reorder, 200) && reorder_is_boundary(reorder, 400));
    assert_false(reorder_is_boundary(reorder, 100) || reorder_is_boundary(reorder, 399) ||
                 reorder_is_boundary(reorder, 0));
    reorder->boundary = 700;
    assert_true(reorder_is_boundary(reorder, 700));
}

/* Borrowed payload is not kept. */
static void headers_alone(void **state)
{
    (void)state;
    add(100, 200);
    assert_null(reorder_first(reorder)->data);
    assert_int_equal(reorder_first(reorder)->control_length, 0);
    assert_true(reorder_first(reorder)->flags & SEG_PLACED);
}

/* The table is filled in any order and emptied in stream order, while more units arrive. */
static void in_stream_order(void **state)
{
    uint64_t number[REORDER_MAX + REORDER_MAX / 2], at = 0;
    struct rng rng = {5};
    uint32_t n = sizeof(number) / sizeof(*number), next = REORDER_MAX;

    (void)state;
    for (uint32_t i = 0; i < n; i++)
        number[i] = i;
    for (uint32_t i = REORDER_MAX - 1; i; i--) {
        uint32_t k = rng_below(&rng, i + 1);
        uint64_t other = number[k];

        number[k] = number[i];
        number[i] = other;
    }
    for (uint32_t i = 0; i < REORDER_MAX; i++)
        add(10 * number[i], 10 * number[i] + 10);
    assert_int_equal(reorder_fit(reorder, 1000000, 1000001), REORDER_NO);
    for (; reorder_first(reorder); reorder_pop(reorder)) {
        assert_int_equal(reorder_first(reorder)->begin, 10 * at++);
        if (reorder->count < REORDER_MAX && next < n) {
            add(10 * number[next], 10 * number[next] + 10);
            next++;
        }
    }
    assert_int_equal(at, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(units_are_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(headers_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_stream_order, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_reorder", tests, NULL, NULL);
}
