/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scarce_event.c - memory runs out while queue pairs connect and end: a call says so, or every event comes. And a queue
 * pair is failed while another thread connects it. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/container.h"
#include "base/spin.h"
#include "tests/suite/lib/pair.h"

enum { RECEIVES = 16, ROUNDS = 300, CALLS_MAX = 64 };

/* The functions that the linker puts in place of the C library's. Every call fails from the one with this number on; 0:
 * none does. */
static _Atomic int bad_from, calls;

void *__real_calloc(size_t n, size_t octets);
void *__wrap_calloc(size_t n, size_t octets);

void *__wrap_calloc(size_t n, size_t octets)
{
    int call = ++calls, from = bad_from;

    return from && call >= from ? NULL : __real_calloc(n, octets);
}

static void fail_from(int call)
{
    calls = 0;
    bad_from = call;
}

/* The connection ends while there is no memory at all. */
static void the_end_is_told(void **state)
{
    struct pair *pair = *state;

    fail_from(1);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    fail_from(0);
}

static const struct sockaddr_in unused = {.sin_family = AF_INET, .sin_port = 0x0100};

/* There is no listener. The n-th allocation of the call and all after it fail: it says so, or its event comes. */
static void a_refusal_is_told(void **state)
{
    struct pair *pair = *state;
    struct sockaddr_in addr = unused;
    int call = 0, error = -ENOMEM;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(rddp_reset_qp(pair->client.qp), 0);
    while (error && ++call < CALLS_MAX) {
        fail_from(call);
        error = rddp_connect(pair->client.qp, pair->client.events, (const struct sockaddr *)&addr, sizeof(addr), NULL);
        assert_true(!error || error == -ENOMEM);
        if (!error)
            pair_event(&pair->client, RDDP_EVENT_UNREACHABLE);
        fail_from(0);
    }
    assert_in_range(call, 2, CALLS_MAX - 1);
}

static _Atomic(struct rddp_qp *) target;
static _Atomic bool is_over;

static void *fail_it(void *arg)
{
    struct rddp_qp *qp;

    (void)arg;
    while (!is_over) {
        if ((qp = atomic_exchange(&target, NULL)))
            assert_int_equal(rddp_fail_qp(qp), 0);
        sched_yield();
    }
    return NULL;
}

/* Whatever comes first, the queue pair is in error, its receives are flushed once each, and its connection is over. */
static void failed_while_it_connects(void **state)
{
    struct pair *pair = *state;
    struct side *side = &pair->client;
    struct rddp_conn_attr attr;
    struct rddp_wc wc[RECEIVES];
    pthread_t thread;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    assert_int_equal(pthread_create(&thread, NULL, fail_it, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        socklen_t length = pair->addr.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        int error;

        assert_int_equal(rddp_reset_qp(side->qp), 0);
        for (int j = 0; j < RECEIVES; j++)
            pair_receive(side, (uint64_t)j, 0, 8);
        target = side->qp;
        for (int j = i % 8 * 100; j; j--)
            spin_pause();
        error = rddp_connect(side->qp, side->events, (struct sockaddr *)&pair->addr, length, &attr);
        assert_true(!error || error == -EINVAL); /* it was in error before */
        while (target)
            sched_yield();
        pair_completions(side, wc, RECEIVES);
        for (int j = 0; j < RECEIVES; j++)
            assert_int_equal(wc[j].status, RDDP_WC_WR_FLUSH_ERR);
    }
    is_over = true;
    pthread_join(thread, NULL);
    is_over = false;
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(the_end_is_told),
        PAIR_TEST(a_refusal_is_told),
        PAIR_TEST(failed_while_it_connects),
    };

    return pair_run("scarce_event", tests, countof(tests), true);
}
