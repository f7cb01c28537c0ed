/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell_manual.c - a context without a thread: which posts leave at once, which are deferred, what sends those. */
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/manual.h"

enum { BURST = 64, TRIES = 1000 };

static uint64_t posted;

static int set_up(void **state)
{
    posted = 0;
    return manual_open(state);
}

static void post_one(bool signalled)
{
    struct rddp_sge sge = {(uintptr_t)here.memory, MANUAL_SIZE, rddp_mr_key(here.mr)};
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_RDMA_WRITE,
                              .send_flags = signalled ? RDDP_SEND_SIGNALED : 0,
                              .remote_addr = (uintptr_t)there.memory,
                              .rkey = rddp_mr_key(there.mr)};
    struct rddp_send_wr *bad;

    assert_int_equal(rddp_post_send(here.qp, &wr, &bad), 0);
    posted++;
}

/* Posts `n` single Writes; only the last is signalled. */
static void post(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        post_one(i == n - 1);
}

static uint64_t placed(void)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(there.qp, &info), 0);
    return info.rx_octets / MANUAL_SIZE;
}

static void wait_until_placed(uint64_t n)
{
    for (int i = 0; i < PAIR_WAIT_MS && placed() < n; i++)
        poll(NULL, 0, 1);
    assert_int_equal(placed(), n);
}

static void poll_one(void)
{
    struct rddp_wc wc;

    for (int i = 0; i < PAIR_WAIT_MS; i++) {
        int n = rddp_poll_cq(here.cq, 1, &wc);

        assert_in_range(n, 0, 1);
        if (n) {
            assert_int_equal(wc.status, RDDP_WC_SUCCESS);
            return;
        }
        if (i > 1000)
            poll(NULL, 0, 1);
    }
    fail();
}

/* Posts and polls until the end of a burst is deferred; a connection that sent nothing for a while sends at once, so a
 * slow machine tries again. */
static bool defer(void)
{
    for (int i = 0; i < TRIES; i++) {
        post(BURST);
        if (here.qp->deferred)
            return true;
        poll_one();
    }
    return false;
}

/* An application that was never seen to poll may never call again: everything is sent at once. */
static void never_polled(void **state)
{
    (void)state;
    post(MANUAL_DEPTH / 2);
    wait_until_placed(posted);
}

static void sent_by(void (*call)(void))
{
    assert_true(defer());
    call();
    wait_until_placed(posted);
    if (call != poll_one)
        poll_one();
}

static void progress(void)
{
    assert_int_equal(rddp_progress(here.context, 0), 0);
}

static void progress_with_limit(void)
{
    assert_int_equal(rddp_progress(here.context, 1), 0);
}

static void what_sends(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        sent_by(progress);
        sent_by(progress_with_limit);
        sent_by(poll_one);
    }
    assert_true(defer());
    assert_int_equal(rddp_disconnect(here.qp), 0);
    wait_until_placed(posted);
}

/* An application that found the CQ empty and sleeps: what its own call sends completes there, and it must look again.
 */
static void sleeps_not_over_completions(void **state)
{
    struct timespec begun, now;

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_true(defer());
        clock_gettime(CLOCK_MONOTONIC, &begun);
        assert_int_equal(rddp_progress(here.context, PAIR_WAIT_MS), 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec - begun.tv_sec < PAIR_WAIT_MS / 2000);
        poll_one();
        wait_until_placed(posted);
        assert_int_equal(rddp_progress(here.context, 1),
                         0); /* takes what would end the next sleep for another reason */
    }
}

/* An application that waits at the descriptor is woken, whether it asked for it before the posts or after them. */
static void at_the_descriptor(void **state)
{
    struct pollfd fd = {.events = POLLIN};

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_true(defer());
        fd.fd = rddp_progress_fd(here.context);
        while (here.qp->deferred) {
            assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
            progress();
        }
        wait_until_placed(posted);
        poll_one();
    }
}

static int set_up_apart(void **state)
{
    posted = 0;
    return manual_open_apart(state);
}

/* Who waits for an answer to each message polls the receive CQ, and the other one now and then: no message waits. */
static void who_waits_for_answers(void **state)
{
    struct rddp_wc wc;

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        bool signalled = i % BURST == BURST - 1;

        post_one(signalled);
        assert_int_equal(here.qp->deferred, 0);
        assert_int_equal(rddp_poll_cq(here.recv_cq, 1, &wc), 0);
        if (signalled)
            poll_one();
    }
}

static void wait_until_sent(const struct manual_end *end, uint64_t messages)
{
    struct rddp_qp_info info = {0};

    for (int i = 0; i < PAIR_WAIT_MS && info.tx_octets < messages * MANUAL_SIZE; i++) {
        poll(NULL, 0, 1);
        assert_int_equal(rddp_query_qp(end->qp, &info), 0);
    }
    assert_true(info.tx_octets >= messages * MANUAL_SIZE);
}

/* Posts and polls in turn until a message that waits in the socket is there. Returns after how many polls; 0: meanwhile
 * what was posted left, since the machine is slow. */
static int find_message(void)
{
    for (int polls = 1;; polls++) {
        struct rddp_wc wc;
        int n;

        post_one(false);
        n = rddp_poll_cq(here.cq, 1, &wc);
        if (n || !here.qp->deferred) {
            assert_true(!n || wc.status == RDDP_WC_SUCCESS);
            return n && wc.opcode == RDDP_WC_RECV && here.qp->deferred ? polls : 0;
        }
    }
}

/* Who posts and polls in turn asks the socket once in four polls, and what waits there is found by then. */
static void who_posts_and_polls_in_turn(void **state)
{
    unsigned found[5] = {0};

    (void)state;
    for (uint64_t i = 1; i < TRIES && (!found[1] || !found[2] || !found[3] || !found[4]); i++) {
        int polls;

        assert_true(defer());
        poll_one();
        manual_send(&there, &here);
        wait_until_sent(&there, i);
        post_one(false); /* leaves at once: nothing did for a while */
        post(BURST);
        here.cq->passed = (uint32_t)i;
        polls = find_message();
        assert_in_range(polls, 0, 4);
        found[polls]++;
        assert_int_equal(rddp_progress(here.context, 0), 0);
        for (struct rddp_wc wc; rddp_poll_cq(here.cq, 1, &wc);)
            continue;
    }
    assert_true(found[1] && found[2] && found[3] && found[4]);
}

static _Atomic bool is_over;

static void *sleep_in_progress(void *arg)
{
    (void)arg;
    while (!is_over)
        assert_int_equal(rddp_progress(here.context, -1), 0);
    return NULL;
}

/* One thread posts and never polls, another one sleeps for it. */
static void another_thread_sleeps(void **state)
{
    pthread_t sleeper;

    (void)state;
    assert_true(defer());
    assert_int_equal(pthread_create(&sleeper, NULL, sleep_in_progress, NULL), 0);
    wait_until_placed(posted);
    for (int i = 0; i < 200; i++) {
        post(BURST / 2);
        if (i % 8 == 7)
            wait_until_placed(posted);
        for (struct rddp_wc wc; i % 8 == 7 && cq_poll(&here.cq->cq, &wc, 1);) /* drives nothing */
            continue;
    }
    is_over = true;
    loop_wake(here.context->loop);
    pthread_join(sleeper, NULL);
}

/* A message waits in the socket, and no poll has seen it. */
static void have_message(void)
{
    manual_send(&there, &here);
    while (!reactor_sleep(&here.context->loop->reactor, -1))
        continue;
}

/* Threads that poll an empty CQ come again at once: one that waits for the loop lock goes first. But if it never has
 * the lock, or threads wait for it all the time, polls go on. */
static void polls_let_others_in(void **state)
{
    enum { INSIST_EVERY = 1024 };
    struct loop *loop = here.context->loop;
    struct rddp_wc wc;

    (void)state;
    post_one(false); /* the initiator speaks first */
    have_message();
    loop->wanted++;
    loop->polled.is_turn = false;
    loop->polled.kept_out = 0;
    for (int i = 1; i < INSIST_EVERY; i++)
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 1);
    loop->wanted--;
    have_message();
    loop_lock(loop); /* one of those who wait */
    loop_unlock(loop);
    loop->wanted++;
    assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 1);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    have_message();
    assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    loop->wanted--;
}

/* Who polls now and then, and finds something each time, has its sockets asked, too. */
static void polls_that_find(void **state)
{
    struct rddp_wc wc = {0};

    (void)state;
    post_one(false);
    have_message();
    for (int ms = 0; ms < PAIR_WAIT_MS && wc.opcode != RDDP_WC_RECV; ms++) {
        post_one(true);
        poll(NULL, 0, 1);
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 1);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
    assert_int_equal(wc.opcode, RDDP_WC_RECV);
}

/* Who gets fewer than it asked for may sleep at the descriptor: what that poll has read from the socket is among it. */
static void polls_that_find_less_than_all(void **state)
{
    struct rddp_wc wc[4];

    (void)state;
    post_one(false);
    for (int i = 0; i < 20; i++) {
        int found = 0;

        have_message();
        post_one(true);
        poll(NULL, 0, 20); /* the clock ticks */
        while (found < 2) {
            struct pollfd fd = {.fd = rddp_progress_fd(here.context), .events = POLLIN};
            int n = rddp_poll_cq(here.cq, 4, wc);

            assert_in_range(n, 0, 2 - found);
            found += n;
            assert_true(found == 2 || poll(&fd, 1, 0) == 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(never_polled, set_up, manual_close),
        cmocka_unit_test_setup_teardown(who_waits_for_answers, set_up_apart, manual_close),
        cmocka_unit_test_setup_teardown(who_posts_and_polls_in_turn, set_up, manual_close),
        cmocka_unit_test_setup_teardown(what_sends, set_up, manual_close),
        /* who polls the send CQ alone */
        cmocka_unit_test_setup_teardown(what_sends, set_up_apart, manual_close),
        cmocka_unit_test_setup_teardown(sleeps_not_over_completions, set_up, manual_close),
        cmocka_unit_test_setup_teardown(at_the_descriptor, set_up, manual_close),
        cmocka_unit_test_setup_teardown(another_thread_sleeps, set_up, manual_close),
        cmocka_unit_test_setup_teardown(polls_let_others_in, set_up, manual_close),
        cmocka_unit_test_setup_teardown(polls_that_find, set_up, manual_close),
        cmocka_unit_test_setup_teardown(polls_that_find_less_than_all, set_up, manual_close),
    };

    return cmocka_run_group_tests_name("doorbell_manual", tests, NULL, NULL);
}
