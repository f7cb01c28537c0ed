/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exits.c - a program that ends without a word: the other end of its connection is disconnected, as a kernel sees to it
 * for adapters. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/verbs/lib/ids.h"

static int call_and_exit(int port_fd)
{
    static struct ids own; /* still referred to when the process ends: no leak */
    char port[8];

    assert_int_equal(read(port_fd, port, sizeof(port)), sizeof(port));
    ids_make_client(&own, port);
    assert_int_equal(rdma_post_recv(own.client, NULL, own.client_buffer, SIZE, own.client_mr), 0);
    ids_run_client(&own);
    assert_int_equal(own.connect_error, 0);
    assert_int_equal(rdma_post_send(own.client, NULL, own.client_buffer, SIZE, own.client_mr, 0), 0);
    return 0;
}

static enum rdma_cm_event_type next_event(struct rdma_event_channel *channel)
{
    struct pollfd readable = {channel->fd, POLLIN, 0};
    struct rdma_cm_event *event;
    enum rdma_cm_event_type type;

    assert_int_equal(poll(&readable, 1, WAIT_MS), 1);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    type = event->event;
    rdma_ack_cm_event(event);
    return type;
}

static void serve(int port_fd)
{
    struct ids ids = {0};
    char port[8];

    ids_listen(&ids, port);
    assert_int_equal(write(port_fd, port, sizeof(port)), sizeof(port));
    assert_int_equal(rdma_get_request(ids.listener, &ids.server), 0);
    ids.server_mr = ibv_reg_mr(ids.server->pd, ids.server_buffer, SIZE, IBV_ACCESS_LOCAL_WRITE);
    assert_int_equal(rdma_post_recv(ids.server, NULL, ids.server_buffer, SIZE, ids.server_mr), 0);
    assert_int_equal(rdma_post_recv(ids.server, NULL, ids.server_buffer, SIZE, ids.server_mr), 0);
    assert_int_equal(rdma_accept(ids.server, NULL), 0);
    assert_int_equal(next_event(ids.server->channel), RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(ids_completion(ids.server->recv_cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ids_completion(ids.server->recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

/* Both ends are processes of their own: the device is chosen once in each. */
static void test_exit(void **state)
{
    pid_t client, server;
    int port[2], status;

    assert_int_equal(pipe(port), 0);
    assert_int_equal(setenv("RDDP_DEVICE", *state, 1), 0);
    client = fork();
    if (!client)
        exit(call_and_exit(port[0]));
    server = fork();
    if (!server) {
        serve(port[1]);
        _exit(0);
    }
    assert_int_equal(waitpid(client, &status, 0), client);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_int_equal(status, 0);
    close(port[0]);
    close(port[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"rddp0", test_exit, NULL, NULL, (void *)"rddp0"},
        {"rddpe0", test_exit, NULL, NULL, (void *)"rddpe0"},
    };

    return cmocka_run_group_tests_name("exits", tests, NULL, NULL);
}
