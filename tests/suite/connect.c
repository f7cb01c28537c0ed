/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - how connections begin and end, as the application sees it, over every way to connect. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

static struct pair *of(void **state)
{
    return *state;
}

static void make_qp(struct pair *pair, struct side *side)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = side->cq;
    attr.user = pair;
    side->qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(side->qp);
}

static void make_qps(struct pair *pair)
{
    make_qp(pair, &pair->client);
    make_qp(pair, &pair->server);
}

static int start(struct pair *pair, const void *data, uint16_t length)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    attr.private_data = data;
    attr.private_data_length = length;
    return rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr),
                        &attr);
}

/* Octets of private data: of a request, */
static uint16_t private_max(const struct row *row)
{
    if (row->wire == RDDP_WIRE_ROCE)
        return 56;
    return row->mpa_revision == 2 && row->wire == RDDP_WIRE_IWARP ? 508 : 512;
}

/* and of an acceptance. A message of RoCE has a place of a fixed length, the rest of which is zero. */
static uint16_t reply_max(const struct row *row)
{
    return row->wire == RDDP_WIRE_ROCE ? 196 : private_max(row);
}

static uint16_t rejected_with(const struct row *row, uint16_t octets)
{
    return row->wire == RDDP_WIRE_ROCE ? 148 : octets;
}

/* M44-12, M44-14: private data in both directions, up to the limit and not beyond. */
static void private_data(void **state)
{
    struct pair *pair = of(state);
    uint16_t most = private_max(pair->row), most_back = reply_max(pair->row);
    uint8_t data[513];
    struct rddp_conn_attr attr;
    struct rddp_event *event;
    struct pollfd fd = {.fd = rddp_event_channel_fd(pair->server.events), .events = POLLIN};

    if (pair->row->immediate)
        skip(); /* no frames that could carry it */
    make_qps(pair);
    pair_pattern(data, sizeof(data), 4);
    assert_int_equal(start(pair, data, (uint16_t)(most + 1)), -EINVAL);
    assert_int_equal(start(pair, data, most), 0);
    assert_int_equal(start(pair, data, most), -EINVAL); /* it is connecting */
    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(pair->server.events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(event->private_data_length, most);
    assert_memory_equal(event->private_data, data, most);
    rddp_conn_attr_init(&attr);
    attr.private_data = data + 1;
    attr.private_data_length = most_back;
    assert_int_equal(rddp_accept(event->request, pair->server.qp, &attr), 0);
    rddp_ack_event(event);
    fd.fd = rddp_event_channel_fd(pair->client.events);
    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(pair->client.events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(event->private_data_length, most_back);
    assert_memory_equal(event->private_data, data + 1, most_back);
    rddp_ack_event(event);
}

/* M44-14, M44-15: a reject reaches the application with its data; both queue pairs are unusable afterwards. */
static void reject(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event event;

    if (pair->row->immediate)
        skip(); /* no frame that could say no */
    make_qps(pair);
    pair_receive(&pair->client, 77, 0, 64);
    assert_int_equal(start(pair, NULL, 0), 0);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_reject(event.request, "no", 2), 0);
    event = pair_event(&pair->client, RDDP_EVENT_REJECTED);
    assert_int_equal(event.private_data_length, rejected_with(pair->row, 2));
    assert_int_equal(event.status, -ECONNREFUSED);
    assert_ptr_equal(event.user, pair);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_WR_FLUSH_ERR);
}

static void nobody_listens(void **state)
{
    struct pair *pair = of(state);

    make_qps(pair);
    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    pair->listener = NULL;
    assert_int_equal(start(pair, NULL, 0), 0);
    assert_int_equal(pair_event(&pair->client, RDDP_EVENT_UNREACHABLE).status, -ECONNREFUSED);
}

static void destroy_listener(struct pair *pair)
{
    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    pair->listener = NULL;
}

/* A request that was taken outlives its listener, and keeps the channel. */
static void listener_goes(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event event;

    make_qps(pair);
    assert_int_equal(start(pair, NULL, 0), 0);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    destroy_listener(pair);
    assert_int_equal(rddp_destroy_event_channel(pair->server.events), -EBUSY);
    assert_int_equal(rddp_accept(event.request, pair->server.qp, NULL), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    pair_receive(&pair->server, 1, 0, 64);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 64, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
}

/* It can be rejected as well, and its peer can give up. */
static void request_alone(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event event;

    if (pair->row->immediate)
        skip(); /* no frame that could say no, and nothing tells that the peer has gone */
    make_qps(pair);
    assert_int_equal(start(pair, NULL, 0), 0);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    destroy_listener(pair);
    assert_int_equal(rddp_reject(event.request, "no", 2), 0);
    assert_int_equal(pair_event(&pair->client, RDDP_EVENT_REJECTED).private_data_length, rejected_with(pair->row, 2));
}

static void requester_gives_up(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event event;

    make_qps(pair);
    assert_int_equal(start(pair, NULL, 0), 0);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    destroy_listener(pair);
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair->client.qp = NULL;
    assert_int_equal(rddp_destroy_event_channel(pair->server.events), -EBUSY);
    assert_int_equal(rddp_reject(event.request, NULL, 0), 0);
}

/* A request whose event was not taken is rejected, and the event is withdrawn. */
static void listener_goes_unheard(void **state)
{
    struct pair *pair = of(state);
    struct pollfd fd = {.fd = rddp_event_channel_fd(pair->server.events), .events = POLLIN};
    struct rddp_event *event;

    make_qps(pair);
    assert_int_equal(start(pair, NULL, 0), 0);
    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    destroy_listener(pair);
    assert_int_equal(rddp_get_event(pair->server.events, &event), -EAGAIN);
    if (!pair->row->immediate)
        pair_event(&pair->client, RDDP_EVENT_REJECTED);
}

/* If accepting fails, the peer is rejected, and the queue pair is unchanged and can accept the next request. */
static void accepted_in_vain(void **state)
{
    struct pair *pair = of(state);
    uint8_t data[513] = {0};
    struct rddp_conn_attr attr;
    struct rddp_event event;
    struct rddp_qp_info info;

    if (pair->row->immediate)
        skip(); /* there are no frames to carry private data */
    make_qps(pair);
    assert_int_equal(start(pair, NULL, 0), 0);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    rddp_conn_attr_init(&attr);
    attr.private_data = data;
    attr.private_data_length = sizeof(data);
    assert_int_equal(rddp_accept(event.request, pair->server.qp, &attr), -EINVAL);
    pair_event(&pair->client, RDDP_EVENT_REJECTED);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_ERROR);
    assert_int_equal(rddp_query_qp(pair->server.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_IDLE);
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    make_qp(pair, &pair->client);
    assert_int_equal(start(pair, NULL, 0), 0);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_accept(event.request, pair->server.qp, NULL), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
}

/* MPA-8.2-01, MPA-8.2-02: requests posted before the disconnect arrive; then both sides get the event. */
static void disconnect_after_work(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_info info;
    struct rddp_wc wc[2];

    pair_connect(pair);
    pair_receive(&pair->server, 1, 0, 0);
    pair_receive(&pair->server, 2, 0, 0);
    pair_pattern(pair->client.buffer, 3000000, 1);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 1, 0, 3000000, 0, 0), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 0, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0); /* it is closing already */
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_completions(&pair->server, wc, 2);
    assert_int_equal(wc[0].status, RDDP_WC_SUCCESS);
    assert_int_equal(wc[1].status, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(wc[1].wr_id, 2);
    assert_true(pair_is_pattern(pair->server.buffer, 3000000, 1));
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_CLOSED);
    assert_int_equal(rddp_query_qp(pair->server.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_CLOSED);
    /* From now on requests are accepted and flushed. */
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 9, 0, 8, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_WR_FLUSH_ERR);
    pair_receive(&pair->client, 10, 0, 64);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_WR_FLUSH_ERR);
}

/* Whoever disconnects second is told nothing: the peer was faster, and the event may not have been taken yet. Only a
 * queue pair that never had a connection is refused. */
static void disconnected_already(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event event;

    make_qps(pair);
    assert_int_equal(rddp_disconnect(pair->client.qp), -ENOTCONN);
    if (!pair->row->immediate) {
        assert_int_equal(start(pair, NULL, 0), 0);
        assert_int_equal(rddp_disconnect(pair->client.qp), -ENOTCONN); /* there was no answer */
        event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
        assert_int_equal(rddp_reject(event.request, NULL, 0), 0);
        pair_event(&pair->client, RDDP_EVENT_REJECTED);
        assert_int_equal(rddp_disconnect(pair->client.qp), -ENOTCONN);
        assert_int_equal(rddp_reset_qp(pair->client.qp), 0);
    }
    pair_join(pair);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(rddp_disconnect(pair->server.qp), 0); /* maybe before, maybe after it has heard of the end */
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(rddp_disconnect(pair->server.qp), 0);
    assert_int_equal(rddp_reset_qp(pair->client.qp), 0);
    assert_int_equal(rddp_disconnect(pair->client.qp), -ENOTCONN);
}

/* A queue pair is destroyed during traffic: the peer gets the end, and nothing else happens. */
static void destroyed_in_flight(void **state)
{
    struct pair *pair = of(state);

    pair_connect(pair);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, 1 << 20, 0, 0), 0);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_READ, i, 0, 1 << 20, 1 << 20, 0), 0);
    assert_int_equal(rddp_destroy_qp(pair->client.qp), 0);
    pair->client.qp = NULL;
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
}

/* MPA-5.1-02: what was agreed can be queried. */
static void query(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_info client, server;
    bool crc = pair->row->crc || pair->row->immediate;
    bool markers = pair->row->immediate && pair->row->wire == RDDP_WIRE_IWARP;

    pair_connect(pair);
    assert_int_equal(rddp_query_qp(pair->client.qp, &client), 0);
    assert_int_equal(rddp_query_qp(pair->server.qp, &server), 0);
    assert_int_equal(client.state, RDDP_QP_CONNECTED);
    assert_int_equal(server.state, RDDP_QP_CONNECTED);
    assert_int_equal(client.wire, pair->row->wire);
    assert_int_equal(client.crc, crc);
    assert_int_equal(server.crc, crc);
    assert_int_equal(client.rx_markers, pair->row->client_markers || markers);
    assert_int_equal(client.tx_markers, pair->row->server_markers || markers);
    assert_int_equal(server.rx_markers, client.tx_markers);
    assert_int_equal(server.tx_markers, client.rx_markers);
    assert_true(client.emss >= 536);
    if (pair->row->wire == RDDP_WIRE_IWARP && !pair->row->immediate)
        assert_int_equal(client.mpa_revision, pair->row->mpa_revision);
    assert_int_equal(client.ird, 16);
    assert_int_equal(server.ord, 16);
    assert_memory_equal(&client.local, &server.peer, sizeof(struct sockaddr_in));
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(private_data),          PAIR_TEST(reject),
        PAIR_TEST(nobody_listens),        PAIR_TEST(listener_goes),
        PAIR_TEST(request_alone),         PAIR_TEST(requester_gives_up),
        PAIR_TEST(listener_goes_unheard), PAIR_TEST(accepted_in_vain),
        PAIR_TEST(disconnect_after_work), PAIR_TEST(disconnected_already),
        PAIR_TEST(destroyed_in_flight),   PAIR_TEST(query),
    };

    return pair_run("connect", tests, sizeof(tests) / sizeof(*tests), false);
}
