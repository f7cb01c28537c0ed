/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.c - headers of units that arrived before their turn: in stream order, never merged, and within the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conn/reorder.h"
#include "tests/lib/rng.h"

static struct early *early;

static int set_up(void **state)
{
    (void)state;
    early = malloc(sizeof(*early));
    if (!early)
        return -1;
    early_init(early);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(early);
    return 0;
}

static void add(uint64_t begin, uint64_t end)
{
    const struct seg seg = {
        .op = SEG_WRITE, .begin = begin, .end = end, .data = (const uint8_t *)"", .control_length = 4};

    assert_int_equal(early_fit(early, begin, end), EARLY_FITS);
    early_add(early, &seg);
    assert_int_equal(early_fit(early, begin, end), EARLY_THERE);
}

/* Two units never share an octet. */
static void units_are_apart(void **state)
{
    (void)state;
    add(100, 200);
    add(300, 400);
    assert_int_equal(early_fit(early, 99, 101), EARLY_NOT);
    assert_int_equal(early_fit(early, 100, 199), EARLY_NOT);
    assert_int_equal(early_fit(early, 100, 201), EARLY_NOT);
    assert_int_equal(early_fit(early, 101, 200), EARLY_NOT);
    assert_int_equal(early_fit(early, 199, 300), EARLY_NOT);
    assert_int_equal(early_fit(early, 200, 301), EARLY_NOT);
    assert_int_equal(early_fit(early, 90, 410), EARLY_NOT);
    assert_int_equal(early_fit(early, 399, 500), EARLY_NOT);
    assert_int_equal(early_fit(early, 50, 100), EARLY_FITS);
    assert_int_equal(early_fit(early, 400, 500), EARLY_FITS);
    add(200, 300);
    assert_true(early_is_boundary(early, 200) && early_is_boundary(early, 400));
    assert_false(early_is_boundary(early, 100) || early_is_boundary(early, 399) || early_is_boundary(early, 0));
    early->boundary = 700;
    assert_true(early_is_boundary(early, 700));
}

/* Borrowed payload is not kept. */
static void headers_alone(void **state)
{
    (void)state;
    add(100, 200);
    assert_null(early_first(early)->data);
    assert_int_equal(early_first(early)->control_length, 0);
    assert_true(early_first(early)->flags & SEG_PLACED);
}

/* The table is filled in any order and emptied in stream order, while more units arrive. */
static void in_stream_order(void **state)
{
    uint64_t number[EARLY_MAX + EARLY_MAX / 2], at = 0;
    struct rng rng = {5};
    uint32_t n = sizeof(number) / sizeof(*number), next = EARLY_MAX;

    (void)state;
    for (uint32_t i = 0; i < n; i++)
        number[i] = i;
    for (uint32_t i = EARLY_MAX - 1; i; i--) {
        uint32_t k = rng_below(&rng, i + 1);
        uint64_t other = number[k];

        number[k] = number[i];
        number[i] = other;
    }
    for (uint32_t i = 0; i < EARLY_MAX; i++)
        add(10 * number[i], 10 * number[i] + 10);
    assert_int_equal(early_fit(early, 1000000, 1000001), EARLY_NOT);
    for (; early_first(early); early_pop(early)) {
        assert_int_equal(early_first(early)->begin, 10 * at++);
        if (early->count < EARLY_MAX && next < n) {
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

    return cmocka_run_group_tests_name("early", tests, NULL, NULL);
}
