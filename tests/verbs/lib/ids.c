/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ids.c - two synchronous ids of rdma_cm, connected over loopback, each with a queue pair and a region. */
#include "tests/verbs/lib/ids.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct ibv_qp_init_attr ids_queues(void)
{
    return (struct ibv_qp_init_attr){
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
}

static struct rdma_addrinfo *address_of(const char *port, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *info = NULL;

    assert_int_equal(rdma_getaddrinfo("127.0.0.1", port, &hints, &info), 0);
    return info;
}

void ids_listen(struct ids *ids, char port[8])
{
    struct ibv_qp_init_attr attr = ids_queues();
    struct rdma_addrinfo *info = address_of("0", RAI_PASSIVE);

    assert_int_equal(rdma_create_ep(&ids->listener, info, NULL, &attr), 0);
    rdma_freeaddrinfo(info);
    assert_int_equal(rdma_listen(ids->listener, 0), 0);
    snprintf(port, 8, "%d", ntohs(rdma_get_src_port(ids->listener)));
}

void ids_make_client(struct ids *ids, const char *port)
{
    struct ibv_qp_init_attr attr = ids_queues();
    struct rdma_addrinfo *info = address_of(port, 0);

    assert_int_equal(rdma_create_ep(&ids->client, info, NULL, &attr), 0);
    rdma_freeaddrinfo(info);
    ids->client_mr = ibv_reg_mr(ids->client->pd, ids->client_buffer, SIZE,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(ids->client_mr);
}

void *ids_run_client(void *arg)
{
    struct ids *ids = arg;

    ids->connect_error = rdma_connect(ids->client, &ids->client_param) ? errno : 0;
    return NULL;
}

void ids_connect(struct ids *ids)
{
    pthread_t thread;
    char port[8];

    ids_listen(ids, port);
    ids_make_client(ids, port);
    ids->client_param.initiator_depth = ids->client_param.responder_resources = ids->no_reads ? 0 : 4;
    assert_int_equal(rdma_post_recv(ids->client, (void *)1, ids->client_buffer, SIZE, ids->client_mr), 0);
    pthread_create(&thread, NULL, ids_run_client, ids);
    assert_int_equal(rdma_get_request(ids->listener, &ids->server), 0);
    ids->server_mr = ibv_reg_mr(ids->server->pd, ids->server_buffer, SIZE,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(ids->server_mr);
    if (ids->reject) {
        assert_int_equal(rdma_reject(ids->server, "no", 2), 0);
    } else {
        assert_int_equal(rdma_post_recv(ids->server, (void *)2, ids->server_buffer, SIZE, ids->server_mr), 0);
        assert_int_equal(rdma_accept(ids->server, NULL), 0);
    }
    pthread_join(thread, NULL);
}

void ids_free(struct ids *ids)
{
    if (ids->client_mr)
        assert_int_equal(ibv_dereg_mr(ids->client_mr), 0);
    if (ids->server_mr)
        assert_int_equal(ibv_dereg_mr(ids->server_mr), 0);
    rdma_destroy_ep(ids->client);
    if (ids->server)
        rdma_destroy_ep(ids->server);
    if (ids->listener)
        rdma_destroy_ep(ids->listener);
}

struct ibv_wc ids_completion(struct ibv_cq *cq)
{
    struct ibv_wc wc = {0};
    int n = 0;

    for (int ms = 0; !n && ms < WAIT_MS; ms++) {
        n = ibv_poll_cq(cq, 1, &wc);
        if (!n)
            usleep(1000);
    }
    assert_int_equal(n, 1);
    return wc;
}
