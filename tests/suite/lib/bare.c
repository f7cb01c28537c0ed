/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bare.c - a peer that is a bare socket. */
#include "tests/suite/lib/bare.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

static struct rddp_qp *new_qp(struct side *side, bool rdma_control)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = side->cq;
    attr.rdma_control = rdma_control;
    return rddp_create_qp(side->pd, &attr);
}

int bare_dial(struct pair *pair, struct rddp_qp **qp, bool rdma_control)
{
    int fd = new_socket();

    assert_int_equal(connect(fd, (const struct sockaddr *)&pair->addr, sizeof(struct sockaddr_in)), 0);
    *qp = new_qp(&pair->server, rdma_control);
    assert_int_equal(rddp_accept(pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST).request, *qp, NULL), 0);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    return fd;
}

int bare_answer(struct pair *pair, struct rddp_qp **qp)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(addr);
    struct rddp_conn_attr attr;
    int listener = new_socket(), fd;

    assert_int_equal(bind(listener, (struct sockaddr *)&addr, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &length), 0);
    *qp = new_qp(&pair->client, false);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    assert_int_equal(rddp_connect(*qp, pair->client.events, (struct sockaddr *)&addr, sizeof(addr), &attr), 0);
    fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    close(listener);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    return fd;
}
