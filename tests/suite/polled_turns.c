/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_turns.c - a poller beside threads that take the loop lock again and again, and those threads beside it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum {
    TRIES = 100,
    TURNS = 200,
    HOLDS = 10 * TURNS, /* one or two a turn, and more where the machine takes the poller's processor from it */
    BETWEEN_US = 20,    /* two polls, in which threads that do not step aside take the lock again */
    ASIDE_US = 200,     /* what stepping aside takes at the least */
};

static struct rddp_context *context;
static struct rddp_cq *cq;
static struct watch ready; /* in each round */
static atomic_uint polls, holds, turns;
static atomic_bool is_over;

static void take_turn(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    turns++;
}

static int set_up(void **state)
{
    struct rddp_context_attr attr;

    (void)state;
    polls = holds = turns = 0;
    is_over = false;
    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    context = rddp_open(&attr);
    cq = rddp_create_cq(context, 1, NULL, NULL);
    ready = (struct watch){.fd = eventfd(1, EFD_CLOEXEC), .ready = take_turn};
    return context && cq ? reactor_watch(&context->loop->reactor, &ready, EPOLLIN) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    reactor_unwatch(&context->loop->reactor, &ready);
    close(ready.fd);
    return rddp_destroy_cq(cq) ? -1 : rddp_close(context);
}

static void poll_in_vain(void)
{
    struct rddp_wc wc;

    assert_int_equal(rddp_poll_cq(cq, 1, &wc), 0);
    polls++;
}

static void compute(void)
{
    uint64_t until_us = reactor_now_us() + BETWEEN_US;

    while (reactor_now_us() < until_us)
        continue;
}

/* A control call after the other, each of which a poll meets. */
static void *call_again(void *arg)
{
    struct loop *loop = arg;

    while (!is_over) {
        loop_lock(loop);
        for (unsigned before = polls; polls == before && !is_over;)
            sched_yield();
        holds++;
        loop_unlock(loop);
    }
    return NULL;
}

/* A poller that meets a call at each poll has its turn between two of them. */
static void turns_among_calls(void **state)
{
    pthread_t caller;

    (void)state;
    assert_int_equal(pthread_create(&caller, NULL, call_again, context->loop), 0);
    while (turns < TURNS && holds < HOLDS) {
        poll_in_vain();
        compute();
    }
    is_over = true;
    pthread_join(caller, NULL);
    print_message("%u calls beside %u polls, %u of which had their turn\n", holds, polls, turns);
    assert_in_range(turns, TURNS, HOLDS);
}

static void *poll_once(void *arg)
{
    (void)arg;
    poll_in_vain();
    return NULL;
}

/* By another thread, or by this one: a poll whose turn is refused. */
static void refuse(struct loop *loop, bool another)
{
    pthread_t poller;

    loop_lock(loop);
    if (another) {
        assert_int_equal(pthread_create(&poller, NULL, poll_once, NULL), 0);
        pthread_join(poller, NULL);
    } else {
        poll_once(NULL);
    }
    loop_unlock(loop);
}

static uint64_t lock_takes_us(struct loop *loop)
{
    uint64_t start_us = reactor_now_us(), end_us;

    loop_lock(loop);
    end_us = reactor_now_us();
    loop_unlock(loop);
    return end_us - start_us;
}

/* Once each time, and at most once, does a thread step aside for a poller that does not come again; never for itself,
 * nor after the work was done. */
static void steps_aside_once(void **state)
{
    struct loop *loop = context->loop;
    uint64_t least_us[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, us[4];

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        refuse(loop, true);
        us[0] = lock_takes_us(loop);
        us[1] = lock_takes_us(loop);
        refuse(loop, false);
        us[2] = lock_takes_us(loop);
        refuse(loop, true);
        assert_int_equal(rddp_progress(context, 0), 0);
        us[3] = lock_takes_us(loop);
        for (int k = 0; k < 4; k++)
            least_us[k] = us[k] < least_us[k] ? us[k] : least_us[k];
    }
    assert_true(least_us[0] >= ASIDE_US);
    for (int k = 1; k < 4; k++)
        assert_in_range(least_us[k], 0, ASIDE_US - 1);
}

/* Who was refused and polls again has had its turn: no other waits for it. */
static void turn_is_had(void **state)
{
    struct loop *loop = context->loop;

    (void)state;
    refuse(loop, true);
    assert_non_null(loop->polled.refused);
    poll_once(NULL);
    assert_null(loop->polled.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(turns_among_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_aside_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turn_is_had, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("polled_turns", tests, NULL, NULL);
}
