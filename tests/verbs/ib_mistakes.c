/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_mistakes.c - ids of rddpe0 that are used wrongly: several queue pairs for one id, queue pairs of another type,
 * answers without a queue pair. */
#include <arpa/inet.h>
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

static struct rdma_cm_event *take(enum rdma_cm_event_type type)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;

    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, type);
    return event;
}

static struct rdma_cm_id *make_listener(struct sockaddr_in *address, enum rdma_port_space space)
{
    struct rdma_cm_id *id;

    assert_int_equal(rdma_create_id(channel, &id, NULL, space), 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)address), 0);
    assert_int_equal(rdma_listen(id, 1), 0);
    address->sin_port = rdma_get_src_port(id);
    return id;
}

static struct rdma_cm_id *make_resolved(struct sockaddr_in *to, enum rdma_port_space space)
{
    struct rdma_cm_id *id;

    assert_int_equal(rdma_create_id(channel, &id, NULL, space), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, WAIT_MS), 0);
    rdma_ack_cm_event(take(RDMA_CM_EVENT_ADDR_RESOLVED));
    assert_int_equal(rdma_resolve_route(id, WAIT_MS), 0);
    rdma_ack_cm_event(take(RDMA_CM_EVENT_ROUTE_RESOLVED));
    return id;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = ids_queues();

    init.qp_type = type;
    init.send_cq = init.recv_cq = cq;
    return ibv_create_qp(pd, &init);
}

/* A program names a queue pair that cannot connect, and another one then. Both outlive the id. */
static void test_second_queue_pair(void **state)
{
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to, RDMA_PS_TCP), *id = make_resolved(&to, RDMA_PS_TCP), *request;
    struct ibv_cq *cq = ibv_create_cq(id->verbs, DEPTH, NULL, NULL, 0);
    struct rdma_cm_event *event;
    struct ibv_qp *wrong = make_qp(id->pd, cq, IBV_QPT_UD), *right = make_qp(id->pd, cq, IBV_QPT_RC);
    struct rdma_conn_param param = {.qp_num = wrong->qp_num};

    (void)state;
    assert_int_equal(rdma_connect(id, &param), -1);
    assert_int_equal(errno, EINVAL);
    param.qp_num = right->qp_num;
    assert_int_equal(rdma_connect(id, &param), 0);
    assert_int_equal(ibv_destroy_qp(wrong), 0); /* which does not end the connection of the other */
    event = take(RDMA_CM_EVENT_CONNECT_REQUEST);
    request = event->id;
    rdma_ack_cm_event(event);
    assert_int_equal(rdma_destroy_id(request), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(ibv_destroy_qp(right), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* The same, and the id goes first. */
static void test_id_before_queue_pairs(void **state)
{
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to, RDMA_PS_TCP), *id = make_resolved(&to, RDMA_PS_TCP);
    struct ibv_cq *cq = ibv_create_cq(id->verbs, DEPTH, NULL, NULL, 0);
    struct ibv_qp *qp[] = {make_qp(id->pd, cq, IBV_QPT_UD), make_qp(id->pd, cq, IBV_QPT_UD)};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rdma_conn_param param = {.qp_num = qp[i]->qp_num};
        assert_int_equal(rdma_connect(id, &param), -1);
    }
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(ibv_destroy_qp(qp[0]), 0);
    assert_int_equal(ibv_destroy_qp(qp[1]), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* What an id cannot use is not left with it. */
static void test_wrong_type(void **state)
{
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to, RDMA_PS_UDP), *id = make_resolved(&to, RDMA_PS_UDP);
    struct ibv_qp_init_attr attr = ids_queues();

    (void)state;
    assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
    assert_int_equal(errno, EINVAL);
    assert_null(id->qp);
    assert_null(id->send_cq);
    assert_null(attr.send_cq);
    attr.qp_type = IBV_QPT_UD;
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* An answer without a queue pair is refused, and the request can still be answered. */
static void test_answer_again(void **state)
{
    struct sockaddr_in to;
    struct rdma_cm_id *listener = make_listener(&to, RDMA_PS_UDP), *id = make_resolved(&to, RDMA_PS_UDP), *server;
    struct ibv_qp_init_attr attr = ids_queues();
    struct rdma_conn_param param = {0};
    struct rdma_cm_event *event;

    (void)state;
    assert_int_equal(rdma_connect(id, &param), 0);
    event = take(RDMA_CM_EVENT_CONNECT_REQUEST);
    server = event->id;
    rdma_ack_cm_event(event);
    assert_int_equal(rdma_accept(server, &param), -1);
    assert_int_equal(errno, EINVAL);
    attr.qp_type = IBV_QPT_UD;
    assert_int_equal(rdma_create_qp(server, NULL, &attr), 0);
    assert_int_equal(rdma_accept(server, &param), 0);
    event = take(RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(event->param.ud.qp_num, server->qp->qp_num);
    rdma_ack_cm_event(event);
    rdma_destroy_qp(server);
    assert_int_equal(rdma_destroy_id(server), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_second_queue_pair, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_id_before_queue_pairs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_type, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answer_again, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("ib_mistakes", tests, NULL, NULL);
}
