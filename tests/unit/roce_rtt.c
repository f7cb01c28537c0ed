/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rtt.c - what round trips say about the path, and what NAKs add (ROCE-REQ-19). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/rc_rtt.h"

enum { BEGIN = 5000000, LEAST = 1000, LONG = LEAST + LEAST / RC_RTT_PART + RC_QUEUE_US };

static void takes(struct rc_rtt *rtt, uint32_t us)
{
    rtt->timed = 1;
    rtt->timed_us = BEGIN;
    rc_rtt_measure(rtt, BEGIN + us - 1);
    assert_int_equal(rtt->timed, 0);
}

/* A NAK for the packet at position 10, which left at BEGIN. */
static void naks(struct rc_rtt *rtt, uint32_t us)
{
    struct rc_marks m = {.count = 0};

    rc_marks_set(&m, 9, 64, BEGIN - 100);
    rc_marks_set(&m, 11, 64, BEGIN);
    rc_marks_set(&m, 15, 64, BEGIN + 50);
    rc_rtt_measure_nak(rtt, &m, 10, BEGIN + us - 1);
}

static struct rc_rtt quick(void)
{
    struct rc_rtt rtt = {.timed = 0};

    for (int i = 0; i < RC_NEWEST; i++) {
        assert_true(rc_rtt_has_queue(&rtt)); /* not known yet */
        takes(&rtt, LEAST);
    }
    assert_false(rc_rtt_has_queue(&rtt));
    return rtt;
}

static void one_is_long(void **state)
{
    struct rc_rtt rtt = quick();

    (void)state;
    for (int i = 1; i < RC_NEWEST; i++) {
        takes(&rtt, LONG + 1);
        assert_false(rc_rtt_has_queue(&rtt));
    }
    takes(&rtt, LONG + 1);
    assert_true(rc_rtt_has_queue(&rtt));
    takes(&rtt, LONG);
    assert_false(rc_rtt_has_queue(&rtt));
}

/* It is a round trip as others are, and may be the least. */
static void naks_count(void **state)
{
    struct rc_rtt rtt = quick();

    (void)state;
    for (int i = 0; i < RC_NEWEST; i++)
        naks(&rtt, LONG + 1);
    assert_true(rc_rtt_has_queue(&rtt));
    naks(&rtt, LEAST / 2);
    assert_int_equal(rtt.least_us, LEAST / 2);
    assert_false(rc_rtt_has_queue(&rtt));
    for (int i = 0; i < RC_NEWEST; i++)
        takes(&rtt, LEAST);
    assert_true(rc_rtt_has_queue(&rtt)); /* since the least one is shorter now */
}

/* It may answer either of two packets. */
static void nak_after_timeout(void **state)
{
    struct rc_marks m = {.from = 12};
    struct rc_rtt rtt = quick();
    uint32_t samples = rtt.samples;

    (void)state;
    rc_marks_set(&m, 11, 64, BEGIN);
    rc_rtt_measure_nak(&rtt, &m, 11, BEGIN + 1);
    assert_int_equal(rtt.samples, samples);
    rc_rtt_measure_nak(&rtt, &m, 12, BEGIN + LEAST);
    assert_int_equal(rtt.samples, samples + 1);
}

/* When its packet left is not known any more: so long ago. */
static void nak_without_mark(void **state)
{
    struct rc_marks none = {.count = 0};
    struct rc_rtt rtt = quick();

    (void)state;
    for (uint32_t i = 0; i < RC_MARKS; i++)
        none.mark[i].us = BEGIN; /* of before */
    for (int i = 0; i < RC_NEWEST; i++) {
        assert_false(rc_rtt_has_queue(&rtt));
        rc_rtt_measure_nak(&rtt, &none, 10, BEGIN);
    }
    assert_true(rc_rtt_has_queue(&rtt));
    assert_int_equal(rtt.least_us, LEAST);
}

/* RFC 6298 2.2 and 2.3 */
static void smooth(void **state)
{
    struct rc_rtt rtt = {.timed = 0};

    (void)state;
    takes(&rtt, 800);
    assert_int_equal(rtt.smooth_us, 800);
    assert_int_equal(rtt.var_us, 400);
    takes(&rtt, 1600);
    assert_int_equal(rtt.smooth_us, 900);
    assert_int_equal(rtt.var_us, 500);
    naks(&rtt, 5000); /* may be of a packet that was sent twice */
    assert_int_equal(rtt.smooth_us, 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_long),      cmocka_unit_test(naks_count), cmocka_unit_test(nak_after_timeout),
        cmocka_unit_test(nak_without_mark), cmocka_unit_test(smooth),
    };

    return cmocka_run_group_tests_name("roce_rtt", tests, NULL, NULL);
}
