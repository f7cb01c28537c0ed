/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* armed_beside.c - a CQ stays armed while its application polls another one, as UCX leaves those of its datagrams: the
 * thread leaves the work to the poller all the same, until something is armed again or work is left undone. So it does
 * while a poll takes long. */
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/deferred.h"
#include "tests/suite/lib/manual.h"

enum {
    WAIT_US = PAIR_WAIT_MS * 1000,
    PAUSE_US = 2000,      /* less than after which the thread takes a poller for gone */
    MESSAGES = 2000,      /* by then a thread that might park has */
    TIMES = 3,            /* in a row that are to be in time */
    ROUNDS = 100,         /* that a busy machine may need for that, ... */
    LOADED_US = 20000000, /* ... unless it is busy for as long */
    CALLED_US = 100,      /* a parked thread that is called has come by then, and by itself it comes later */
    UNDONE_US = 400,      /* the same, if it has to find what is left undone */
    LONG_POLL_MS = 5,
    BURST = 100,    /* requests, of which the last wait for their doorbell */
    RUNG_US = 1000, /* it is rung by then */
};

static struct rddp_comp_channel *channel;
static struct rddp_cq *beside; /* of `there`, whose loop has a thread; nothing ever comes to it */

static int set_up(void **state)
{
    manual_open(state);
    channel = rddp_create_comp_channel(there.context);
    beside = rddp_create_cq(there.context, 4, NULL, channel);
    assert_non_null(beside);
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(rddp_destroy_cq(beside), 0);
    assert_int_equal(rddp_destroy_comp_channel(channel), 0);
    return manual_close(state);
}

static void arm(void)
{
    assert_int_equal(rddp_req_notify_cq(beside, false), 0);
}

/* Messages for a poller, until the thread has seen enough of it. */
static void poll_until_parked(void)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    while (!there.context->loop->parked) {
        assert_true(reactor_now_us() - began_us < WAIT_US);
        manual_send(&here, &there);
        while (!rddp_poll_cq(there.cq, 1, &wc))
            continue;
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
}

static void who_is_relied_on(void **state)
{
    const struct loop *loop = there.context->loop;
    struct rddp_wc wc;

    (void)state;
    assert_false(loop_is_relied_on(loop));
    arm();
    assert_true(loop_is_relied_on(loop));
    assert_int_equal(rddp_poll_cq(beside, 1, &wc), 0); /* as before a sleep */
    assert_true(loop_is_relied_on(loop));
    for (uint64_t began_us = reactor_now_us();
         loop_is_relied_on(loop);) { /* unless the thread drives the loop just then */
        assert_true(reactor_now_us() - began_us < WAIT_US);
        assert_int_equal(rddp_poll_cq(there.cq, 1, &wc), 0);
    }
    arm();
    assert_true(loop_is_relied_on(loop));
}

static void the_thread_parks(void **state)
{
    (void)state;
    arm();
    poll_until_parked();
}

/* Polls until the thread is back. Returns whether this thread polled all the time: one that stops for long brings it
 * back, too. */
static bool poll_until_back(void)
{
    uint64_t began_us = reactor_now_us(), polled_us = began_us;
    bool all_the_time = true;
    struct rddp_wc wc;

    while (there.context->loop->parked) {
        uint64_t now_us = reactor_now_us();

        assert_true(now_us - began_us < WAIT_US);
        all_the_time &= now_us - polled_us < PAUSE_US;
        polled_us = now_us;
        assert_int_equal(rddp_poll_cq(there.cq, 1, &wc), 0);
    }
    return all_the_time && reactor_now_us() - polled_us < PAUSE_US;
}

static void it_is_back_when_a_cq_is_armed(void **state)
{
    uint64_t began_us = reactor_now_us();

    (void)state;
    arm();
    for (int times = 0; times < 3;) {
        assert_true(reactor_now_us() - began_us < WAIT_US);
        poll_until_parked();
        arm(); /* a poll may follow before the thread has woken */
        times += poll_until_back();
    }
}

/* There are no more polls. */
static void it_does_what_is_left_undone(void **state)
{
    struct rddp_wc wc;

    (void)state;
    arm();
    for (int i = 0; i < 5; i++) {
        poll_until_parked();
        poll(NULL, 0, 1);
        manual_send(&here, &there);
        for (int ms = 0; !cq_poll(&there.cq->cq, &wc, 1); ms++) {
            assert_true(ms < PAIR_WAIT_MS);
            poll(NULL, 0, 1);
        }
    }
}

/* Whoever holds the loop lock holds it for so long that the thread looks at a message that has come. Returns whether it
 * waits for the lock by then, or in the end. */
static bool waits_for_the_lock(bool is_polling, int timeout_ms)
{
    struct loop *loop = there.context->loop;
    struct rddp_wc wc;
    bool waits;

    poll_until_parked();
    loop_lock(loop);
    loop->polled.lasts |= is_polling;
    manual_send(&here, &there);
    for (int ms = 0; ms < timeout_ms && !loop->wanted; ms++)
        poll(NULL, 0, 1);
    waits = loop->wanted;
    loop_unlock(loop);
    while (!rddp_poll_cq(there.cq, 1, &wc))
        continue;
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    return waits;
}

/* It would be given the lock next, and with it the work that the poller could do as soon. It may have looked just
 * before the poll began. */
static void it_does_not_wait_for_a_long_poll(void **state)
{
    int tries = 10;

    (void)state;
    while (tries && waits_for_the_lock(true, LONG_POLL_MS))
        tries--;
    assert_int_not_equal(tries, 0);
}

/* No descriptor tells of it, and there are no polls. */
static void it_does_what_it_is_asked_for(void **state)
{
    struct loop *loop = there.context->loop;

    (void)state;
    for (int i = 0; i < 20; i++) {
        uint64_t began_us;
        poll_until_parked();
        loops_ask_for_spans(there.context);
        for (began_us = reactor_now_us(); loop->spans_wanted;)
            assert_true(reactor_now_us() - began_us < WAIT_US);
    }
}

/* Without polls and without work: what comes next is not to wait for a look. */
static void it_leaves_when_idle(void **state)
{
    uint64_t began_us;

    (void)state;
    poll_until_parked();
    for (began_us = reactor_now_us(); there.context->loop->parked; poll(NULL, 0, 1))
        assert_true(reactor_now_us() - began_us < WAIT_US);
}

static void *poll_until_ended(void *ended)
{
    struct rddp_wc wc;

    while (!atomic_load((atomic_bool *)ended))
        rddp_poll_cq(there.cq, 1, &wc);
    return NULL;
}

static void it_sees_how_long_a_poll_lasts(void **state)
{
    const struct loop *loop = there.context->loop;
    uint64_t began_us = reactor_now_us();
    atomic_bool ended = false;
    pthread_t poller;
    bool seen = false;

    (void)state;
    assert_int_equal(pthread_create(&poller, NULL, poll_until_ended, &ended), 0);
    while (!seen && reactor_now_us() - began_us < WAIT_US)
        seen = loop->polled.lasts;
    ended = true;
    pthread_join(poller, NULL);
    assert_true(seen);
    assert_false(loop->polled.lasts);
}

/* It does not do the work, and when it has ended there may be no poll either. */
static void it_waits_for_a_call_that_is_no_poll(void **state)
{
    (void)state;
    assert_true(waits_for_the_lock(false, PAIR_WAIT_MS));
}

/* --- how soon ----------------------------------------------------------------------------------------------------- */

/* Was it in time as often in a row? Other programs may take the processor now and then; if they have it all the time,
 * this tells nothing. */
static void is_soon(bool (*one)(void), unsigned wanted)
{
    uint64_t began_us = reactor_now_us();
    unsigned times = 0;

    for (unsigned round = 0; round < ROUNDS && times < wanted; round++) {
        if (reactor_now_us() - began_us > LOADED_US)
            skip();
        for (times = 0; times < wanted && one();)
            times++;
    }
    assert_int_equal(times, wanted);
}

/* The thread is called from the park, and need not look by itself. */
static bool is_back_soon(void)
{
    uint64_t armed_us;

    poll_until_parked();
    armed_us = reactor_now_us();
    arm();
    while (there.context->loop->parked && reactor_now_us() - armed_us < WAIT_US)
        continue;
    return reactor_now_us() - armed_us < CALLED_US;
}

static void it_is_called_when_a_cq_is_armed(void **state)
{
    (void)state;
    arm();
    is_soon(is_back_soon, TIMES);
}

/* Sends to a parked thread, and takes what it has done, without a poll since it began its rest. Returns when it sent.
 */
static uint64_t sent_and_done(void)
{
    uint64_t sent_us;
    struct rddp_wc wc;

    poll_until_parked();
    sent_us = reactor_now_us();
    manual_send(&here, &there);
    while (!cq_poll(&there.cq->cq, &wc, 1))
        assert_true(reactor_now_us() - sent_us < WAIT_US);
    return sent_us;
}

static bool is_done_soon(void)
{
    uint64_t sent_us = sent_and_done();

    return reactor_now_us() - sent_us < UNDONE_US;
}

static void it_looks_more_often(void **state)
{
    (void)state;
    arm();
    is_soon(is_done_soon, TIMES);
}

/* One look that finds work undone is enough, before the thread takes the poller for gone: sooner than that it never
 * leaves otherwise. */
static bool has_left_soon(void)
{
    uint64_t sent_us = sent_and_done();

    while (there.context->loop->parked && reactor_now_us() - sent_us < WAIT_US)
        continue;
    return reactor_now_us() - sent_us < PAUSE_US;
}

static void it_stays_after_one_look(void **state)
{
    (void)state;
    arm();
    is_soon(has_left_soon, 1);
}

/* Posts a burst while the thread is parked. Returns whether the last of it wait for their doorbell: not on a machine
 * that is too slow for that. */
static bool burst_waits(void)
{
    struct rddp_sge sge = {(uintptr_t)there.memory, MANUAL_SIZE, rddp_mr_key(there.mr)};
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_RDMA_WRITE,
                              .remote_addr = (uintptr_t)here.memory,
                              .rkey = rddp_mr_key(here.mr)};

    rddp_progress(here.context, 0);
    poll_until_parked();
    for (int i = 0; i < BURST; i++)
        assert_int_equal(rddp_post_send(there.qp, &wr, NULL), 0);
    return has_deferred(there.qp);
}

/* In the park as well, before the thread takes the poller for gone. */
static void it_rings(void **state)
{
    bool has_waited = false, is_soon_enough = false;

    (void)state;
    for (unsigned round = 0; round < ROUNDS && !is_soon_enough; round++) {
        uint64_t posted_us;
        if (!burst_waits())
            continue;
        has_waited = true;
        posted_us = reactor_now_us();
        while (has_deferred(there.qp))
            assert_true(reactor_now_us() - posted_us < WAIT_US);
        is_soon_enough = reactor_now_us() - posted_us < RUNG_US;
    }
    if (!has_waited)
        skip();
    assert_true(is_soon_enough);
}

/* --- who counts --------------------------------------------------------------------------------------------------- */

/* Who polls armed CQs alone may sleep behind any of these polls: the thread never leaves the work to it. */
static void it_never_parks(void **state)
{
    struct rddp_wc wc;

    (void)state;
    arm();
    for (unsigned i = 0; i < MESSAGES; i++) {
        manual_send(&here, &there);
        while (!cq_poll(&there.cq->cq, &wc, 1)) {
            assert_int_equal(rddp_poll_cq(beside, 1, &wc), 0);
            assert_false(there.context->loop->parked);
        }
    }
}

/* A CQ that was destroyed, and one that a child of fork() has inherited. */
static void the_armed_are_counted(void **state)
{
    struct rddp_cq *other = rddp_create_cq(there.context, 4, NULL, channel);
    struct rddp_wc wc;
    pid_t child;
    int status;

    (void)state;
    assert_non_null(other);
    assert_int_equal(rddp_req_notify_cq(other, false), 0);
    arm();
    arm();
    assert_int_equal(there.context->armed, 2);
    assert_int_equal(rddp_destroy_cq(other), 0);
    assert_int_equal(there.context->armed, 1);
    child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(rddp_poll_cq(beside, 1, &wc) || there.context->armed != 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_is_relied_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_thread_parks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_back_when_a_cq_is_armed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_does_what_is_left_undone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_does_what_it_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_leaves_when_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_does_not_wait_for_a_long_poll, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_sees_how_long_a_poll_lasts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_waits_for_a_call_that_is_no_poll, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_called_when_a_cq_is_armed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_looks_more_often, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_stays_after_one_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_rings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_never_parks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_armed_are_counted, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("armed_beside", tests, NULL, NULL);
}
