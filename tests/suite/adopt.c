/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adopt.c - connections and listeners made from descriptors; objects of another context are refused. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/suite/lib/pair.h"

static struct sockaddr_storage loopback(void)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr = {0};

    memcpy(&addr, &v4, sizeof(v4));
    return addr;
}

static int listening(struct sockaddr_storage *addr)
{
    socklen_t length = sizeof(*addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    *addr = loopback();
    assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &length), 0);
    return fd;
}

static int connected(const struct sockaddr_storage *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
    return fd;
}

static struct rddp_qp *new_qp(struct side *side)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = side->cq;
    return rddp_create_qp(side->pd, &attr);
}

/* Both ends use sockets made by the test; octets get through, and each end knows both addresses. */
static void both_ends(void **state)
{
    struct pair *pair = *state;
    struct rddp_wire_attr wire = pair_wire(pair->row, true);
    struct sockaddr_storage addr, peer, local;
    struct rddp_listener *listener;
    struct rddp_conn_attr attr;
    struct rddp_event request;
    struct rddp_qp_info info;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    pair->client.qp = new_qp(&pair->client);
    pair->server.qp = new_qp(&pair->server);
    listener = rddp_listen_fd(pair->server.events, listening(&addr), &wire, NULL);
    if (pair->row->wire == RDDP_WIRE_SCTP || pair->row->wire == RDDP_WIRE_ROCE) { /* no socket of its own */
        assert_null(listener);
        assert_int_equal(errno, EOPNOTSUPP);
        listener = rddp_listen_fd(pair->server.events, listening(&addr), NULL, NULL);
        assert_int_equal(rddp_connect_fd(pair->client.qp, pair->client.events, connected(&addr), &attr), -EOPNOTSUPP);
        assert_int_equal(rddp_destroy_listener(listener), 0);
        return;
    }
    assert_non_null(listener);
    assert_int_equal(rddp_connect_fd(pair->client.qp, pair->client.events, connected(&addr), &attr), 0);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_request_addr(request.request, &peer), 0);
    assert_int_equal(rddp_request_local_addr(request.request, &local), 0);
    assert_memory_equal(&local, &addr, sizeof(struct sockaddr_in));
    assert_int_equal(rddp_accept(request.request, pair->server.qp, NULL), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_memory_equal(&info.local, &peer, sizeof(struct sockaddr_in));
    assert_memory_equal(&info.peer, &addr, sizeof(struct sockaddr_in));
    pair_pattern(pair->client.buffer, 100000, 5);
    pair_receive(&pair->server, 1, 0, 100000);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 100000, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->server.buffer, 100000, 5));
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* A descriptor that is no socket of the right kind is refused and closed. */
static void wrong_kinds(void **state)
{
    struct pair *pair = *state;
    struct side *side = &pair->client;
    struct sockaddr_storage addr;
    int fd = listening(&addr), pipes[2];

    side->qp = new_qp(side);
    assert_int_equal(rddp_connect_fd(side->qp, side->events, fd, NULL), -EINVAL);
    assert_int_equal(close(fd), -1);
    assert_int_equal(rddp_connect_fd(side->qp, side->events, socket(AF_INET, SOCK_STREAM, 0), NULL), -ENOTCONN);
    assert_int_equal(rddp_connect_fd(side->qp, side->events, socket(AF_INET, SOCK_DGRAM, 0), NULL), -EINVAL);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(rddp_connect_fd(side->qp, side->events, pipes[0], NULL), -ENOTSOCK);
    close(pipes[1]);
    assert_int_equal(rddp_connect_fd(side->qp, side->events, -1, NULL), -EBADF);
    assert_null(rddp_listen_fd(side->events, socket(AF_INET, SOCK_STREAM, 0), NULL, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(rddp_listen_fd(side->events, -1, NULL, NULL));
    assert_int_equal(errno, EBADF);
}

/* A CQ, an SRQ or a channel of another context: EINVAL, and no object counts as used. */
static void foreign(void **state)
{
    struct pair *pair = *state;
    struct side *here = &pair->client, *there = &pair->server;
    struct rddp_srq *srq = rddp_create_srq(there->pd, 4, 1);
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = here->cq;
    attr.recv_cq = there->cq;
    assert_null(rddp_create_qp(here->pd, &attr));
    assert_int_equal(errno, EINVAL);
    attr.send_cq = there->cq;
    attr.recv_cq = here->cq;
    assert_null(rddp_create_qp(here->pd, &attr));
    attr.send_cq = here->cq;
    attr.srq = srq;
    assert_null(rddp_create_qp(here->pd, &attr));
    assert_int_equal(errno, EINVAL);
    assert_null(rddp_create_cq(here->context, 4, NULL, there->channel));
    assert_int_equal(errno, EINVAL);
    here->qp = new_qp(here);
    assert_int_equal(rddp_connect(here->qp, there->events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), NULL),
                     -EINVAL);
    assert_int_equal(rddp_destroy_srq(srq), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(both_ends), PAIR_TEST(wrong_kinds), PAIR_TEST(foreign)};

    return pair_run("adopt", tests, sizeof(tests) / sizeof(tests[0]), false);
}
