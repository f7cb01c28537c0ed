/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - how ids of rdma_cm connect: from which address, and with what posted before. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verbs/lib/ids.h"

/* An id that is resolved from an address of its own, with a port of its own. */
static struct rdma_cm_id *resolve_from(const char *from, const char *port)
{
    struct sockaddr_in src = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};
    struct sockaddr_in dst = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ibv_qp_init_attr attr = ids_queues();
    struct rdma_cm_id *id;

    dst.sin_port = htons((uint16_t)atoi(port));
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst, WAIT_MS), 0);
    assert_int_equal(rdma_resolve_route(id, WAIT_MS), 0);
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    return id;
}

/* The peer sees the address that was bound, and the port. */
static void test_bound(void **state)
{
    struct ids ids = {0};
    struct sockaddr_in *seen;
    pthread_t thread;
    in_port_t bound;
    char port[8];
    (void)state;

    ids_listen(&ids, port);
    ids.client = resolve_from("127.0.0.2", port);
    bound = rdma_get_src_port(ids.client);
    assert_int_not_equal(bound, 0);
    pthread_create(&thread, NULL, ids_run_client, &ids);
    assert_int_equal(rdma_get_request(ids.listener, &ids.server), 0);
    seen = (struct sockaddr_in *)rdma_get_peer_addr(ids.server);
    assert_int_equal(seen->sin_addr.s_addr, inet_addr("127.0.0.2"));
    assert_int_equal(seen->sin_port, bound);
    assert_int_equal(rdma_accept(ids.server, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(ids.connect_error, 0);
    assert_int_equal(rdma_get_src_port(ids.client), bound);
    ids_free(&ids);
}

/* Addresses that cannot be bound, and of another family than the peer's. */
static void test_not_bound(void **state)
{
    struct sockaddr_in foreign = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("192.0.2.1")};
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9)};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    struct rdma_cm_id *id;
    (void)state;

    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&foreign, (struct sockaddr *)&peer, WAIT_MS), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&any, (struct sockaddr *)&peer, WAIT_MS), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, WAIT_MS), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static struct rdma_cm_event *next_event(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;

    assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
    assert_int_equal(event->event, type);
    return event;
}

/* A client whose calls wait for no event, and a Send that it posts while it connects. */
static void connect_and_send(struct ids *ids, struct rdma_event_channel *channel)
{
    char port[8];

    ids_listen(ids, port);
    ids_make_client(ids, port);
    assert_int_equal(rdma_post_send(ids->client, NULL, ids->client_buffer, 64, ids->client_mr, 0), -1);
    assert_int_equal(errno, EINVAL); /* not yet */
    assert_int_equal(rdma_migrate_id(ids->client, channel), 0);
    assert_int_equal(rdma_connect(ids->client, &ids->client_param), 0);
    strcpy(ids->client_buffer, "early");
    assert_int_equal(rdma_post_send(ids->client, ids, ids->client_buffer, 64, ids->client_mr, 0), 0);
    assert_int_equal(rdma_get_request(ids->listener, &ids->server), 0);
    ids->server_mr = rdma_reg_msgs(ids->server, ids->server_buffer, SIZE);
    assert_non_null(ids->server_mr);
}

static void test_sent_early(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct ids ids = {0};
    struct ibv_wc wc;
    (void)state;

    connect_and_send(&ids, channel);
    assert_int_equal(rdma_post_recv(ids.server, NULL, ids.server_buffer, SIZE, ids.server_mr), 0);
    assert_int_equal(rdma_accept(ids.server, NULL), 0);
    rdma_ack_cm_event(next_event(ids.client, RDMA_CM_EVENT_ESTABLISHED));
    assert_int_equal(ids_completion(ids.server->recv_cq).byte_len, 64);
    assert_string_equal(ids.server_buffer, "early");
    wc = ids_completion(ids.client->send_cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &ids);
    ids_free(&ids);
    rdma_destroy_event_channel(channel);
}

static void test_sent_in_vain(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct ids ids = {0};
    (void)state;

    connect_and_send(&ids, channel);
    assert_int_equal(rdma_reject(ids.server, NULL, 0), 0);
    rdma_ack_cm_event(next_event(ids.client, RDMA_CM_EVENT_REJECTED));
    assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_WR_FLUSH_ERR);
    ids_free(&ids);
    rdma_destroy_event_channel(channel);
}

/* What was received is not lost with the queue pair, if its owner hears first that the peer is gone. */
static void test_completed_before(void **state)
{
    struct ids ids = {0};
    struct ibv_wc wc;
    (void)state;

    ids_connect(&ids);
    assert_int_equal(rdma_post_send(ids.client, NULL, ids.client_buffer, 64, ids.client_mr, 0), 0);
    assert_int_equal(rdma_disconnect(ids.client), 0);
    rdma_ack_cm_event(next_event(ids.server, RDMA_CM_EVENT_DISCONNECTED));
    assert_int_equal(ibv_destroy_qp(ids.server->qp), 0);
    wc = ids_completion(ids.server->recv_cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 64);
    assert_int_equal(ibv_poll_cq(ids.server->recv_cq, 1, &wc), 0);
    rdma_destroy_qp(ids.server);
    ids_free(&ids);
}

static void read_one(struct ids *ids)
{
    assert_int_equal(rdma_post_read(ids->client, NULL, ids->client_buffer, 8, ids->client_mr, 0,
                                    (uintptr_t)ids->server_buffer, ids->server_mr->rkey),
                     0);
}

/* No Read was agreed to: it fails as over Linux's siw, and does not wait. */
static void test_no_reads(void **state)
{
    struct ids ids = {.no_reads = true};
    (void)state;

    ids_connect(&ids);
    assert_int_equal(ids.connect_error, 0);
    read_one(&ids);
    assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_LOC_QP_OP_ERR);
    ids_free(&ids);
}

/* The region allows Reads, and the queue pair does not. */
static void test_access(void **state)
{
    struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_init_attr init;
    struct ids ids = {0};
    (void)state;

    ids_connect(&ids);
    read_one(&ids);
    assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_modify_qp(ids.server->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
    assert_int_equal(ibv_query_qp(ids.server->qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
    assert_int_equal(attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    read_one(&ids);
    assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_REM_ACCESS_ERR);
    ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),        cmocka_unit_test(test_not_bound),        cmocka_unit_test(test_sent_early),
        cmocka_unit_test(test_sent_in_vain), cmocka_unit_test(test_completed_before), cmocka_unit_test(test_no_reads),
        cmocka_unit_test(test_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
