/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out.c - output that waits for the link leaves complete and in order, and releases the regions it borrowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conn/out.h"
#include "tests/lib/rng.h"

enum { REGION = 1 << 17, EXPECTED = 1 << 25 };

static struct out out;
static uint8_t *buffer, *expected, region_octets[2][REGION];
static size_t expected_octets, left_octets; /* octets added, and octets of them that have left */
static bool *is_end;                        /* is_end[i]: a unit ends before expected[i] */
static struct mr region[2];

static int set_up(void **state)
{
    struct rng r = {1};

    (void)state;
    buffer = malloc(OUT_BUFFER);
    expected = malloc(EXPECTED);
    assert_non_null(buffer);
    is_end = calloc(EXPECTED + 1, 1);
    assert_non_null(expected);
    assert_non_null(is_end);
    memset(buffer, 0, OUT_BUFFER);
    expected_octets = left_octets = 0;
    memset(region, 0, sizeof(region));
    rng_fill(&r, region_octets, sizeof(region_octets));
    out_init(&out, buffer);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(buffer);
    free(expected);
    free(is_end);
    return 0;
}

static void expect(const void *p, size_t n)
{
    assert_true(expected_octets + n <= EXPECTED);
    memcpy(expected + expected_octets, p, n);
    expected_octets += n;
}

static void start_again(void)
{
    memset(is_end, 0, expected_octets + 1);
    left_octets = expected_octets = 0;
}

static void commit(const char *text)
{
    memcpy(out_space(&out), text, strlen(text));
    out_commit(&out, strlen(text));
    expect(text, strlen(text));
}

static void borrow(int i, uint32_t at, uint32_t length)
{
    out_borrow(&out, (struct span){region_octets[i] + at, length}, &region[i]);
    expect(region_octets[i] + at, length);
}

static void end_unit(void)
{
    out_end_unit(&out);
    is_end[expected_octets] = true;
}

/* Compare the first `n` octets of the spans with the expected ones and remove them, as a socket does. */
static void leave(size_t n)
{
    size_t done = 0;

    for (uint32_t i = out.first; done < n; i++) {
        size_t take = out.span[i].length < n - done ? out.span[i].length : n - done;

        assert_true(i < out.first + out.spans);
        assert_memory_equal(out.span[i].at, expected + left_octets + done, take);
        done += take;
    }
    out_sent(&out, n);
    left_octets += n;
}

/* Check that out_next_unit() returns the units that were added, with the expected octets in their spans. */
static void expect_units(void)
{
    struct out_cursor at = {0};
    struct out_unit unit;
    size_t from = left_octets, end;

    for (uint32_t i = 0; out_next_unit(&out, &at, &unit); i++) {
        assert_int_equal(unit.torn, i == 0 && left_octets && !is_end[left_octets]);
        for (end = from + 1; !is_end[end]; end++)
            ;
        assert_int_equal(unit.octets, end - from);
        for (uint32_t k = 0; k < unit.spans; k++) {
            assert_memory_equal(unit.span[k].at, expected + from, unit.span[k].length);
            from += unit.span[k].length;
        }
        assert_int_equal(from, end);
    }
    assert_int_equal(expected_octets - from, out.open);
}

static void expect_consistent(void)
{
    uint32_t octets = 0, borrowed = 0, spans[2] = {0, 0};

    for (uint32_t i = out.first; i < out.first + out.spans; i++) {
        octets += out.span[i].length;
        borrowed += out.region[i] ? out.span[i].length : 0;
        spans[0] += out.region[i] == &region[0];
        spans[1] += out.region[i] == &region[1];
        if (!out.region[i])
            assert_true(out.span[i].at >= buffer && out.span[i].at + out.span[i].length <= buffer + out.used);
    }
    expect_units();
    assert_int_equal(octets, out.octets);
    assert_int_equal(octets, expected_octets - left_octets);
    assert_int_equal(borrowed, out.borrowed);
    for (int i = 0; i < 2; i++)
        assert_int_equal(region[i].sending, spans[i]);
}

/* Units that are adjacent in the room share one span. A borrowed span separates them. */
static void spans_merge(void **state)
{
    (void)state;
    commit("one ");
    end_unit();
    commit("two ");
    commit("");
    end_unit();
    end_unit();
    assert_int_equal(out.units, 2);
    assert_int_equal(out.spans, 1);
    borrow(0, 0, 4);
    borrow(0, 4, 0);
    assert_int_equal(out.spans, 2);
    commit("three");
    end_unit();
    commit("four");
    assert_int_equal(out.spans, 3);
    expect_consistent();
    leave(2);
    expect_consistent();
    leave(out.octets);
    expect_consistent();
    assert_int_equal(out.used, 0);
    assert_int_equal(out.spans, 0);
}

/* out_own() copies the rest of a half-sent borrowed span. Later changes of the region do not change the octets that
 * leave. */
static void own_keeps_the_octets(void **state)
{
    (void)state;
    commit("head");
    borrow(0, 0, 1000);
    commit("tail");
    borrow(1, 0, 1000);
    leave(4 + 500);
    out_own(&out);
    memset(region_octets, 0, sizeof(region_octets));
    expect_consistent();
    assert_int_equal(region[0].sending, 0);
    out_own(&out);
    commit("more");
    leave(out.octets);
    expect_consistent();
}

/* Spans of valid regions stay borrowed; a region that was taken away is not read any more, nor is its part. */
static void owns_what_is_invalid(void **state)
{
    (void)state;
    region[0].valid = region[1].valid = true;
    region[1].parent = &region[0];
    commit("head");
    borrow(1, 0, 1000);
    borrow(1, 1000, 1000);
    out_own_invalid(&out);
    assert_int_equal(out.borrowed, 2000);
    assert_int_equal(region[1].sending, 2);
    assert_int_equal(region[0].sending, 2);
    leave(1004);
    assert_int_equal(region[0].sending, 1);
    region[0].valid = false;
    out_own_invalid(&out);
    assert_int_equal(out.borrowed, 0);
    assert_int_equal(region[0].sending, 0);
    memset(region_octets, 0, sizeof(region_octets));
    expect_consistent();
    leave(out.octets);
}

static void drop_lets_go(void **state)
{
    (void)state;
    commit("head");
    borrow(0, 0, 1000);
    borrow(1, 0, 1000);
    leave(100);
    out_drop(&out);
    left_octets = expected_octets;
    expect_consistent();
    assert_true(out_has_space(&out));
    commit("again");
    leave(5);
    expect_consistent();
}

/* When out_has_space() becomes false, the room is still enough for out_own() and a Terminate of the largest size. */
static void space_is_enough(void **state)
{
    static const uint32_t payload[] = {1, 64, 16384, 64768};

    (void)state;
    for (size_t i = 0; i < sizeof(payload) / sizeof(payload[0]); i++) {
        for (uint32_t pieces = 0; pieces <= WIRE_SPANS_MAX; pieces++) {
            while (out_has_space(&out)) {
                commit("a head");
                for (uint32_t k = 0; k < pieces; k++)
                    borrow(0, 0, payload[i] / pieces);
                commit("crc");
                end_unit();
            }
            out_own(&out);
            memset(out_space(&out), 0, WIRE_UNIT_MAX);
            out_commit(&out, WIRE_UNIT_MAX);
            out_drop(&out);
            start_again();
        }
    }
    /* Repeat this with units that are copied as a whole. */
    while (out_has_space(&out))
        out_commit(&out, WIRE_UNIT_MAX);
    out_commit(&out, WIRE_UNIT_MAX);
    out_drop(&out);
}

/* The spans are also enough for out_own() and a Terminate, for every number of waiting spans. */
static void spans_are_enough(void **state)
{
    (void)state;
    for (uint32_t waiting = 1; waiting <= OUT_SPANS; waiting++) {
        for (uint32_t pieces = 1; pieces <= WIRE_SPANS_MAX; pieces++) {
            while (out.spans < waiting && out_has_space(&out)) {
                borrow(0, 0, 10);
                end_unit();
            }
            while (out_has_space(&out)) {
                commit("a head");
                for (uint32_t k = 0; k < pieces; k++)
                    borrow(0, 0, 10);
                commit("crc");
                end_unit();
            }
            out_own(&out);
            commit("a Terminate");
            expect_consistent();
            leave(out.octets);
            start_again();
        }
    }
}

/* OUT_UNITS - 1 units fit, and the last place is reserved for a Terminate. */
static void units_are_enough(void **state)
{
    uint32_t n = 0;

    (void)state;
    for (; out_has_space(&out); n++) {
        commit("unit");
        end_unit();
    }
    assert_int_equal(n, OUT_UNITS - 1);
    commit("Terminate");
    end_unit();
    expect_consistent();
    leave(4 * (size_t)n);
    assert_int_equal(out.units, 1);
    leave(9);
    assert_true(out_has_space(&out));
    expect_consistent();
}

/* MPA-7.3-05: compare random operations with a plain string of octets. */
static void anything_in_any_order(void **state)
{
    struct rng r = {20};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[65] = {0};

        memset(text, 'a' + i % 26, rng_below(&r, sizeof(text)));
        if (out_has_space(&out) && rng_below(&r, 3)) {
            commit(text);
            for (uint32_t k = rng_below(&r, 4); k; k--)
                borrow((int)rng_below(&r, 2), rng_below(&r, REGION / 2), rng_size(&r, REGION / 8));
            commit("tail");
            end_unit();
        } else if (rng_one_in(&r, 20)) {
            out_own(&out);
        } else {
            leave(rng_one_in(&r, 4) ? out.octets : rng_size(&r, out.octets));
        }
        expect_consistent();
        if (expected_octets > EXPECTED / 2) {
            leave(out.octets);
            start_again();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spans_merge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(own_keeps_the_octets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(owns_what_is_invalid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(drop_lets_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(space_is_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(units_are_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spans_are_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(anything_in_any_order, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("out", tests, NULL, NULL);
}
