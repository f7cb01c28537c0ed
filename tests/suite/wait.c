/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait.c - a message that finds no receive waits until one is posted, over every way to connect. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

enum { SENDS = 12, SIZE = 3000, LARGE = 1 << 20 };

static struct pair *of(void **state)
{
    return *state;
}

static void connect_waiting(struct pair *pair, uint32_t wait_ms)
{
    if (pair->row->wire == RDDP_WIRE_ROCE)
        skip(); /* the peer waits, and sends it again: see roce.c */
    pair->qp_attr.wait_for_receive_ms = wait_ms;
    pair_connect(pair);
}

static void post_send(struct pair *pair, uint64_t id, size_t at, size_t length)
{
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, id, at, length, 0, RDDP_SEND_SIGNALED), 0);
}

/* Waits until a message waits on this side. */
static void await_stall(struct side *side)
{
    struct rddp_qp_info info;

    for (int i = 0; i < PAIR_WAIT_MS; i++) {
        assert_int_equal(rddp_query_qp(side->qp, &info), 0);
        if (info.waits_for_receive)
            return;
        usleep(1000);
    }
    fail_msg("nothing waits; log:\n%s", side->log);
}

static void expect_receive(struct pair *pair, uint64_t id, size_t at, size_t length, unsigned seed)
{
    struct rddp_wc wc = pair_completion(&pair->server);

    if (wc.status)
        fail_msg("status %d: %s; log:\n%s", wc.status, rddp_fault_str(wc.vendor_err), pair->server.log);
    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.byte_len, length);
    assert_true(pair_is_pattern(pair->server.buffer + at, length, seed));
}

static bool has_event(const struct side *side)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(side->events), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* All Sends come before any receive; each receive that is posted takes the next. */
static void one_by_one(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_info info;

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, SIZE, 7);
    for (unsigned i = 0; i < SENDS; i++)
        post_send(pair, i, 0, SIZE);
    for (unsigned i = 0; i < SENDS; i++) {
        await_stall(&pair->server);
        pair_receive(&pair->server, 100 + i, i * SIZE, SIZE);
        expect_receive(pair, 100 + i, i * SIZE, SIZE, 7);
    }
    assert_int_equal(rddp_query_qp(pair->server.qp, &info), 0);
    assert_int_equal(info.fault, 0);
    assert_false(info.waits_for_receive);
    assert_false(has_event(&pair->server));
    assert_false(has_event(&pair->client));
}

/* Large Sends, each with many segments, and a list of receives that comes at once. */
static void large_ones(void **state)
{
    struct pair *pair = of(state);

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, LARGE, 8);
    for (unsigned i = 0; i < 4; i++)
        post_send(pair, i, 0, LARGE);
    await_stall(&pair->server);
    for (unsigned i = 0; i < 4; i++)
        pair_receive(&pair->server, i, i * LARGE, LARGE);
    for (unsigned i = 0; i < 4; i++)
        expect_receive(pair, i, i * LARGE, LARGE, 8);
}

/* Writes in front of the Send are placed, and what is behind it on the stream waits with it. */
static void behind_writes(void **state)
{
    struct pair *pair = of(state);

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, SIZE, 9);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, SIZE, (2 * i + 1) * SIZE, 0),
                         0);
        post_send(pair, i, 0, SIZE);
    }
    await_stall(&pair->server);
    assert_true(pair_is_pattern(pair->server.buffer + SIZE, SIZE, 9));
    for (unsigned i = 0; i < 8; i++) {
        pair_receive(&pair->server, i, 2 * i * SIZE, SIZE);
        expect_receive(pair, i, 2 * i * SIZE, SIZE, 9);
        assert_true(pair_is_pattern(pair->server.buffer + (2 * i + 1) * SIZE, SIZE, 9));
    }
}

/* Both ends send and neither has a receive: both wait, and each goes on when it posts. The message that waits lets the
 * responder speak, as any first message does. */
static void both_directions(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wc wc;

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, SIZE, 1);
    pair_pattern(pair->server.buffer + LARGE, SIZE, 2);
    post_send(pair, 1, 0, SIZE);
    assert_int_equal(pair_post(&pair->server, &pair->client, RDDP_WR_SEND, 2, LARGE, SIZE, 0, 0), 0);
    await_stall(&pair->server);
    await_stall(&pair->client);
    pair_receive(&pair->client, 3, 2 * LARGE, SIZE);
    do
        wc = pair_completion(&pair->client);
    while (wc.wr_id != 3); /* the Send of this end may complete before */
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->client.buffer + 2 * LARGE, SIZE, 2));
    pair_receive(&pair->server, 4, 2 * LARGE, SIZE);
    expect_receive(pair, 4, 2 * LARGE, SIZE, 1);
}

/* --- the end --------------------------------------------------------------------------------------------------- */

/* The time is over: the connection ends as it does without waiting. */
static void too_late(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wc wc;

    connect_waiting(pair, 50);
    post_send(pair, 1, 0, SIZE);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, -EPROTO);
    assert_true(pair_said(&pair->server, "no receive is posted"));
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_receive(&pair->server, 5, 0, SIZE);
    wc = pair_completion(&pair->server);
    assert_int_equal(wc.status, RDDP_WC_WR_FLUSH_ERR);
}

/* The peer is gone, by a close or without one: what came before the message that waits stays, and the end is told
 * within a second although nothing is read. */
static void peer_goes(struct pair *pair, bool closes)
{
    struct rddp_wc wc;

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, SIZE, 4);
    pair_receive(&pair->server, 1, 0, SIZE);
    post_send(pair, 1, 0, SIZE);
    post_send(pair, 2, 0, SIZE);
    await_stall(&pair->server);
    pair_completions(&pair->client, (struct rddp_wc[2]){{0}}, 2);
    if (closes) {
        assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    } else {
        assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
        pair->client.qp = NULL;
    }
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, -ECONNRESET);
    expect_receive(pair, 1, 0, SIZE, 4);
    pair_receive(&pair->server, 2, 0, SIZE);
    wc = pair_completion(&pair->server);
    assert_int_equal(wc.status, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.wr_id, 2);
}

static void peer_closes(void **state)
{
    peer_goes(of(state), true);
}

static void peer_is_destroyed(void **state)
{
    peer_goes(of(state), false);
}

/* A receive that is posted soon after the peer's close still gets its message. */
static void peer_closes_before_the_receive(void **state)
{
    struct pair *pair = of(state);

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, SIZE, 5);
    post_send(pair, 1, 0, SIZE);
    await_stall(&pair->server);
    pair_completion(&pair->client);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    pair_receive(&pair->server, 2, 0, SIZE);
    expect_receive(pair, 2, 0, SIZE, 5);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
}

/* This end disconnects, or its queue pair is reset, while a message waits. */
static void disconnected_while_it_waits(void **state)
{
    struct pair *pair = of(state);

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    post_send(pair, 1, 0, SIZE);
    await_stall(&pair->server);
    assert_int_equal(rddp_disconnect(pair->server.qp), 0);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
}

static void reset_while_it_waits(void **state)
{
    struct pair *pair = of(state);

    connect_waiting(pair, RDDP_WAIT_WITHOUT_LIMIT);
    pair_pattern(pair->client.buffer, SIZE, 6);
    post_send(pair, 1, 0, SIZE);
    await_stall(&pair->server);
    assert_int_equal(rddp_reset_qp(pair->server.qp), 0);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_reset_qp(pair->client.qp), 0);
    pair_join(pair);
    post_send(pair, 2, 0, SIZE);
    await_stall(&pair->server);
    pair_receive(&pair->server, 3, 0, SIZE);
    expect_receive(pair, 3, 0, SIZE, 6);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(one_by_one),
        PAIR_TEST(large_ones),
        PAIR_TEST(behind_writes),
        PAIR_TEST(both_directions),
        PAIR_TEST(too_late),
        PAIR_TEST(peer_closes),
        PAIR_TEST(peer_is_destroyed),
        PAIR_TEST(peer_closes_before_the_receive),
        PAIR_TEST(disconnected_while_it_waits),
        PAIR_TEST(reset_while_it_waits),
    };

    return pair_run("wait", tests, sizeof(tests) / sizeof(*tests), false);
}
