/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait_shared.c - messages of many connections wait for the receives of one shared queue; beside those that wait,
 * others go on; and a child of fork(). */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum { MANY = 5, SENDS = 3, SIZE = 5000 };

struct many {
    struct rddp_srq *srq;
    struct rddp_qp *client[MANY], *server[MANY];
};

static struct pair *of(void **state)
{
    return *state;
}

static struct rddp_qp *make_qp(struct pair *pair, struct side *side, struct rddp_srq *srq)
{
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_qp *qp;

    attr.send_cq = attr.recv_cq = side->cq;
    attr.srq = srq;
    attr.wait_for_receive_ms = RDDP_WAIT_WITHOUT_LIMIT;
    qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(qp);
    return qp;
}

static void connect_many(struct pair *pair, struct many *many, bool shared)
{
    if (pair->row->wire == RDDP_WIRE_ROCE)
        skip(); /* the peer waits, and sends it again: see roce.c */
    many->srq = shared ? rddp_create_srq(pair->server.pd, 64, 1) : NULL;
    for (int i = 0; i < MANY; i++) {
        pair->client.qp = many->client[i] = make_qp(pair, &pair->client, NULL);
        pair->server.qp = many->server[i] = make_qp(pair, &pair->server, many->srq);
        pair_join(pair);
    }
    pair->client.qp = pair->server.qp = NULL;
}

static void destroy_many(struct many *many)
{
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(rddp_destroy_qp(many->client[i]), 0);
        assert_int_equal(rddp_destroy_qp(many->server[i]), 0);
    }
    if (many->srq)
        assert_int_equal(rddp_destroy_srq(many->srq), 0);
}

static void send_one(struct pair *pair, struct rddp_qp *qp)
{
    pair->client.qp = qp;
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, SIZE, 0, 0), 0);
    pair->client.qp = NULL;
}

static void await_stall(struct rddp_qp *qp)
{
    struct rddp_qp_info info = {.state = RDDP_QP_IDLE};

    for (int i = 0; i < PAIR_WAIT_MS && !info.waits_for_receive; i++) {
        assert_int_equal(rddp_query_qp(qp, &info), 0);
        if (!info.waits_for_receive)
            usleep(1000);
    }
    assert_true(info.waits_for_receive);
}

static void post_shared(struct pair *pair, struct rddp_srq *srq, size_t at)
{
    struct rddp_sge sge = pair_sge(&pair->server, at, SIZE);
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    assert_int_equal(rddp_post_srq_recv(srq, &wr, NULL), 0);
}

static int which(const struct many *many, const struct rddp_wc *wc)
{
    int i = 0;

    assert_int_equal(wc->status, RDDP_WC_SUCCESS);
    while (i < MANY && rddp_qp_num(many->server[i]) != wc->qp_num)
        i++;
    assert_true(i < MANY);
    return i;
}

/* Each receive serves one that waits, and all in turn: who has waited longest is first. Where there are several loops,
 * or a stack of our own that has timers to serve, another one may come first, but none is forgotten. */
static void in_turn(void **state)
{
    struct pair *pair = of(state);
    struct many many;
    unsigned served[MANY] = {0};
    bool in_order =
        pair->row->loops < 2 && !pair->row->packet && !pair->row->hand_off && pair->row->wire != RDDP_WIRE_SCTP;

    connect_many(pair, &many, true);
    pair_pattern(pair->client.buffer, SIZE, 3);
    for (int i = 0; i < MANY * SENDS; i++)
        send_one(pair, many.client[i % MANY]);
    for (int i = 0; i < MANY; i++)
        await_stall(many.server[i]);
    for (unsigned i = 0; i < MANY * SENDS; i++) {
        struct rddp_wc wc;
        int served_now;

        post_shared(pair, many.srq, i * SIZE);
        wc = pair_completion(&pair->server);
        assert_true(pair_is_pattern(pair->server.buffer + i * SIZE, SIZE, 3));
        served_now = which(&many, &wc);
        served[served_now]++;
        if (in_order)
            assert_true(served[served_now] <= i / MANY + 1);
        if (served[served_now] < SENDS)
            await_stall(many.server[served_now]);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(served[i], SENDS);
    destroy_many(&many);
}

/* Many receives at once serve all that wait, and a queue pair that is destroyed meanwhile takes none with it. */
static void all_at_once(void **state)
{
    struct pair *pair = of(state);
    struct many many;
    struct rddp_wc wc[MANY - 1];

    connect_many(pair, &many, true);
    for (int i = 0; i < MANY; i++)
        send_one(pair, many.client[i]);
    for (int i = 0; i < MANY; i++)
        await_stall(many.server[i]);
    assert_int_equal(rddp_destroy_qp(many.server[0]), 0);
    for (unsigned i = 0; i < MANY - 1; i++)
        post_shared(pair, many.srq, i * SIZE);
    pair_completions(&pair->server, wc, MANY - 1);
    many.server[0] = make_qp(pair, &pair->server, many.srq);
    for (int i = 0; i < MANY - 1; i++)
        assert_true(which(&many, &wc[i]) > 0);
    destroy_many(&many);
}

/* Connections that wait, with more behind it than one read takes, share the stage with one that goes on. */
static void others_go_on(void **state)
{
    struct pair *pair = of(state);
    struct many many;

    connect_many(pair, &many, false);
    pair_pattern(pair->client.buffer, SIZE, 4);
    for (int i = 0; i < (MANY - 1) * PAIR_DEPTH; i++)
        send_one(pair, many.client[i % (MANY - 1)]);
    for (int i = 0; i < MANY - 1; i++)
        await_stall(many.server[i]);
    pair->server.qp = many.server[MANY - 1];
    for (unsigned i = 0; i < 20; i++) {
        pair_receive(&pair->server, i, 0, SIZE);
        send_one(pair, many.client[MANY - 1]);
        assert_int_equal(pair_completion(&pair->server).wr_id, i);
    }
    for (int i = 0; i < (MANY - 1) * PAIR_DEPTH; i++) {
        pair->server.qp = many.server[i % (MANY - 1)];
        memset(pair->server.buffer, 0, SIZE);
        pair_receive(&pair->server, 7, 0, SIZE);
        assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
        assert_true(pair_is_pattern(pair->server.buffer, SIZE, 4));
    }
    pair->server.qp = NULL;
    destroy_many(&many);
}

/* A child has no connection, and so no message that waits; that of the parent waits on. */
static void fork_while_it_waits(void **state)
{
    struct pair *pair = of(state);
    struct many many;
    struct rddp_qp_info info;
    struct rddp_wc wc;
    int status;
    pid_t pid;

    connect_many(pair, &many, true);
    send_one(pair, many.client[1]);
    await_stall(many.server[1]);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        _exit(rddp_query_qp(many.server[1], &info) || info.waits_for_receive || info.state != RDDP_QP_ERROR ||
              rddp_post_srq_recv(many.srq, &(struct rddp_recv_wr){.num_sge = 0}, NULL));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    post_shared(pair, many.srq, 0);
    wc = pair_completion(&pair->server);
    assert_int_equal(which(&many, &wc), 1);
    destroy_many(&many);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(in_turn),
        PAIR_TEST(all_at_once),
        PAIR_TEST(others_go_on),
        PAIR_TEST(fork_while_it_waits),
    };

    return pair_run("wait_shared", tests, sizeof(tests) / sizeof(*tests), false);
}
