/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork_halfway.c - what a child of fork() has of that which another thread of its parent was in the middle of, or which
 * the application had not taken yet. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

enum { DEPTH = 4, CHILD_S = 40 };

/* In a child, cmocka has no say. */
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "child: %s:%d: %s\n", __FILE__, __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

static void in_child(void (*work)(struct pair *), struct pair *pair)
{
    pid_t child = fork_apart(CHILD_S);
    int status;

    assert_true(child >= 0);
    if (!child) {
        work(pair);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int set_up(void **state)
{
    static const struct row plain = {.name = "plain", .mpa_revision = 2};
    static struct pair pair;

    pair = (struct pair){0};
    pair_open(&pair, &plain);
    pair.qp_attr.max_send_wr = pair.qp_attr.max_recv_wr = DEPTH;
    *state = &pair;
    return 0;
}

static int tear_down(void **state)
{
    pair_close(*state);
    return 0;
}

/* --- a thread was connecting a queue pair ---------------------------------------------------------------------- */

static void claim(struct pair *pair)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = pair->client.cq;
    pair->client.qp = rddp_create_qp(pair->client.pd, &attr);
    assert_non_null(pair->client.qp);
    pair_receive(&pair->client, 5, 0, 8);
    assert_int_equal(qp_claim(pair->client.qp, &pair->client.events), 0); /* where rddp_connect() begins */
}

static void expect_failed(struct pair *pair)
{
    struct rddp_qp_info info;
    struct rddp_wc wc;

    CHECK(!rddp_query_qp(pair->client.qp, &info) && info.state == RDDP_QP_ERROR);
    CHECK(rddp_poll_cq(pair->client.cq, 1, &wc) == 1);
    CHECK(wc.wr_id == 5 && wc.status == RDDP_WC_WR_FLUSH_ERR);
}

/* The child has no such thread, and does with the queue pair what it likes. */
static void expect_idle(struct pair *pair)
{
    struct rddp_qp_info info;

    CHECK(!rddp_query_qp(pair->client.qp, &info) && info.state == RDDP_QP_IDLE);
    CHECK(!rddp_fail_qp(pair->client.qp));
    expect_failed(pair);
    CHECK(!rddp_destroy_qp(pair->client.qp));
    CHECK(!rddp_destroy_event_channel(pair->client.events));
}

static void connecting(void **state)
{
    struct pair *pair = *state;

    claim(pair);
    in_child(expect_idle, pair);
    qp_unclaim(pair->client.qp);
}

/* The queue pair was failed meanwhile, which that thread would have heeded. */
static void failed_connecting(void **state)
{
    struct pair *pair = *state;

    claim(pair);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    in_child(expect_failed, pair);
    qp_unclaim(pair->client.qp);
}

/* --- loops were asked for something ---------------------------------------------------------------------------- */

static void expect_unasked(struct pair *pair)
{
    struct rddp_wc wc;

    CHECK(!rddp_poll_cq(pair->client.cq, 0, &wc)); /* a call that drives no loop */
    CHECK(!loop_is_asked(pair->client.context->loop));
}

/* Who asks a loop wakes it only if it was not asked before: in the child a request of the parent's would stay. */
static void asked(void **state)
{
    struct pair *pair = *state;
    struct loop *loop = pair->client.context->loop;

    loop_lock(loop);
    loop->spans_wanted = loop->receives_posted = true;
    loop_unlock(loop);
    in_child(expect_unasked, pair);
}

/* --- completions were not polled ------------------------------------------------------------------------------- */

static int post_write(struct pair *pair)
{
    return pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 1, 0, 8, 0, RDDP_SEND_SIGNALED);
}

/* Completions keep the places of their requests in the child, too, until it polls them. */
static void expect_full(struct pair *pair)
{
    struct rddp_wc wc;

    CHECK(post_write(pair) == -ENOMEM);
    for (unsigned i = 0; i < DEPTH; i++)
        CHECK(rddp_poll_cq(pair->client.cq, 1, &wc) == 1 && wc.status == RDDP_WC_SUCCESS);
    for (unsigned i = 0; i < DEPTH; i++)
        CHECK(!post_write(pair));
    CHECK(post_write(pair) == -ENOMEM);
}

static void unpolled(void **state)
{
    struct pair *pair = *state;
    const struct cq *cq;

    pair_connect(pair);
    cq = &pair->client.cq->cq;
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(post_write(pair), 0);
    while (cq->head - cq->tail < DEPTH)
        usleep(1000);
    in_child(expect_full, pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(connecting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failed_connecting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unpolled, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
