/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_timewait.c - RDMA_CM_EVENT_TIMEWAIT_EXIT of ids of rddpe0: when it comes, to which end, and what may be done then.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verbs/lib/ids.h"

enum {
    REST_MS = 513 /* of connections whose acknowledgements are awaited as long as ours: cm_convert_to_ms(17) + 1 */
};

/* One end of a connection, with a channel of its own. */
static struct end {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
} client, server;
static struct rdma_cm_id *listener;

static void expect(const struct end *end, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;

    assert_int_equal(rdma_get_cm_event(end->channel, &event), 0);
    assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
    assert_int_equal(event->status, 0);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
        server.id = event->id;
    else
        assert_ptr_equal(event->id, end->id);
    assert_int_equal(rdma_ack_cm_event(event), 0);
}

static bool is_quiet(const struct end *end, int ms)
{
    struct pollfd fd = {end->channel->fd, POLLIN, 0};

    return poll(&fd, 1, ms) == 0;
}

static int open_listener(void **state)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    (void)state;
    client = (struct end){rdma_create_event_channel(), NULL};
    server = (struct end){rdma_create_event_channel(), NULL};
    assert_int_equal(rdma_create_id(server.channel, &listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&any), 0);
    assert_int_equal(rdma_listen(listener, 0), 0);
    return 0;
}

static int close_listener(void **state)
{
    (void)state;
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(client.channel);
    rdma_destroy_event_channel(server.channel);
    return 0;
}

static void resolve(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    to.sin_port = rdma_get_src_port(listener);
    assert_int_equal(rdma_create_id(client.channel, &client.id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(client.id, NULL, (struct sockaddr *)&to, WAIT_MS), 0);
    expect(&client, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(client.id, WAIT_MS), 0);
    expect(&client, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void establish(void)
{
    assert_int_equal(rdma_connect(client.id, NULL), 0);
    expect(&server, RDMA_CM_EVENT_CONNECT_REQUEST);
    if (!server.id->qp) {
        struct ibv_qp_init_attr queues = ids_queues();

        assert_int_equal(rdma_create_qp(server.id, NULL, &queues), 0);
    }
    assert_int_equal(rdma_accept(server.id, NULL), 0);
    expect(&client, RDMA_CM_EVENT_ESTABLISHED);
    expect(&server, RDMA_CM_EVENT_ESTABLISHED);
}

static void connect_both(void)
{
    struct ibv_qp_init_attr queues = ids_queues();

    resolve();
    assert_int_equal(rdma_create_qp(client.id, NULL, &queues), 0);
    establish();
}

static void destroy(struct end *end)
{
    if (end->id->qp)
        rdma_destroy_qp(end->id);
    assert_int_equal(rdma_destroy_id(end->id), 0);
}

/* The end that leaves first, and then the other one, which has not begun to rest before it leaves, too. */
static void both_ends(struct end *first, struct end *second)
{
    connect_both();
    assert_int_equal(rdma_disconnect(first->id), 0);
    expect(second, RDMA_CM_EVENT_DISCONNECTED);
    expect(first, RDMA_CM_EVENT_DISCONNECTED);
    expect(first, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert_true(is_quiet(second, REST_MS));
    assert_int_equal(rdma_disconnect(second->id), 0);
    expect(second, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert_int_equal(rdma_disconnect(second->id), 0); /* does not begin again */
    assert_true(is_quiet(second, REST_MS + 100));
    destroy(first);
    destroy(second);
}

static void active_leaves_first(void **state)
{
    (void)state;
    both_ends(&client, &server);
}

static void passive_leaves_first(void **state)
{
    (void)state;
    both_ends(&server, &client);
}

/* Queue pairs go as soon as their connections are over, as in most programs: the ids rest without them. An id that goes
 * meanwhile has no event any more. */
static void destroyed(void **state)
{
    (void)state;
    connect_both();
    assert_int_equal(rdma_disconnect(client.id), 0);
    expect(&client, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(client.id);
    expect(&server, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(rdma_disconnect(server.id), 0);
    destroy(&server);
    expect(&client, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert_true(is_quiet(&server, 0));
    destroy(&client);
}

static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   state == IBV_QPS_RESET
                                       ? IBV_QP_STATE
                                       : IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                     0);
}

/* The number may be connected again: no end takes it for the old connection's. */
static void used_again(void **state)
{
    struct ibv_qp *qp;

    (void)state;
    connect_both();
    qp = client.id->qp;
    assert_int_equal(rdma_disconnect(client.id), 0);
    expect(&client, RDMA_CM_EVENT_DISCONNECTED);
    expect(&server, RDMA_CM_EVENT_DISCONNECTED);
    destroy(&server);
    expect(&client, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    set_state(qp, IBV_QPS_RESET);
    set_state(qp, IBV_QPS_INIT);
    client.id->qp = NULL;
    assert_int_equal(rdma_destroy_id(client.id), 0);
    resolve();
    client.id->qp = qp;
    establish();
    assert_int_equal(rdma_disconnect(client.id), 0);
    expect(&client, RDMA_CM_EVENT_DISCONNECTED);
    destroy(&client);
    destroy(&server);
}

/* Ids go while their events come. */
static void destroyed_in_between(void **state)
{
    enum { ROUNDS = 8 };

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        connect_both();
        assert_int_equal(rdma_disconnect(client.id), 0);
        expect(&client, RDMA_CM_EVENT_DISCONNECTED);
        poll(NULL, 0, (int)(REST_MS - ROUNDS / 2 + i));
        destroy(&client);
        destroy(&server);
    }
    assert_true(is_quiet(&client, REST_MS + 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(active_leaves_first, open_listener, close_listener),
        cmocka_unit_test_setup_teardown(passive_leaves_first, open_listener, close_listener),
        cmocka_unit_test_setup_teardown(destroyed, open_listener, close_listener),
        cmocka_unit_test_setup_teardown(used_again, open_listener, close_listener),
        cmocka_unit_test_setup_teardown(destroyed_in_between, open_listener, close_listener),
    };

    return cmocka_run_group_tests_name("ib_timewait", tests, NULL, NULL);
}
