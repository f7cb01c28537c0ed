/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reports.c - what was reported is taken once, in order; the descriptor is readable exactly while something waits. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/reports.h"

enum { REPORTERS = 3 };

static bool is_readable(const struct reports *reports)
{
    struct pollfd fd = {.fd = reports->notifier.read_fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static void expect(struct reports *reports, const struct reporter *from, unsigned kind)
{
    unsigned taken = 32;

    assert_true(is_readable(reports));
    assert_ptr_equal(reports_take(reports, &taken), from);
    assert_int_equal(taken, kind);
}

static void expect_nothing(struct reports *reports)
{
    unsigned kind;

    assert_false(is_readable(reports));
    assert_null(reports_take(reports, &kind));
}

/* Each object once, with all its kinds, the lowest first; a kind that waits already is not reported twice. */
static void order(void **state)
{
    struct reporter r[REPORTERS] = {{0}};
    struct reports reports;

    (void)state;
    assert_int_equal(reports_init(&reports), 0);
    expect_nothing(&reports);
    reports_add(&reports, &r[1], 31);
    reports_add(&reports, &r[0], 5);
    reports_add(&reports, &r[1], 0);
    reports_add(&reports, &r[1], 31);
    expect(&reports, &r[1], 0);
    expect(&reports, &r[1], 31);
    reports_add(&reports, &r[1], 31);
    expect(&reports, &r[0], 5);
    expect(&reports, &r[1], 31);
    expect_nothing(&reports);
    assert_int_equal(r[0].taken, 1);
    assert_int_equal(r[1].taken, 3);
    reports_acknowledge(&reports, &r[1], 2);
    assert_int_equal(r[1].taken, 1);
    reports_acknowledge(&reports, &r[1], 2); /* one more than were taken */
    assert_int_equal(r[1].taken, 0);
    reports_fini(&reports);
}

/* The first, the middle and the last of the queue are withdrawn; the others stay in order. */
static void withdrawn(void **state)
{
    struct reports reports;

    (void)state;
    assert_int_equal(reports_init(&reports), 0);
    for (unsigned gone = 0; gone < REPORTERS; gone++) {
        struct reporter r[REPORTERS] = {{0}}, late = {0};

        for (unsigned i = 0; i < REPORTERS; i++)
            reports_add(&reports, &r[i], i);
        reports_withdraw(&reports, &r[gone]);
        reports_withdraw(&reports, &r[gone]); /* it reports nothing */
        reports_add(&reports, &late, 7);
        for (unsigned i = 0; i < REPORTERS; i++)
            if (i != gone)
                expect(&reports, &r[i], i);
        expect(&reports, &late, 7);
        expect_nothing(&reports);
        reports_add(&reports, &r[0], 1);
        r[0].taken = 0;
        reports_withdraw(&reports, &r[0]);
        expect_nothing(&reports);
    }
    reports_fini(&reports);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(order), cmocka_unit_test(withdrawn)};

    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
