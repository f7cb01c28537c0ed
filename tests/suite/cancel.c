/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.c - threads that are cancelled inside a call leave no lock held and no bell unrung. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

enum { ROUNDS = 4, LONG_ROUNDS = 24, LENGTH = 65536 };

/* A hang is reported as a failure. */
enum { PATIENCE_S = 20 };

static atomic_uint turns;

static void *poll_for_ever(void *user)
{
    struct side *side = user;
    struct rddp_wc wc;

    for (;;) {
        rddp_poll_cq(side->cq, 0, &wc);
        rddp_poll_cq(side->cq, 1, &wc); /* a cancellation point when it finds nothing */
        atomic_fetch_add(&turns, 1);
    }
    return NULL;
}

/* The posting thread drives the connection itself, in sendmsg(); cancellation happens only between posts. */
static void *post_for_ever(void *user)
{
    struct pair *pair = user;
    struct rddp_wc wc;

    for (;;) {
        if (pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 7, 0, LENGTH, LENGTH, RDDP_SEND_SIGNALED))
            rddp_poll_cq(pair->client.cq, 1, &wc);
        atomic_fetch_add(&turns, 1);
        pthread_testcancel();
    }
    return NULL;
}

static void *wait_for_ever(void *user)
{
    struct side *side = user;
    struct rddp_event *event;

    atomic_fetch_add(&turns, 1);
    if (!rddp_get_event(side->events, &event)) /* a cancellation point while it waits */
        rddp_ack_event(event);
    return NULL;
}

/* Everything that others guard with locks still works: posts, polls, regions, domains, events. */
static void works(struct pair *pair)
{
    struct rddp_pd *pd;
    struct rddp_mr *mr;
    struct rddp_wc wc = {0};
    uint8_t buffer[64];

    alarm(PATIENCE_S);
    pd = rddp_alloc_pd(pair->client.context);
    assert_non_null(pd);
    mr = rddp_reg_mr(pd, buffer, sizeof(buffer), 0);
    assert_non_null(mr);
    assert_int_equal(rddp_dereg_mr(mr), 0);
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    while (pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 8, 0, LENGTH, 0, RDDP_SEND_SIGNALED))
        pair_completion(&pair->client);
    while (wc.wr_id != 8)
        wc = pair_completion(&pair->client);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    alarm(0);
}

static void cancel_all(struct pair *pair, void *(*run)(void *), void *user)
{
    int rounds = getenv("RDDP_LONG") ? LONG_ROUNDS : ROUNDS;
    pthread_t thread[2];

    for (int round = 0; round < rounds; round++) {
        unsigned before = atomic_load(&turns);

        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, run, user), 0);
        while (atomic_load(&turns) == before)
            usleep(50);
        usleep(200 + 37 * (unsigned)round % 900);
        alarm(PATIENCE_S);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_cancel(thread[i]), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        alarm(0);
        works(pair);
    }
}

static void pollers(void **state)
{
    struct pair *pair = *state;

    cancel_all(pair, poll_for_ever, &pair->server);
    cancel_all(pair, poll_for_ever, &pair->client);
}

static void posters(void **state)
{
    cancel_all(*state, post_for_ever, *state);
}

static void waiters(void **state)
{
    struct pair *pair = *state;

    cancel_all(pair, wait_for_ever, &pair->client);
}

/* Its first poll finds that the descriptors are closed, and says so in the log, which may be a cancellation point. */
static void *poll_what_is_closed(void *cq)
{
    struct rddp_wc wc;
    int was;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    closefrom(STDERR_FILENO + 1);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(was, NULL);
    rddp_poll_cq(cq, 1, &wc);
    return NULL;
}

static void run_closer(void)
{
    struct rddp_context_attr attr;
    struct rddp_context *context;
    pthread_t thread;

    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    context = rddp_open(&attr);
    if (pthread_create(&thread, NULL, poll_what_is_closed, rddp_create_cq(context, 1, NULL, NULL)) ||
        pthread_join(thread, NULL))
        _exit(1);
    _exit(!rddp_open(NULL));
}

static void a_poller_when_all_is_closed(void **state)
{
    pid_t child;
    int status;

    (void)state;
    hands_skip_without_threads_in_children();
    child = fork_apart(PATIENCE_S);
    if (!child)
        run_closer();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct pair_test tests[] = {PAIR_TEST(pollers), PAIR_TEST(posters), PAIR_TEST(waiters),
                                      PAIR_TEST(a_poller_when_all_is_closed)};

#ifdef __SANITIZE_ADDRESS__
    puts("cannot run here: AddressSanitizer takes what a cancelled thread has left on its stack for an overflow");
    return 77;
#endif
    return pair_run("cancel", tests, sizeof(tests) / sizeof(*tests), true);
}
