/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_scale.c - ten thousand queue pairs in a process, each of which carries messages, and a thousand connections in a
 * row. ROCE-PORT-02. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum {
#ifdef __SANITIZE_ADDRESS__
    PAIRS = 500,
#else
    PAIRS = 5000, /* of queue pairs */
#endif
    AT_ONCE = 32,
    OCTETS = 64,
    CONNECTS = 1000,
    CALLS = 64, /* under way */
    MOST = PAIRS > CONNECTS ? PAIRS : CONNECTS,
};

static struct hands h;
static struct rddp_qp *ours[MOST], *theirs[MOST];

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void connect_pair(unsigned i)
{
    hands_make(&h);
    h.end[0].psn = i & 0xffffff;
    h.end[1].psn = (uint32_t)~i & 0xffffff;
    hands_connect(&h);
    ours[i] = h.end[0].qp;
    theirs[i] = h.end[1].qp;
}

/* A Write of its own place by each, a batch at a time. */
static void write_all(void)
{
    for (unsigned i = 0; i < PAIRS; i += AT_ONCE) {
        for (unsigned j = i; j < i + AT_ONCE && j < PAIRS; j++) {
            h.end[0].qp = ours[j];
            hand_fill(h.end[0].buffer + (size_t)j * OCTETS, OCTETS, j);
            hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, (size_t)j * OCTETS, OCTETS, (size_t)j * OCTETS);
        }
        for (unsigned j = i; j < i + AT_ONCE && j < PAIRS; j++)
            assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    }
    for (unsigned j = 0; j < PAIRS; j++)
        hand_check(h.end[1].buffer + (size_t)j * OCTETS, OCTETS, j);
}

static void queue_pairs(void **state)
{
    double begun = now_s(), made;
    struct rusage usage;

    (void)state;
    hands_open(&h, RDDP_QPT_RC, "127.0.0.1");
    h.qp.max_send_wr = h.qp.max_recv_wr = 4;
    for (unsigned i = 0; i < PAIRS; i++)
        connect_pair(i);
    made = now_s();
    write_all();
    getrusage(RUSAGE_SELF, &usage);
    print_message("%u queue pairs in %.1f s, a Write by half of them in %.1f s, %ld MiB\n", 2 * PAIRS, made - begun,
                  now_s() - made, usage.ru_maxrss / 1024);
    for (unsigned i = 0; i < PAIRS; i++) {
        assert_int_equal(rddp_destroy_qp(ours[i]), 0);
        assert_int_equal(rddp_destroy_qp(theirs[i]), 0);
    }
    h.end[0].qp = h.end[1].qp = NULL;
    hands_close(&h);
}

/* --- connections ---------------------------------------------------------------------------------------------------
 */

static struct rddp_event_channel *channel;
static uint16_t port;

static struct rddp_qp *make_qp(unsigned end)
{
    struct rddp_qp *qp;

    h.qp.send_cq = h.qp.recv_cq = h.end[end].cq;
    qp = rddp_create_qp(h.end[end].pd, &h.qp);
    assert_non_null(qp);
    return qp;
}

static void start_call(unsigned i)
{
    struct sockaddr_storage to = hand_address("127.0.0.1", port);
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = RDDP_WIRE_ROCE;
    ours[i] = make_qp(0);
    assert_int_equal(rddp_connect(ours[i], channel, (struct sockaddr *)&to, sizeof(to), &attr), 0);
}

static struct rddp_event next_event(void)
{
    struct pollfd fd = {rddp_event_channel_fd(channel), POLLIN, 0};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(channel, &event), 0);
    copy = *event;
    rddp_ack_event(event);
    return copy;
}

/* Both ends report that a connection is there: the count of events is twice that of connections. */
static void connections(void **state)
{
    unsigned called = 0, accepted = 0, events = 0;
    struct rddp_listener *listener;
    struct rddp_wire_attr wire;
    double begun;

    (void)state;
    hands_open(&h, RDDP_QPT_CONNECTED, "127.0.0.1");
    h.qp.max_send_wr = h.qp.max_recv_wr = 4;
    channel = rddp_create_event_channel(h.end[0].context);
    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    listener = rddp_listen(channel, (struct sockaddr *)&h.address, sizeof(h.address), 64, &wire, NULL);
    assert_non_null(listener);
    port = hand_port(listener);
    begun = now_s();
    while (events < 2 * CONNECTS) {
        struct rddp_event event;

        while (called < CONNECTS && called - events / 2 < CALLS)
            start_call(called++);
        event = next_event();
        if (event.type == RDDP_EVENT_CONNECT_REQUEST) {
            theirs[accepted] = make_qp(0);
            assert_int_equal(rddp_accept(event.request, theirs[accepted++], NULL), 0);
        } else {
            assert_int_equal(event.type, RDDP_EVENT_ESTABLISHED);
            events++;
        }
    }
    print_message("%u connections in %.2f s\n", CONNECTS, now_s() - begun);
    assert_int_equal(accepted, CONNECTS);
    for (unsigned i = 0; i < CONNECTS; i++) {
        assert_int_equal(rddp_destroy_qp(ours[i]), 0);
        assert_int_equal(rddp_destroy_qp(theirs[i]), 0);
    }
    assert_int_equal(rddp_destroy_listener(listener), 0);
    assert_int_equal(rddp_destroy_event_channel(channel), 0);
    hands_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(queue_pairs), cmocka_unit_test(connections)};

    (void)network_alone();
    return cmocka_run_group_tests_name("roce_scale", tests, NULL, NULL);
}
