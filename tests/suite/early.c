/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* early.c - requests that an initiator posts while it connects: sent when the connection is up, flushed when it fails.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum {
    LENGTH = 100000,
    READ_AT = 1 << 20,
    CALLERS = 4,  /* of a listener that takes one */
    SOON_MS = 50, /* a driver that is called has worked by then */
};

static int caller[CALLERS];

static struct pair *of(void **state)
{
    return *state;
}

static void make_qp(const struct pair *pair, struct side *side)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = side->cq;
    side->qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(side->qp);
}

static void start_with(struct pair *pair, const struct rddp_wire_attr *wire)
{
    struct rddp_conn_attr attr;

    make_qp(pair, &pair->client);
    make_qp(pair, &pair->server);
    rddp_conn_attr_init(&attr);
    attr.wire = *wire;
    attr.wire.device = pair->client.device;
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 8, 0, 0), -EINVAL); /* not yet */
    assert_int_equal(
        rddp_connect(pair->client.qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
        0);
}

static void start(struct pair *pair)
{
    struct rddp_wire_attr wire = pair_wire(pair->row, false);

    start_with(pair, &wire);
}

static void expect_sends(struct pair *pair, uint64_t ids, enum rddp_wc_status status)
{
    for (uint64_t id = 1; id <= ids; id++) {
        struct rddp_wc wc = pair_completion(&pair->client);
        assert_int_equal(wc.wr_id, id);
        assert_int_equal(wc.status, status);
    }
}

/* A Write, a Send that says so, and a Read, as if they had been posted afterwards. */
static void sent_when_up(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event request;

    pair_pattern(pair->client.buffer, LENGTH, 1);
    pair_pattern(pair->server.buffer + READ_AT, LENGTH, 2);
    start(pair);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 1, 0, LENGTH, 0, RDDP_SEND_SIGNALED),
                     0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(
        pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_READ, 3, READ_AT, LENGTH, READ_AT, RDDP_SEND_SIGNALED), 0);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    pair_receive(&pair->server, 9, LENGTH, 64);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 4, 0, 0, 0, RDDP_SEND_INLINE), 0);
    pair_receive(&pair->server, 10, LENGTH, 64);
    assert_int_equal(rddp_accept(request.request, pair->server.qp, NULL), 0);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    assert_int_equal(pair_completion(&pair->server).wr_id, 9);
    assert_true(pair_is_pattern(pair->server.buffer, LENGTH, 1));
    assert_int_equal(pair_completion(&pair->server).wr_id, 10);
    expect_sends(pair, 3, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->client.buffer + READ_AT, LENGTH, 2));
}

/* The queue holds max_send_wr and no more. */
static void flushed_when_refused(void **state)
{
    struct pair *pair = of(state);

    assert_int_equal(rddp_destroy_listener(pair->listener), 0);
    pair->listener = NULL;
    start(pair);
    for (uint64_t id = 1; id <= PAIR_DEPTH; id++)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, id, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
    pair_event(&pair->client, RDDP_EVENT_UNREACHABLE);
    expect_sends(pair, PAIR_DEPTH, RDDP_WC_WR_FLUSH_ERR);
}

static void flushed_when_rejected(void **state)
{
    struct pair *pair = of(state);
    struct rddp_event request;

    if (pair->row->immediate)
        skip(); /* no frame that could say no */
    start(pair);
    for (uint64_t id = 1; id <= PAIR_DEPTH; id++)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, id, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 99, 0, 64, 0, 0), -ENOMEM);
    request = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_reject(request.request, NULL, 0), 0);
    pair_event(&pair->client, RDDP_EVENT_REJECTED);
    expect_sends(pair, PAIR_DEPTH, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 64, 0, 0), 0); /* in the error state */
    expect_sends(pair, 1, RDDP_WC_WR_FLUSH_ERR);
}

/* The owner gives up: the same. */
static void flushed_when_failed(void **state)
{
    struct pair *pair = of(state);

    if (pair->row->immediate)
        skip(); /* it may be on its way */
    start(pair);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 64, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    expect_sends(pair, 1, RDDP_WC_WR_FLUSH_ERR);
}

/* The same, with a peer that says nothing: it is told once, although the path ends after that, too. */
static void told_once(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wire_attr wire = pair_wire(pair->row, false);
    struct sockaddr_storage silent = pair->addr;
    socklen_t length = sizeof(silent);
    int fd = socket(silent.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (wire.wire != RDDP_WIRE_SCTP) {
        close(fd);
        skip(); /* all others have a port of TCP, or one for all */
    }
    ((struct sockaddr_in *)&silent)->sin_port = 0;
    assert_int_equal(bind(fd, (struct sockaddr *)&silent, sizeof(silent)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&silent, &length), 0);
    wire.sctp_udp_port = ntohs(((struct sockaddr_in *)&silent)->sin_port);
    wire.startup_timeout_ms = wire.close_timeout_ms = 200;
    start_with(pair, &wire);
    assert_int_equal(rddp_fail_qp(pair->client.qp), 0);
    pair_event(&pair->client, RDDP_EVENT_CONNECT_ERROR);
    assert_int_equal(rddp_drain(pair->client.context, PAIR_WAIT_MS), 0);
    close(fd);
}

/* A listener of the kernel that takes no more: whoever calls it waits. */
static int open_full_listener(struct sockaddr_storage *addr)
{
    socklen_t length = sizeof(*addr);
    int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ((struct sockaddr_in *)addr)->sin_port = 0;
    assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &length), 0);
    for (int i = 0; i < CALLERS; i++) {
        caller[i] = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(caller[i], (struct sockaddr *)addr, sizeof(*addr));
    }
    return fd;
}

/* As many threads post as can at once, so what is posted is left to the driver: not as the end of the attempt. */
static void posted_by_one_too_many(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wire_attr wire = pair_wire(pair->row, false);
    struct rddp_context *context = pair->client.context;
    struct pollfd events = {rddp_event_channel_fd(pair->client.events), POLLIN, 0};
    struct epoch_reader *reader[POSTERS];
    int fd;

    if (wire.wire != RDDP_WIRE_IWARP || pair->client.device)
        skip(); /* not the kernel's TCP */
    fd = open_full_listener(&pair->addr);
    wire.startup_timeout_ms = 10 * SOON_MS;
    start_with(pair, &wire);
    for (unsigned i = 0; i < POSTERS; i++)
        assert_non_null(reader[i] = epoch_enter_any(&context->mrs.epochs, context->loops, i));
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 8, 0, 0), 0);
    for (unsigned i = 0; i < POSTERS; i++)
        epoch_leave(reader[i]);
    assert_int_equal(poll(&events, 1, SOON_MS), 0);
    pair_event(&pair->client, RDDP_EVENT_UNREACHABLE);
    for (int i = 0; i < CALLERS; i++)
        close(caller[i]);
    close(fd);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(sent_when_up),
        PAIR_TEST(flushed_when_refused),
        PAIR_TEST(flushed_when_rejected),
        PAIR_TEST(flushed_when_failed),
        PAIR_TEST(told_once),
        PAIR_TEST(posted_by_one_too_many),
    };

    return pair_run("early", tests, sizeof(tests) / sizeof(*tests), false);
}
