/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.c - asynchronous events: which come, on which channel, and until when their object stays. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

static struct rddp_async_channel *watch_of(struct side *side)
{
    struct rddp_async_channel *channel = rddp_create_async_channel(side->context);

    assert_non_null(channel);
    assert_int_equal(rddp_watch_qp(side->qp, channel, side), 0);
    return channel;
}

static bool is_readable(struct rddp_async_channel *channel, int timeout_ms)
{
    struct pollfd fd = {.fd = rddp_async_channel_fd(channel), .events = POLLIN};

    return poll(&fd, 1, timeout_ms) == 1;
}

static struct rddp_async_event take(struct rddp_async_channel *channel, enum rddp_async_type type)
{
    struct rddp_async_event event;

    assert_true(is_readable(channel, PAIR_WAIT_MS));
    assert_int_equal(rddp_get_async_event(channel, &event), 0);
    if (event.type != type)
        fail_msg("\"%s\" instead of \"%s\"", rddp_async_event_str(event.type), rddp_async_event_str(type));
    return event;
}

static void expect(struct rddp_async_channel *channel, struct side *side, enum rddp_async_type type)
{
    struct rddp_async_event event = take(channel, type);

    assert_ptr_equal(event.qp, side->qp);
    assert_null(event.cq);
    assert_null(event.srq);
    assert_ptr_equal(event.user, side);
    rddp_ack_async_event(&event);
}

/* The connection has ended at both sides, and nothing else was reported. */
static void expect_end(struct pair *pair, struct rddp_async_channel *client, struct rddp_async_channel *server)
{
    struct side *sides[] = {&pair->client, &pair->server};
    struct rddp_async_channel *channels[] = {client, server};

    for (int i = 0; i < 2; i++) {
        pair_event(sides[i], RDDP_EVENT_DISCONNECTED);
        assert_false(is_readable(channels[i], 0));
        assert_int_equal(rddp_destroy_async_channel(channels[i]), -EBUSY);
        assert_int_equal(rddp_destroy_qp(sides[i]->qp), 0);
        sides[i]->qp = NULL;
        assert_int_equal(rddp_destroy_async_channel(channels[i]), 0);
    }
}

static void wrong_key(void **state)
{
    struct pair *pair = *state;
    struct rddp_async_channel *client = watch_of(&pair->client), *server = watch_of(&pair->server);
    struct rddp_sge sge = pair_sge(&pair->client, 0, 8);
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .rkey = rddp_mr_key(pair->server.mr) ^ 1};

    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    expect(server, &pair->server, RDDP_ASYNC_QP_ACCESS_ERR);
    expect_end(pair, client, server);
}

static void no_receive(void **state)
{
    struct pair *pair = *state;
    struct rddp_async_channel *client, *server;

    if (pair->row->wire == RDDP_WIRE_ROCE)
        skip(); /* the peer sends it again until there is one */
    client = watch_of(&pair->client);
    server = watch_of(&pair->server);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    expect(server, &pair->server, RDDP_ASYNC_QP_REQ_ERR);
    expect_end(pair, client, server);
}

static void regular_end(void **state)
{
    struct pair *pair = *state;
    struct rddp_async_channel *client = watch_of(&pair->client), *server = watch_of(&pair->server);

    pair_receive(&pair->server, 1, 0, 8);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    expect_end(pair, client, server);
}

/* Completions report these: a receive that is too short, and memory that may not be sent. */
static void what_completions_say(void **state)
{
    struct pair *pair = *state;
    struct rddp_async_channel *client = watch_of(&pair->client), *server = watch_of(&pair->server);
    struct rddp_sge sge = {.length = 8, .lkey = rddp_mr_key(pair->client.mr) ^ 1};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .rkey = rddp_mr_key(pair->server.mr)};

    assert_int_equal(rddp_post_send(pair->client.qp, &wr, NULL), 0);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_LOC_PROT_ERR);
    expect_end(pair, client, server);
}

static void full_cq(void **state)
{
    struct pair *pair = *state;
    struct rddp_async_channel *channel;
    struct rddp_async_event event;

    assert_int_equal(rddp_destroy_cq(pair->client.cq), 0);
    pair->client.cq = rddp_create_cq(pair->client.context, 8, &pair->client, pair->client.channel);
    pair_connect(pair);
    channel = watch_of(&pair->client);
    assert_int_equal(rddp_watch_cq(pair->client.cq, channel, pair), 0);
    for (unsigned i = 0; i < PAIR_DEPTH; i++)
        pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, 1, 0, RDDP_SEND_SIGNALED);
    event = take(channel, RDDP_ASYNC_CQ_ERR);
    assert_ptr_equal(event.cq, pair->client.cq);
    assert_null(event.qp);
    assert_ptr_equal(event.user, pair);
    rddp_ack_async_event(&event);
    expect(channel, &pair->client, RDDP_ASYNC_QP_FATAL);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    assert_false(is_readable(channel, 0));
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair->client.qp = NULL;
    assert_int_equal(rddp_destroy_cq(pair->client.cq), 0);
    assert_int_equal(rddp_destroy_async_channel(channel), 0);
    pair->client.cq = rddp_create_cq(pair->client.context, 8, &pair->client, pair->client.channel);
}

/* --- shared receive queues --------------------------------------------------------------------------------------- */

static struct rddp_srq *connect_to_srq(struct pair *pair, uint32_t receives)
{
    struct rddp_srq *srq = rddp_create_srq(pair->server.pd, receives, 1);
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_sge sge = pair_sge(&pair->server, 0, 64);

    attr.send_cq = attr.recv_cq = pair->client.cq;
    pair->client.qp = rddp_create_qp(pair->client.pd, &attr);
    attr.send_cq = attr.recv_cq = pair->server.cq;
    attr.srq = srq;
    pair->server.qp = rddp_create_qp(pair->server.pd, &attr);
    pair_join(pair);
    for (uint32_t i = 0; i < receives; i++)
        assert_int_equal(
            rddp_post_srq_recv(srq, &(struct rddp_recv_wr){.wr_id = i, .sg_list = &sge, .num_sge = 1}, NULL), 0);
    return srq;
}

static void send_one(struct pair *pair, uint64_t id)
{
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 8, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).wr_id, id);
}

static void expect_limit(struct rddp_async_channel *channel, struct rddp_srq *srq)
{
    struct rddp_async_event event = take(channel, RDDP_ASYNC_SRQ_LIMIT_REACHED);

    assert_ptr_equal(event.srq, srq);
    assert_null(event.qp);
    assert_ptr_equal(event.user, srq);
    rddp_ack_async_event(&event);
    assert_false(is_readable(channel, 0));
}

static void expect_srq(struct rddp_srq *srq, uint32_t max_wr, uint32_t limit, uint32_t posted)
{
    struct rddp_srq_info info;

    assert_int_equal(rddp_query_srq(srq, &info), 0);
    assert_int_equal(info.max_wr, max_wr);
    assert_int_equal(info.max_sge, 1);
    assert_int_equal(info.limit, limit);
    assert_int_equal(info.posted, posted);
}

static void srq_limit(void **state)
{
    struct pair *pair = *state;
    struct rddp_srq *srq = connect_to_srq(pair, 4);
    struct rddp_async_channel *channel = watch_of(&pair->server);

    assert_int_equal(rddp_watch_srq(srq, channel, srq), 0);
    assert_int_equal(rddp_set_srq_limit(srq, 5), -EINVAL);
    assert_int_equal(rddp_set_srq_limit(srq, 3), 0);
    expect_srq(srq, 4, 3, 4);
    send_one(pair, 0);
    assert_false(is_readable(channel, 0));
    send_one(pair, 1);
    expect_limit(channel, srq);
    expect_srq(srq, 4, 0, 2);
    send_one(pair, 2);
    assert_false(is_readable(channel, 0));
    assert_int_equal(rddp_set_srq_limit(srq, 2), 0);
    expect_limit(channel, srq);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    expect(channel, &pair->server, RDDP_ASYNC_QP_LAST_WQE_REACHED);
    expect_srq(srq, 4, 0, 1);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_destroy_qp(pair->server.qp), 0);
    pair->server.qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
    assert_int_equal(rddp_destroy_async_channel(channel), 0);
}

/* The queue grows and shrinks while messages arrive; each takes the oldest receive. */
static void srq_resized(void **state)
{
    enum { ROUNDS = 200 };
    static const uint32_t sizes[] = {5, 16, 4, 300, 6, 1024};
    struct pair *pair = *state;
    struct rddp_srq *srq = connect_to_srq(pair, 4);
    struct rddp_sge sge = pair_sge(&pair->server, 0, 64);

    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(rddp_resize_srq(srq, 3), -EINVAL);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, i, 0, 8, 0, RDDP_SEND_SIGNALED), 0);
        assert_int_equal(rddp_resize_srq(srq, sizes[i % 6]), 0);
        assert_int_equal(pair_completion(&pair->server).wr_id, i);
        assert_int_equal(pair_completion(&pair->client).wr_id, i);
        assert_int_equal(
            rddp_post_srq_recv(srq, &(struct rddp_recv_wr){.wr_id = 4 + i, .sg_list = &sge, .num_sge = 1}, NULL), 0);
        expect_srq(srq, sizes[i % 6], 0, 4);
    }
    assert_int_equal(rddp_resize_srq(srq, 0), -EINVAL);
    assert_int_equal(rddp_resize_srq(srq, 16385), -EINVAL);
    assert_int_equal(rddp_resize_srq(srq, 16384), 0);
    assert_int_equal(rddp_destroy_qp(pair->server.qp), 0);
    pair->server.qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
}

/* --- channels and their objects ---------------------------------------------------------------------------------- */

static atomic_bool acknowledged;

static void *destroy(void *qp)
{
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_true(acknowledged);
    return NULL;
}

static void destroyed_meanwhile(void **state)
{
    struct pair *pair = *state;
    struct rddp_srq *srq = connect_to_srq(pair, 1);
    struct rddp_async_channel *channel = watch_of(&pair->server);
    struct rddp_async_event event;
    pthread_t thread;

    assert_int_equal(rddp_fail_qp(pair->server.qp), 0);
    event = take(channel, RDDP_ASYNC_QP_LAST_WQE_REACHED);
    acknowledged = false;
    assert_int_equal(pthread_create(&thread, NULL, destroy, pair->server.qp), 0);
    usleep(20000); /* long enough for a thread that does not wait */
    acknowledged = true;
    rddp_ack_async_event(&event);
    pthread_join(thread, NULL);
    pair->server.qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
    assert_int_equal(rddp_destroy_async_channel(channel), 0);
}

/* An event that was not taken vanishes with a reset; the next end is reported again. */
static void reset(void **state)
{
    struct pair *pair = *state;
    struct rddp_srq *srq = connect_to_srq(pair, 1);
    struct rddp_async_channel *channel = watch_of(&pair->server);

    assert_int_equal(rddp_fail_qp(pair->server.qp), 0);
    assert_true(is_readable(channel, 0));
    assert_int_equal(rddp_reset_qp(pair->server.qp), 0);
    assert_false(is_readable(channel, 0));
    assert_int_equal(rddp_fail_qp(pair->server.qp), 0);
    expect(channel, &pair->server, RDDP_ASYNC_QP_LAST_WQE_REACHED);
    assert_int_equal(rddp_fail_qp(pair->server.qp), 0);
    assert_false(is_readable(channel, 0));
    assert_int_equal(rddp_destroy_qp(pair->server.qp), 0);
    pair->server.qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
    assert_int_equal(rddp_destroy_async_channel(channel), 0);
}

static void channels(void **state)
{
    struct pair *pair = *state;
    struct rddp_async_channel *other = rddp_create_async_channel(pair->server.context), *channel;
    struct rddp_async_event event;

    channel = watch_of(&pair->client);
    assert_int_equal(rddp_watch_qp(pair->client.qp, channel, NULL), -EBUSY);
    assert_int_equal(rddp_watch_cq(pair->client.cq, other, NULL), -EINVAL);
    assert_int_equal(fcntl(rddp_async_channel_fd(channel), F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rddp_get_async_event(channel, &event), -EAGAIN);
    assert_int_equal(rddp_destroy_async_channel(other), 0);
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair->client.qp = NULL;
    assert_int_equal(rddp_destroy_async_channel(channel), 0);
}

int main(void)
{
    static const struct pair_test connected[] = {
        PAIR_TEST(wrong_key), PAIR_TEST(no_receive), PAIR_TEST(regular_end), PAIR_TEST(what_completions_say),
        PAIR_TEST(channels),
    };
    static const struct pair_test open[] = {
        PAIR_TEST(full_cq), PAIR_TEST(srq_limit), PAIR_TEST(srq_resized), PAIR_TEST(destroyed_meanwhile),
        PAIR_TEST(reset),
    };
    int failed = pair_run("async", connected, sizeof(connected) / sizeof(*connected), true);

    return failed + pair_run("async, open", open, sizeof(open) / sizeof(*open), false);
}
