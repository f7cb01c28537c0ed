/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_retries.c - the retry counts and time-outs that the ends of a connection of rddpe0 ask for. */
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "tests/verbs/lib/ids.h"

static struct ids ids;
static uint8_t timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT of both ends; 0: not asked for */

static struct ibv_qp_attr attributes_of(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    assert_int_equal(ibv_query_qp(id->qp, &attr, 0, &init), 0);
    return attr;
}

static void set_timeout(struct rdma_cm_id *id)
{
    if (timeout)
        assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), 0);
}

/* The client asks with `client`, and the server answers with `server`; NULL: with nothing. */
static void connect_with(struct rdma_conn_param *client, struct rdma_conn_param *server)
{
    pthread_t thread;
    char port[8];

    memset(&ids, 0, sizeof(ids));
    ids_listen(&ids, port);
    ids_make_client(&ids, port);
    ids.client_param = *client;
    set_timeout(ids.client);
    pthread_create(&thread, NULL, ids_run_client, &ids);
    assert_int_equal(rdma_get_request(ids.listener, &ids.server), 0);
    ids.server_mr = ibv_reg_mr(ids.server->pd, ids.server_buffer, SIZE, IBV_ACCESS_LOCAL_WRITE);
    set_timeout(ids.server);
    assert_int_equal(rdma_accept(ids.server, server), 0);
    pthread_join(thread, NULL);
    assert_int_equal(ids.connect_error, 0);
}

/* As the kernel has it: the client's retries for both; each end grants the other its retries after RNR. */
static void test_attributes(void **state)
{
    struct rdma_conn_param client = {.retry_count = 3, .rnr_retry_count = 2}, server = {.rnr_retry_count = 4};

    (void)state;
    server.retry_count = 1; /* says nothing */
    connect_with(&client, &server);
    assert_int_equal(attributes_of(ids.client).retry_cnt, 3);
    assert_int_equal(attributes_of(ids.server).retry_cnt, 3);
    assert_int_equal(attributes_of(ids.client).rnr_retry, 4);
    assert_int_equal(attributes_of(ids.server).rnr_retry, 2);
    ids_free(&ids);
}

/* There are three bits; and 0 is where a program has filled in nothing. */
static void test_seven(void **state)
{
    static const uint8_t counts[] = {200, 8, 0};

    (void)state;
    for (unsigned i = 0; i < sizeof(counts); i++) {
        struct rdma_conn_param client = {.retry_count = counts[i], .rnr_retry_count = counts[i]}, server = client;

        connect_with(&client, i ? &server : NULL);
        assert_int_equal(attributes_of(ids.client).retry_cnt, 7);
        assert_int_equal(attributes_of(ids.server).retry_cnt, 7);
        assert_int_equal(attributes_of(ids.client).rnr_retry, 7);
        assert_int_equal(attributes_of(ids.server).rnr_retry, 7);
        ids_free(&ids);
    }
}

/* A Send that finds no receive is given up after that many retries. */
static void test_not_ready(void **state)
{
    struct rdma_conn_param client = {.retry_count = 7, .rnr_retry_count = 7}, server = {.rnr_retry_count = 1};

    (void)state;
    connect_with(&client, &server);
    assert_int_equal(rdma_post_send(ids.client, (void *)7, ids.client_buffer, 8, ids.client_mr, 0), 0);
    assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    ids_free(&ids);
}

/* Each of a few retries comes as late as with Linux at the other end, or the last one does. */
static void test_late_receive(void **state)
{
    enum { LATE_MS = 300 };
    struct rdma_conn_param client = {.retry_count = 7, .rnr_retry_count = 7}, server = client;

    (void)state;
    for (uint8_t tries = 1; tries < 6; tries += 4) {
        server.rnr_retry_count = tries;
        connect_with(&client, &server);
        assert_int_equal(rdma_post_send(ids.client, (void *)7, ids.client_buffer, 8, ids.client_mr, IBV_SEND_SIGNALED),
                         0);
        poll(NULL, 0, LATE_MS);
        assert_int_equal(rdma_post_recv(ids.server, NULL, ids.server_buffer, SIZE, ids.server_mr), 0);
        assert_int_equal(ids_completion(ids.server->recv_cq).status, IBV_WC_SUCCESS);
        assert_int_equal(ids_completion(ids.client->send_cq).status, IBV_WC_SUCCESS);
        ids_free(&ids);
    }
}

/* Without a word of the program it is 17, as in Linux. A code has five bits. */
static void test_ack_timeout(void **state)
{
    static const uint8_t asked[] = {0, 21, 8, 200}, shown[] = {17, 21, 8, 31};
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

    (void)state;
    for (size_t i = 0; i < sizeof(asked); i++) {
        timeout = asked[i];
        connect_with(&param, &param);
        assert_int_equal(attributes_of(ids.client).timeout, shown[i]);
        assert_int_equal(attributes_of(ids.server).timeout, shown[i]);
        ids_free(&ids);
    }
    timeout = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes),   cmocka_unit_test(test_seven),       cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_late_receive), cmocka_unit_test(test_ack_timeout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
