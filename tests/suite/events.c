/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* events.c - completion channels, shared receive queues, CQ overflow, many threads, many connections. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

static struct pair *of(void **state)
{
    return *state;
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    return poll(&pollfd, 1, timeout_ms) == 1;
}

static void expect_event(struct side *side)
{
    struct rddp_cq *cq;
    void *user;

    assert_true(is_readable(rddp_comp_channel_fd(side->channel), PAIR_WAIT_MS));
    assert_int_equal(rddp_get_cq_event(side->channel, &cq, &user), 0);
    assert_ptr_equal(cq, side->cq);
    assert_ptr_equal(user, side);
    rddp_ack_cq_events(cq, 1);
}

/* One event per arming, none without; the descriptor is readable exactly while an event waits. */
static void arming(void **state)
{
    struct pair *pair = of(state);
    struct side *server = &pair->server;
    int fd = rddp_comp_channel_fd(server->channel);

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    for (unsigned i = 0; i < 4; i++)
        pair_receive(server, i, 0, 64);
    assert_int_equal(rddp_req_notify_cq(server->cq, false), 0);
    assert_false(is_readable(fd, 0));
    assert_int_equal(rddp_get_cq_event(server->channel, &(struct rddp_cq *){NULL}, NULL), -EAGAIN);
    assert_int_equal(pair_post(&pair->client, server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    expect_event(server);
    pair_completion(server);
    assert_int_equal(pair_post(&pair->client, server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    pair_completion(server);
    assert_false(is_readable(fd, 0));
    /* RDMAP-5.3-02: armed for solicited completions only, a plain Send is not one. */
    assert_int_equal(rddp_req_notify_cq(server->cq, true), 0);
    assert_int_equal(pair_post(&pair->client, server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    pair_completion(server);
    assert_false(is_readable(fd, 20));
    assert_int_equal(pair_post(&pair->client, server, RDDP_WR_SEND, 0, 0, 8, 0, RDDP_SEND_SOLICITED), 0);
    expect_event(server);
    pair_completion(server);
}

static atomic_bool acknowledged;

static void *destroy(void *cq)
{
    assert_int_equal(rddp_destroy_cq(cq), 0);
    assert_true(acknowledged);
    return NULL;
}

/* A CQ stays until all of its events that were taken are acknowledged. One that was not taken vanishes with it. */
static void destroyed_meanwhile(void **state)
{
    struct pair *pair = of(state);
    struct side *side = &pair->client;
    struct rddp_cq *cq = rddp_create_cq(side->context, 8, side, side->channel), *taken;
    struct rddp_qp_attr attr = pair->qp_attr;
    pthread_t thread;

    attr.send_cq = attr.recv_cq = cq;
    for (int i = 0; i < 3; i++) {
        struct rddp_qp *qp = rddp_create_qp(side->pd, &attr);

        assert_int_equal(rddp_req_notify_cq(cq, false), 0);
        assert_int_equal(rddp_post_recv(qp, &(struct rddp_recv_wr){.wr_id = 1}, NULL), 0);
        assert_int_equal(rddp_fail_qp(qp), 0);
        if (i < 2)
            assert_int_equal(rddp_get_cq_event(side->channel, &taken, NULL), 0);
        assert_int_equal(rddp_destroy_qp(qp), 0);
    }
    acknowledged = false;
    assert_int_equal(pthread_create(&thread, NULL, destroy, cq), 0);
    rddp_ack_cq_events(cq, 1);
    for (int i = 0; i < 1000 && is_readable(rddp_comp_channel_fd(side->channel), 0); i++)
        usleep(10000); /* the thread has not begun */
    assert_false(is_readable(rddp_comp_channel_fd(side->channel), 0));
    usleep(20000); /* long enough for a thread that does not wait */
    acknowledged = true;
    rddp_ack_cq_events(cq, 1);
    pthread_join(thread, NULL);
}

/* An error also wakes a thread that waits. */
static void woken_by_the_end(void **state)
{
    struct pair *pair = of(state);

    pair_receive(&pair->server, 1, 0, 64);
    assert_int_equal(rddp_req_notify_cq(pair->server.cq, true), 0);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    expect_event(&pair->server);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_WR_FLUSH_ERR);
}

/* RDMAP-8-02: a CQ smaller than its queues overflows, fails its own queue pair and reports it. */
static void cq_overflow(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wc wc;
    int n;

    assert_int_equal(rddp_destroy_cq(pair->client.cq), 0);
    pair->client.cq = rddp_create_cq(pair->client.context, 8, &pair->client, pair->client.channel);
    pair_connect(pair);
    for (unsigned i = 0; i < PAIR_DEPTH; i++)
        pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, 1, 0, RDDP_SEND_SIGNALED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    for (uint64_t i = 0; (n = rddp_poll_cq(pair->client.cq, 1, &wc)) > 0; i++)
        assert_int_equal(wc.wr_id, i);
    assert_int_equal(n, -EOVERFLOW);
    assert_true(pair->client.logged > 0);
}

/* The CQ grows while threads post and poll, and becomes as small as what is in it. */
static void resized(void **state)
{
    struct pair *pair = of(state);
    struct rddp_cq *cq = pair->client.cq;
    struct rddp_wc wc[8];

    assert_int_equal(rddp_stamp_cq(cq), -EBUSY); /* a queue pair uses it */
    assert_int_equal(rddp_resize_cq(cq, 0), -EINVAL);
    assert_int_equal(rddp_resize_cq(cq, (1 << 20) + 1), -EINVAL);
    assert_int_equal(rddp_resize_cq(cq, 1 << 20), 0);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_READ, i, 0, 64, 0, RDDP_SEND_SIGNALED),
                         0);
        assert_int_equal(rddp_resize_cq(cq, (int)(i % 3) + PAIR_DEPTH), 0);
    }
    for (uint64_t i = 0; i < 8; i += 4) {
        pair_completions(&pair->client, wc, 4);
        for (uint64_t k = 0; k < 4; k++)
            assert_int_equal(wc[k].wr_id, i + k);
        assert_int_equal(rddp_resize_cq(cq, i ? 1 : 4), 0); /* what is in it, or may still come */
    }
    assert_int_equal(rddp_resize_cq(cq, 2), 0);
    for (uint64_t i = 0; i < 2; i++)
        pair_receive(&pair->client, i, 0, 64);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    assert_int_equal(rddp_resize_cq(cq, 1), -EINVAL);
    assert_int_equal(rddp_resize_cq(cq, 2), 0);
    pair_completions(&pair->client, wc, 2);
    assert_int_equal(wc[1].wr_id, 1);
}

/* Four threads post and one polls; every message arrives once. */
enum { THREADS = 4, EACH = 500 };

static void *post_many(void *arg)
{
    struct pair *pair = arg;

    for (unsigned i = 0; i < EACH; i++)
        while (pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, 2000, 0, RDDP_SEND_SIGNALED) ==
               -ENOMEM)
            sched_yield();
    return NULL;
}

static void threads(void **state)
{
    struct pair *pair = of(state);
    pthread_t thread[THREADS];
    struct rddp_wc wc;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, post_many, pair), 0);
    for (unsigned i = 0; i < THREADS * EACH; i++) {
        wc = pair_completion(&pair->client);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void use_srq(struct pair *pair, struct rddp_srq *srq)
{
    struct rddp_sge sge = pair_sge(&pair->server, 0, 64);
    struct rddp_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

    for (int i = 0; i < 10; i++)
        assert_int_equal(rddp_post_srq_recv(srq, &wr, NULL), 0);
}

/* Two hundred connections on one shared receive queue, all alive at once; then one is destroyed abruptly, and the
 * others are not affected. */
static void many_connections(void **state)
{
    enum { MANY = 200 };
    struct pair *pair = of(state);
    struct rddp_srq *srq = rddp_create_srq(pair->server.pd, 2 * MANY, 1);
    struct rddp_qp *client[MANY], *server[MANY];
    struct rddp_qp_attr attr;
    struct rddp_conn_attr conn;
    struct rddp_wc wc;

    assert_non_null(srq);
    rddp_qp_attr_init(&attr);
    rddp_conn_attr_init(&conn);
    conn.wire = pair_wire(pair->row, false);
    for (int i = 0; i < MANY; i++) {
        attr.srq = NULL;
        attr.send_cq = attr.recv_cq = pair->client.cq;
        client[i] = rddp_create_qp(pair->client.pd, &attr);
        attr.srq = srq;
        attr.send_cq = attr.recv_cq = pair->server.cq;
        server[i] = rddp_create_qp(pair->server.pd, &attr);
        assert_int_equal(
            rddp_connect(client[i], pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &conn), 0);
        assert_int_equal(rddp_accept(pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST).request, server[i], NULL),
                         0);
        pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
        pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    }
    use_srq(pair, srq);
    assert_int_equal(rddp_destroy_srq(srq), -EBUSY);
    for (int i = 0; i < MANY; i++) {
        pair->client.qp = client[i];
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
        wc = pair_completion(&pair->server);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.qp_num, rddp_qp_num(server[i]));
        if (i % 10 == 9)
            use_srq(pair, srq);
    }
    assert_int_equal(rddp_destroy_qp(client[0]), 0);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair->client.qp = client[1];
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    for (int i = 0; i < MANY; i++) {
        if (i)
            assert_int_equal(rddp_destroy_qp(client[i]), 0);
        assert_int_equal(rddp_destroy_qp(server[i]), 0);
    }
    pair->client.qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
}

/* A destroyed queue pair removes its completions, and no others, from both of its CQs. */
static void gone_with_the_queue_pair(void **state)
{
    struct pair *pair = of(state);
    struct side *side = &pair->client;
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_cq *cq[2] = {rddp_create_cq(side->context, 8, NULL, NULL),
                             rddp_create_cq(side->context, 8, NULL, NULL)};
    struct rddp_qp *qp[2];
    struct rddp_send_wr send = {.opcode = RDDP_WR_SEND, .wr_id = 1};
    struct rddp_recv_wr recv = {.wr_id = 2};
    struct rddp_wc wc[8];
    uint32_t left;
    int n;

    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    pair->listener = NULL;
    attr.send_cq = cq[0];
    attr.recv_cq = cq[1];
    for (int i = 0; i < 2; i++) {
        qp[i] = rddp_create_qp(side->pd, &attr);
        assert_int_equal(rddp_connect(qp[i], side->events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), NULL),
                         0);
        pair_event(side, RDDP_EVENT_UNREACHABLE);
        assert_int_equal(rddp_post_send(qp[i], &send, NULL), 0);
        assert_int_equal(rddp_post_recv(qp[i], &recv, NULL), 0);
    }
    left = rddp_qp_num(qp[1]);
    assert_int_equal(rddp_destroy_qp(qp[0]), 0);
    for (int i = 0; i < 2; i++) {
        while ((n = rddp_poll_cq(cq[i], 8, wc)) == 0) /* another thread may flush, a little later */
            usleep(100);
        assert_int_equal(n, 1);
        assert_int_equal(wc[0].status, RDDP_WC_WR_FLUSH_ERR);
        assert_int_equal(wc[0].qp_num, left);
    }
    assert_int_equal(rddp_destroy_qp(qp[1]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rddp_destroy_cq(cq[i]), 0);
}

int main(void)
{
    static const struct pair_test connected[] = {PAIR_TEST(arming), PAIR_TEST(woken_by_the_end), PAIR_TEST(threads),
                                                 PAIR_TEST(destroyed_meanwhile), PAIR_TEST(resized)};
    static const struct pair_test open[] = {PAIR_TEST(cq_overflow), PAIR_TEST(many_connections),
                                            PAIR_TEST(gone_with_the_queue_pair)};
    struct rlimit files = {4096, 4096};
    int failed;

    (void)setrlimit(RLIMIT_NOFILE, &files);
    failed = pair_run("events", connected, sizeof(connected) / sizeof(*connected), true);
    return failed + pair_run("many", open, sizeof(open) / sizeof(*open), false);
}
