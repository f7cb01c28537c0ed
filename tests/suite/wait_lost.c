/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait_lost.c - a connection on which a message waits for a receive turns out to be lost just when it is served. */
#include <errno.h>
#include <time.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

static struct pair pair;
static struct link_kind kind, real; /* of the link of the server, which fails when it is told to */
static _Atomic bool fails;
static _Atomic int error; /* of the request that is posted then */

static int set_up(void **state)
{
    static const struct row plain = {.name = "plain", .mpa_revision = 2};

    (void)state;
    pair = (struct pair){0};
    fails = false;
    pair_open(&pair, &plain);
    pair.qp_attr.wait_for_receive_ms = RDDP_WAIT_WITHOUT_LIMIT;
    pair_connect(&pair);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pair_close(&pair);
    return 0;
}

static void a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* What the holder of the endpoint does last before it releases it. Meanwhile another thread posts. */
static void want(struct link *link, unsigned wants)
{
    real.want(link, wants);
    if (!atomic_exchange(&fails, false))
        return;
    kind.want = real.want;
    error = pair_post(&pair.server, &pair.client, RDDP_WR_RDMA_WRITE, 1, 0, 8, 0, 0);
}

static ssize_t send_nothing(struct link *link, const struct span *span, uint32_t spans)
{
    (void)link;
    (void)span;
    (void)spans;
    return -EPIPE;
}

static void await_message(void)
{
    struct rddp_qp_info info;

    do
        assert_int_equal(rddp_query_qp(pair.server.qp, &info), 0);
    while (!info.waits_for_receive);
}

static bool is_nothing_waiting(struct loop *loop)
{
    bool nothing;

    loop_lock(loop);
    nothing = loop->waiting.next == &loop->waiting;
    loop_unlock(loop);
    return nothing;
}

/* The loop is asked to serve those that wait, but another connection was faster. */
static void served_in_vain(void **state)
{
    struct endpoint *endpoint;
    struct loop *loop;

    (void)state;
    assert_int_equal(pair_post(&pair.client, &pair.server, RDDP_WR_SEND, 1, 0, 8, 0, 0), 0);
    await_message();
    endpoint = qp_hold(pair.server.qp);
    loop = endpoint->loop;
    real = kind = *endpoint->link->kind;
    kind.want = want;
    kind.send = send_nothing;
    endpoint->link->kind = &kind;
    fails = true;
    loop->receives_posted = true;
    loop_wake(loop);
    qp_release(endpoint);
    assert_int_equal(pair_event(&pair.server, RDDP_EVENT_DISCONNECTED).status, -ECONNRESET);
    assert_int_equal(error, 0);
    while ((endpoint = qp_hold(pair.server.qp))) { /* until the driver has closed it */
        qp_release(endpoint);
        a_moment();
    }
    assert_true(is_nothing_waiting(loop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(served_in_vain, set_up, tear_down)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
