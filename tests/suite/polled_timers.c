/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_timers.c - timers of a context without a thread, as roce/rc_timer.c has them for each message: a program that
 * polls sees to them, and no descriptor is set for any; one that sleeps in rddp_progress(), or at rddp_progress_fd(),
 * wakes for them. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "loop/reactor.h"
#include "tests/suite/lib/by_hand.h"

enum {
    WRITES = 300,
    OCTETS = 64,
    RETRIES = 3,
    SLEEP_MS = 20000, /* much longer than all retries, ... */
    GIVES_UP_MS = 10000,
};

static atomic_uint settings;

/* In front of the C library's. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
    atomic_fetch_add(&settings, 1);
    return (int)syscall(SYS_timerfd_settime, fd, flags, when, before);
}

static void open_hands(struct hands *h)
{
    hands_open_manual(h, RDDP_QPT_RC, "127.0.0.1");
    h->ib.timeout = 11; /* 8 ms */
    h->ib.retry_cnt = RETRIES;
    hands_make(h);
}

static void open_patient_hands(struct hands *h)
{
    open_hands(h);
    h->ib.timeout = 0x12; /* 1 s */
    hands_connect(h);
}

/* Both ends by a poller. */
static void write_polled(struct hands *h)
{
    atomic_store(&settings, 0);
    for (unsigned i = 0; i < WRITES; i++) {
        struct rddp_wc wc = {0};

        hand_post(&h->end[0], &h->end[1], RDDP_WR_RDMA_WRITE, 0, OCTETS, 0);
        while (!rddp_poll_cq(h->end[0].cq, 1, &wc))
            assert_int_equal(rddp_poll_cq(h->end[1].cq, 1, &wc), 0);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
    assert_int_equal(atomic_load(&settings), 0);
}

static void test_polled(void **state)
{
    struct hands h;

    (void)state;
    open_patient_hands(&h);
    write_polled(&h);
    hands_close(&h);
}

static void *sleep_until_cancelled(void *context)
{
    for (;;)
        rddp_progress(context, SLEEP_MS);
    return NULL;
}

/* No thread sleeps any more. */
static void test_cancelled(void **state)
{
    struct hands h;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    puts("left out: AddressSanitizer takes what a cancelled thread has left on its stack for an overflow");
    skip();
#endif
    open_patient_hands(&h);
    for (unsigned end = 0; end < 2; end++) {
        const struct loop *loop = h.end[end].context->loop;
        pthread_t sleeper;

        assert_int_equal(pthread_create(&sleeper, NULL, sleep_until_cancelled, h.end[end].context), 0);
        while (!loop_has_sleepers(loop))
            sched_yield();
        assert_int_equal(pthread_cancel(sleeper), 0);
        assert_int_equal(pthread_join(sleeper, NULL), 0);
        assert_false(loop_has_sleepers(loop));
    }
    write_polled(&h);
    hands_close(&h);
}

/* The peer never works, so that timers alone end the request. Returns the milliseconds that it took. */
static uint64_t give_up(struct hands *h, void (*sleep)(struct rddp_context *))
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    hand_post(&h->end[0], &h->end[1], RDDP_WR_RDMA_WRITE, 0, OCTETS, 0);
    while (!rddp_poll_cq(h->end[0].cq, 1, &wc))
        sleep(h->end[0].context);
    assert_int_equal(wc.status, RDDP_WC_RETRY_EXC_ERR);
    return (reactor_now_us() - began_us) / 1000;
}

static void sleep_in_progress(struct rddp_context *context)
{
    assert_int_equal(rddp_progress(context, SLEEP_MS), 0);
}

static void sleep_at_descriptor(struct rddp_context *context)
{
    struct pollfd fd = {.fd = rddp_progress_fd(context), .events = POLLIN};

    assert_true(poll(&fd, 1, SLEEP_MS) >= 0);
    assert_int_equal(rddp_progress(context, 0), 0);
}

static void test_asleep(void **state)
{
    static void (*const sleep[])(struct rddp_context *) = {sleep_in_progress, sleep_at_descriptor};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct hands h;

        open_hands(&h);
        hands_connect(&h);
        assert_true(give_up(&h, sleep[i]) < GIVES_UP_MS);
        hands_close(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_polled),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_asleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
