/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reset.c - a queue pair is reset and used again, or moved to error by its owner. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum { LENGTH = 30000, ROUNDS = 5 };

static void expect_state(struct side *side, enum rddp_qp_state state)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(side->qp, &info), 0);
    assert_int_equal(info.state, state);
    if (state == RDDP_QP_IDLE) {
        assert_int_equal(info.tx_octets, 0);
        assert_int_equal(info.rx_octets, 0);
        assert_int_equal(info.fault, 0);
    }
}

static void exchange(struct side *from, struct side *to, unsigned seed)
{
    struct rddp_wc wc;

    pair_pattern(from->buffer, LENGTH, seed);
    pair_receive(to, seed, 0, LENGTH);
    assert_int_equal(pair_post(from, to, RDDP_WR_SEND, seed, 0, LENGTH, 0, RDDP_SEND_SIGNALED), 0);
    wc = pair_completion(to);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.wr_id, seed);
    assert_int_equal(pair_completion(from).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(to->buffer, LENGTH, seed));
}

/* Posts as many receives as it was made for, and not one more; then removes them. */
static void expect_all_places(struct side *side)
{
    struct rddp_recv_wr wr = {.wr_id = 7};
    struct rddp_wc wc;

    for (int i = 0; i < PAIR_DEPTH; i++)
        assert_int_equal(rddp_post_recv(side->qp, &wr, NULL), 0);
    assert_int_equal(rddp_post_recv(side->qp, &wr, NULL), -ENOMEM);
    assert_int_equal(rddp_reset_qp(side->qp), 0);
    assert_int_equal(rddp_poll_cq(side->cq, 1, &wc), 0);
    expect_state(side, RDDP_QP_IDLE);
}

static void reset(struct side *side)
{
    uint32_t number = rddp_qp_num(side->qp);
    struct rddp_event *event;
    struct rddp_wc wc;

    assert_int_equal(rddp_reset_qp(side->qp), 0);
    assert_int_equal(rddp_poll_cq(side->cq, 1, &wc), 0);
    assert_int_equal(rddp_get_event(side->events, &event), -EAGAIN);
    assert_int_equal(rddp_qp_num(side->qp), number);
    expect_state(side, RDDP_QP_IDLE);
    assert_int_equal(pair_post(side, side, RDDP_WR_SEND, 1, 0, 1, 0, 0), -EINVAL); /* not connected */
    expect_all_places(side);
}

/* The next connection sees nothing of the one before: completions, posts, places, message numbers. */
static void used_again(void **state)
{
    struct pair *pair = *state;

    for (unsigned i = 0; i < ROUNDS; i++) {
        exchange(&pair->client, &pair->server, i);
        exchange(&pair->server, &pair->client, 100 + i);
        for (unsigned k = 0; k < i; k++)
            pair_receive(&pair->server, k, 0, LENGTH);
        for (unsigned k = 0; k < 10; k++)
            assert_int_equal(pair_post(&pair->client, &pair->server, k % 2 ? RDDP_WR_RDMA_READ : RDDP_WR_RDMA_WRITE, k,
                                       200000, 100000, 400000, RDDP_SEND_SIGNALED),
                             0);
        if (i % 2)
            reset(&pair->client);
        reset(&pair->server);
        if (!(i % 2)) {
            pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
            reset(&pair->client);
        }
        pair_join(pair);
    }
    exchange(&pair->client, &pair->server, 99);
}

/* Reset after a close, after a failure, and before any connection. */
static void from_other_states(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    expect_state(&pair->client, RDDP_QP_CLOSED);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    expect_state(&pair->client, RDDP_QP_CLOSED);
    reset(&pair->client);
    reset(&pair->server);
    assert_int_equal(rddp_fail_qp(pair->server.qp), 0);
    expect_state(&pair->server, RDDP_QP_ERROR);
    reset(&pair->server);
    pair_join(pair);
    exchange(&pair->client, &pair->server, 1);
}

/* A peer that never answers: TCP is connected, and nothing is sent. */
static int silent_peer(struct sockaddr_in *addr)
{
    socklen_t length = sizeof(*addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &length), 0);
    return fd;
}

static void while_connecting(void **state)
{
    struct pair *pair = *state;
    struct side *side = &pair->client;
    struct rddp_conn_attr attr;
    struct sockaddr_in addr;
    int fd = silent_peer(&addr);

    rddp_conn_attr_init(&attr);
    reset(side);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    reset(&pair->server);
    assert_int_equal(rddp_connect(side->qp, side->events, (struct sockaddr *)&addr, sizeof(addr), &attr), 0);
    expect_state(side, RDDP_QP_CONNECTING);
    reset(side);

    assert_int_equal(rddp_connect(side->qp, side->events, (struct sockaddr *)&addr, sizeof(addr), &attr), 0);
    pair_receive(side, 3, 0, 1);
    assert_int_equal(rddp_fail_qp(side->qp), 0);
    assert_int_equal(pair_event(side, RDDP_EVENT_CONNECT_ERROR).status, -ECONNABORTED);
    assert_int_equal(pair_completion(side).status, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(rddp_connect(side->qp, side->events, (struct sockaddr *)&addr, sizeof(addr), &attr), -EINVAL);
    reset(side);
    close(fd);
    pair_join(pair);
    exchange(&pair->client, &pair->server, 1);
}

static void expect_flushed(struct side *side, uint64_t id)
{
    struct rddp_wc wc = pair_completion(side);

    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.status, RDDP_WC_WR_FLUSH_ERR);
    assert_non_null(strstr(rddp_fault_str(wc.vendor_err), "owner"));
}

/* Flushed in order; the peer only sees the end of the stream, without a Terminate. */
static void failed_by_owner(void **state)
{
    struct pair *pair = *state;
    struct rddp_qp_info info;
    struct rddp_wc wc;

    exchange(&pair->client, &pair->server, 5);
    for (unsigned i = 0; i < 10; i++)
        pair_receive(&pair->client, i, 0, LENGTH);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    for (unsigned i = 0; i < 10; i++)
        expect_flushed(&pair->client, i);
    assert_int_equal(pair_event(&pair->client, RDDP_EVENT_DISCONNECTED).status, -ECONNABORTED);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_equal(rddp_query_qp(pair->server.qp, &info), 0);
    assert_int_equal(info.terminate, 0);
    expect_state(&pair->client, RDDP_QP_ERROR);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 50, 0, 1, 0, 0), 0);
    expect_flushed(&pair->client, 50);
    pair_receive(&pair->client, 51, 0, 1);
    expect_flushed(&pair->client, 51);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    assert_int_equal(rddp_poll_cq(pair->client.cq, 1, &wc), 0);
    reset(&pair->client);
    reset(&pair->server);
    pair_join(pair);
    exchange(&pair->client, &pair->server, 6);
    exchange(&pair->server, &pair->client, 7);
}

/* Earlier agreements no longer hold, and a waiting event is gone. */
static void agreed_anew(void **state)
{
    struct pair *pair = *state;
    struct pollfd fd = {.fd = rddp_event_channel_fd(pair->client.events), .events = POLLIN};
    struct rddp_conn_attr attr;
    struct rddp_qp_info info;

    reset(&pair->server);
    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    reset(&pair->client);
    rddp_conn_attr_init(&attr);
    attr.ird = attr.ord = 1;
    attr.wire = pair_wire(pair->row, false);
    attr.wire.device = pair->client.device;
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        0);
    assert_int_equal(rddp_accept(pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST).request, pair->server.qp, NULL),
                     0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    exchange(&pair->client, &pair->server, 1);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.ird, 1);
    reset(&pair->client);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    reset(&pair->server);
    pair_join(pair);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.ird, 16);
    assert_int_equal(info.ord, 16);
    exchange(&pair->client, &pair->server, 2);
}

/* Completions vanish from both CQs, if there are two. */
static void of_two_cqs(void **state)
{
    struct pair *pair = *state;
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_recv_wr receive = {.wr_id = 1};
    struct rddp_send_wr send = {.wr_id = 2, .opcode = RDDP_WR_SEND};
    struct rddp_cq *cq[2];
    struct rddp_qp *qp;
    struct rddp_wc wc;

    for (int i = 0; i < 2; i++)
        assert_non_null(cq[i] = rddp_create_cq(pair->client.context, 8, NULL, NULL));
    attr.send_cq = cq[0];
    attr.recv_cq = cq[1];
    qp = rddp_create_qp(pair->client.pd, &attr);
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(rddp_post_recv(qp, &receive, NULL), 0);
        assert_int_equal(rddp_fail_qp(qp), 0);
        assert_int_equal(rddp_post_send(qp, &send, NULL), 0);
        for (int i = 0; i < 2 && !round; i++) /* both are flushed, and the first round takes the completions */
            assert_int_equal(rddp_poll_cq(cq[i], 1, &wc), 1);
        assert_int_equal(rddp_reset_qp(qp), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(rddp_poll_cq(cq[i], 1, &wc), 0);
    }
    assert_int_equal(rddp_destroy_qp(qp), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rddp_destroy_cq(cq[i]), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(used_again),       PAIR_TEST(agreed_anew),     PAIR_TEST(from_other_states),
        PAIR_TEST(while_connecting), PAIR_TEST(failed_by_owner), PAIR_TEST(of_two_cqs),
    };

    return pair_run("reset", tests, sizeof(tests) / sizeof(*tests), true);
}
