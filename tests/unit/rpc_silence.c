/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_silence.c - when a requester nudges a silent server, by a clock that the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/requester_in.h"

enum { SILENCE_MS = 60000, STEP_MS = 50, RETRIES_MS = 4400 /* after which RoCE gives a connection up */ };

static struct requester r;
static struct request call;
static uint64_t now;

/* A call waits on a connection that was just established. Its link has no room, so that a nudge is counted alone. */
static void wait_over(enum rddp_wire wire)
{
    memset(&r, 0, sizeof(r));
    r.attr.wire.wire = wire;
    r.attr.silence_ms = SILENCE_MS;
    r.sent.first = r.sent.last = &call;
    r.sent.count = 1;
    now = 1000000;
    silence_begin(&r);
}

/* Returns the nudges of the next `ms`; the connection must not be closed meanwhile. */
static uint64_t nudges_in(uint64_t ms)
{
    uint64_t before = r.stats.nudges;

    for (uint64_t end = now + ms; now < end; now += STEP_MS)
        assert_true(silence_bearable(&r, now));
    return r.stats.nudges - before;
}

static void lose_unacknowledged(void)
{
    assert_true(nudges_in(RETRIES_MS) > 0);
    silence_unacknowledged(&r);
    silence_begin(&r);
}

/* Over RoCE nudges come until the server is known to be there or gone, at growing distances. */
static void nudges_grow_rare(void **state)
{
    (void)state;
    wait_over(RDDP_WIRE_ROCE);
    assert_int_equal(nudges_in(100), 0);
    assert_int_equal(nudges_in(1500), 4); /* after 100, 300, 700, 1500 ms */
    assert_in_range(nudges_in(32000), 9, 11);
    silence_broken(&r, now);
    assert_int_equal(nudges_in(100), 0);
    assert_int_equal(nudges_in(400), 2);
}

/* Who let all retries pass is given the time: else a call that takes longer would be executed again without end. */
static void busy_one_is_let_alone(void **state)
{
    uint64_t begun;

    (void)state;
    wait_over(RDDP_WIRE_ROCE);
    lose_unacknowledged();
    begun = now;
    assert_int_equal(nudges_in(SILENCE_MS - STEP_MS), 0);
    assert_int_equal(silence_until(&r), begun + SILENCE_MS);
    now += 2 * STEP_MS;
    assert_false(silence_bearable(&r, now));
}

/* An answer that comes soon says that the server is not, or no longer, such a one; one that comes late that it is. */
static void late_answer_confirms_it(void **state)
{
    (void)state;
    wait_over(RDDP_WIRE_ROCE);
    lose_unacknowledged();
    assert_int_equal(nudges_in(6000), 0);
    silence_broken(&r, now);
    assert_int_equal(nudges_in(6000), 0);
    silence_broken(&r, now);
    assert_int_equal(nudges_in(2000), 0);
    silence_broken(&r, now);
    assert_true(nudges_in(2000) > 0);
    lose_unacknowledged();
    silence_broken(&r, now); /* before it was noticed that a call waits */
    assert_true(nudges_in(2000) > 0);
}

/* A late answer on a connection that was never lost says nothing: the server acknowledges meanwhile. */
static void slow_one_is_nudged(void **state)
{
    (void)state;
    wait_over(RDDP_WIRE_ROCE);
    assert_true(nudges_in(10000) > 0);
    silence_broken(&r, now);
    assert_true(nudges_in(2000) > 0);
}

/* Over iWARP a nudge is for a peer that leaves the first message unread, and has no answer of its own. */
static void iwarp_nudges_until_the_first_answer(void **state)
{
    (void)state;
    wait_over(RDDP_WIRE_IWARP);
    assert_true(nudges_in(2000) > 0);
    silence_broken(&r, now);
    assert_int_equal(nudges_in(10000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nudges_grow_rare),
        cmocka_unit_test(busy_one_is_let_alone),
        cmocka_unit_test(late_answer_confirms_it),
        cmocka_unit_test(slow_one_is_nudged),
        cmocka_unit_test(iwarp_nudges_until_the_first_answer),
    };

    return cmocka_run_group_tests_name("rpc_silence", tests, NULL, NULL);
}
