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
#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { RECEIVES = 16, ROUNDS = 300, CALLS_MAX = 64 };

/* The functions that the linker puts in place of the C library's. Every call fails from the one with this number on; 0:
 * none does. */
static _Atomic int bad_from, calls;

/* In this call of the thread, counted down to 0, another thread fails this queue pair, unless the caller keeps it out.
 */
static _Thread_local struct rddp_qp *victim;
static _Thread_local int victim_in;
static unsigned joined, changed; /* how often it did; and found the queue pair changed at once */

void *__real_calloc(size_t n, size_t octets);
void *__wrap_calloc(size_t n, size_t octets);

static bool would_wait(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock))
        return true;
    pthread_mutex_unlock(lock);
    return false;
}

/* While one thread connects a queue pair, it alone changes it. */
static void fail_victim(void)
{
    struct rddp_qp *qp = victim;

    victim = NULL;
    if (would_wait(&qp->context->lock) || (qp->loop && would_wait(&qp->loop->lock)) || !qp->is_joining || qp->endpoint)
        return;
    joined++;
    changed += rddp_fail_qp(qp) || qp->qp.state != QP_IDLE;
}

void *__wrap_calloc(size_t n, size_t octets)
{
    int call = ++calls, from = bad_from;

    if (victim && !--victim_in)
        fail_victim();
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

/* The same with each allocation of the call in turn. A queue pair that was never connected has no loop yet, whose lock
 * would keep the other thread out. */
static void failed_in_the_middle(void **state)
{
    struct pair *pair = *state;
    struct side *side = &pair->client;
    socklen_t length = pair->addr.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    struct rddp_conn_attr attr;
    struct rddp_qp_attr qp_attr;

    joined = changed = 0;
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = side->cq;
    for (int call = 1; call < CALLS_MAX; call++) {
        struct rddp_qp *qp = rddp_create_qp(side->pd, &qp_attr);

        assert_non_null(qp);
        victim_in = call;
        victim = qp;
        assert_int_equal(rddp_connect(qp, side->events, (struct sockaddr *)&pair->addr, length, &attr), 0);
        victim = NULL;
        assert_int_equal(rddp_fail_qp(qp), 0);
        assert_int_equal(qp->qp.state, QP_ERROR);
        assert_int_equal(rddp_destroy_qp(qp), 0);
    }
    assert_in_range(joined, 1, CALLS_MAX);
    assert_int_equal(changed, 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(the_end_is_told),
        PAIR_TEST(a_refusal_is_told),
        PAIR_TEST(failed_while_it_connects),
        PAIR_TEST(failed_in_the_middle),
    };

    return pair_run("scarce_event", tests, countof(tests), true);
}
