/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mistakes.c - calls of rdma_cm that come in the wrong state, ids that go in the middle of a connection, and queue
 * pairs that change their id. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tests/verbs/lib/ids.h"

static struct rdma_event_channel *channel;

static int set_up(void **state)
{
    (void)state;
    channel = rdma_create_event_channel();
    return !channel;
}

static int tear_down(void **state)
{
    (void)state;
    rdma_destroy_event_channel(channel);
    return 0;
}

static struct rdma_cm_id *make_id(void)
{
    struct rdma_cm_id *id = NULL;

    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    return id;
}

static struct rdma_cm_id *make_listener(struct sockaddr_in *address)
{
    struct rdma_cm_id *id = make_id();

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)address), 0);
    assert_int_equal(rdma_listen(id, 1), 0);
    address->sin_port = rdma_get_src_port(id);
    return id;
}

static void make_queue_pair(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = ids_queues();

    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

/* Takes an event. Returns its type, and its id. */
static enum rdma_cm_event_type take_any(struct rdma_cm_id **id)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    enum rdma_cm_event_type type;
    struct rdma_cm_event *event;

    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    *id = event->id;
    type = event->event;
    rdma_ack_cm_event(event);
    return type;
}

static struct rdma_cm_id *take(enum rdma_cm_event_type type)
{
    struct rdma_cm_id *id = NULL;

    assert_int_equal(take_any(&id), type);
    return id;
}

static struct rdma_cm_id *make_resolved(struct sockaddr_in *to)
{
    struct rdma_cm_id *id = make_id();

    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, WAIT_MS), 0);
    take(RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, WAIT_MS), 0);
    take(RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
}

static void assert_wrong_state(int result)
{
    assert_int_equal(result, -1);
    assert_int_equal(errno, EINVAL);
}

/* Each of the calls that lead to a connection is refused if it comes too early, twice, or for another kind of id. */
static void test_steps(void **state)
{
    struct sockaddr_in to;
    struct sockaddr *address = (struct sockaddr *)&to;
    struct rdma_cm_id *listener = make_listener(&to), *id = make_id();

    (void)state;
    assert_wrong_state(rdma_resolve_route(id, 0));
    assert_wrong_state(rdma_connect(id, NULL));
    assert_wrong_state(rdma_disconnect(id));
    assert_int_equal(rdma_resolve_addr(id, NULL, address, 0), 0);
    assert_wrong_state(rdma_resolve_addr(id, NULL, address, 0));
    assert_wrong_state(rdma_bind_addr(id, address));
    assert_wrong_state(rdma_listen(id, 0));
    make_queue_pair(id);
    assert_wrong_state(rdma_connect(id, NULL));
    assert_int_equal(rdma_resolve_route(id, 0), 0);
    assert_wrong_state(rdma_resolve_route(id, 0));
    assert_wrong_state(rdma_resolve_addr(id, NULL, address, 0));
    assert_wrong_state(rdma_accept(id, NULL));
    assert_wrong_state(rdma_resolve_addr(listener, NULL, address, 0));
    assert_wrong_state(rdma_listen(listener, 0));
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* An address that cannot be reached leaves the id as it was. */
static void test_second_address(void **state)
{
    struct sockaddr_in to, all = {.sin_family = AF_INET, .sin_addr.s_addr = INADDR_BROADCAST};
    struct rdma_cm_id *listener = make_listener(&to), *id = make_id();

    (void)state;
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&all, 0), 0);
    take(RDMA_CM_EVENT_ADDR_ERROR);
    assert_wrong_state(rdma_resolve_route(id, 0));
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 0), 0);
    take(RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* Of the two CQs of a queue pair the id makes, shows and destroys only the one that the application left out. */
static void test_one_cq(void **state)
{
    struct ibv_qp_init_attr attr = ids_queues();
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to), *id = make_resolved(&to);
    struct ibv_cq *own = ibv_create_cq(id->verbs, DEPTH, NULL, NULL, 0);

    (void)state;
    attr.send_cq = own;
    attr.cap.max_send_sge = 1000;
    assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
    assert_ptr_equal(attr.send_cq, own);
    assert_null(attr.recv_cq);
    attr.cap.max_send_sge = 1;
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_null(id->send_cq);
    assert_ptr_equal(id->recv_cq, attr.recv_cq);
    rdma_destroy_qp(id);
    assert_null(id->recv_cq);
    assert_int_equal(ibv_destroy_cq(own), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* The client gives up, in one way or the other, before it has been told of its connection. The server learns it. */
static void give_up(int (*how)(struct rdma_cm_id *))
{
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to), *id = make_resolved(&to), *server;
    struct rdma_event_channel *aside = rdma_create_event_channel();
    struct ibv_qp *qp;

    make_queue_pair(id);
    qp = id->qp;
    assert_int_equal(rdma_migrate_id(id, aside), 0);
    assert_int_equal(rdma_connect(id, NULL), 0);
    server = take(RDMA_CM_EVENT_CONNECT_REQUEST);
    make_queue_pair(server);
    assert_int_equal(how(id), 0);
    if (!rdma_accept(server, NULL)) { /* it may know already */
        while (take_any(&server) == RDMA_CM_EVENT_ESTABLISHED)
            ;
    }
    rdma_destroy_qp(server);
    rdma_destroy_id(server);
    ibv_destroy_qp(qp);
    if (how == rdma_disconnect)
        rdma_destroy_id(id);
    rdma_destroy_event_channel(aside);
    rdma_destroy_id(listener);
}

static void test_given_up(void **state)
{
    (void)state;
    give_up(rdma_disconnect);
    give_up(rdma_destroy_id);
}

/* A server has a queue pair before it has a request: it gives it to the id of that, by the pointer, and destroys the id
 * with which it was made before or after it accepts. */
static void move_queue_pair(bool first)
{
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to), *id = make_resolved(&to), *maker = make_resolved(&to), *server;

    make_queue_pair(id);
    make_queue_pair(maker);
    assert_int_equal(rdma_connect(id, NULL), 0);
    server = take(RDMA_CM_EVENT_CONNECT_REQUEST);
    server->qp = maker->qp;
    maker->qp = NULL;
    if (first)
        rdma_destroy_id(maker);
    assert_int_equal(rdma_accept(server, NULL), 0);
    if (!first)
        rdma_destroy_id(maker);
    take(RDMA_CM_EVENT_ESTABLISHED);
    take(RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rdma_disconnect(id), 0);
    take(RDMA_CM_EVENT_DISCONNECTED);
    take(RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(ibv_destroy_qp(server->qp), 0);
    assert_int_equal(rdma_destroy_id(server), 0);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

static void test_moved_queue_pair(void **state)
{
    (void)state;
    move_queue_pair(true);
    move_queue_pair(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_address, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_cq, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_queue_pair, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
