/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* request_order.c - requests come in the order in which one initiator connected: programs with several queue pairs pair
 * them by it. */
#include <poll.h>
#include <string.h>

#include "tests/suite/lib/pair.h"

enum { MANY = 16, ROUNDS = 8 };

static void connect_many(struct pair *pair, struct rddp_qp **qp)
{
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_conn_attr conn;

    attr.send_cq = attr.recv_cq = pair->client.cq;
    attr.max_send_wr = attr.max_recv_wr = 1;
    rddp_conn_attr_init(&conn);
    conn.wire = pair_wire(pair->row, false);
    conn.wire.device = pair->client.device;
    for (uint8_t i = 0; i < MANY; i++) {
        conn.private_data = &i;
        conn.private_data_length = sizeof(i);
        qp[i] = rddp_create_qp(pair->client.pd, &attr);
        assert_non_null(qp[i]);
        assert_int_equal(
            rddp_connect(qp[i], pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &conn), 0);
    }
}

static void next_request(struct pair *pair, uint8_t expected)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(pair->server.events), .events = POLLIN};
    struct rddp_event *event;
    uint8_t number;

    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(pair->server.events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_CONNECT_REQUEST);
    memcpy(&number, event->private_data, sizeof(number));
    assert_int_equal(number, expected);
    assert_int_equal(rddp_reject(event->request, NULL, 0), 0);
    rddp_ack_event(event);
}

static void in_order(void **state)
{
    struct pair *pair = *(struct pair **)state;
    struct rddp_qp *qp[MANY];

    /* no private data; or several threads, packets, messages or datagrams that come in no order */
    if (pair->row->immediate || pair->row->packet || pair->row->loops || pair->row->wire == RDDP_WIRE_SCTP ||
        pair->row->wire == RDDP_WIRE_ROCE)
        skip();
    for (unsigned round = 0; round < ROUNDS; round++) {
        connect_many(pair, qp);
        for (uint8_t i = 0; i < MANY; i++)
            next_request(pair, i);
        for (unsigned i = 0; i < MANY; i++)
            pair_event(&pair->client, RDDP_EVENT_REJECTED);
        for (unsigned i = 0; i < MANY; i++)
            assert_int_equal(rddp_destroy_qp(qp[i]), 0);
    }
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(in_order)};

    return pair_run("request_order", tests, sizeof(tests) / sizeof(*tests), false);
}
