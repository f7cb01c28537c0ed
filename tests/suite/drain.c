/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* drain.c - a process that is about to exit loses nothing: rddp_drain() over every way to connect. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

enum { SENDS = 8, SIZE = 60000, DELAY_MS = 100, CHILD_S = 60 };

/* ThreadSanitizer ends a child that starts a thread. */
#ifdef __SANITIZE_THREAD__
enum { CHILD_HAS_THREADS = false };
#else
enum { CHILD_HAS_THREADS = true };
#endif

static struct pair *of(void **state)
{
    return *state;
}

/* --- a process that exits at once ------------------------------------------------------------------------------ */

/* What it needs of the library, made in the child: whatever is left when it exits. */
struct client {
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t buffer[SIZE];
};

static bool client_opens(struct client *client)
{
    struct rddp_pd *pd;
    struct rddp_qp_attr attr;

    client->context = rddp_open(NULL);
    if (!client->context)
        return false;
    client->events = rddp_create_event_channel(client->context);
    pd = rddp_alloc_pd(client->context);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = rddp_create_cq(client->context, 256, NULL, NULL);
    client->qp = rddp_create_qp(pd, &attr);
    client->mr = rddp_reg_mr(pd, client->buffer, SIZE, RDDP_ACCESS_LOCAL_WRITE);
    return client->events && client->qp && client->mr;
}

static bool client_connects(struct client *client, const struct pair *pair, const struct rddp_wire_attr *wire)
{
    struct rddp_conn_attr attr;
    struct rddp_event *event;
    bool is_up;

    rddp_conn_attr_init(&attr);
    attr.wire = *wire;
    if (rddp_connect(client->qp, client->events, (const struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr) ||
        rddp_get_event(client->events, &event))
        return false;
    is_up = event->type == RDDP_EVENT_ESTABLISHED;
    rddp_ack_event(event);
    return is_up;
}

static bool client_sends(struct client *client)
{
    struct rddp_sge sge = {.addr = (uintptr_t)client->buffer, .length = SIZE, .lkey = rddp_mr_key(client->mr)};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND};

    pair_pattern(client->buffer, SIZE, 3);
    for (int i = 0; i < SENDS; i++)
        if (rddp_post_send(client->qp, &wr, NULL))
            return false;
    return true;
}

/* Sends, drains and exits. A stack of SCTP ends with its process, and so does RoCE: there the connection is closed
 * before. */
static int client_runs(const struct pair *pair, const struct rddp_wire_attr *wire, bool sends)
{
    static struct client client;

    if (!client_opens(&client))
        return 2;
    if (!client_connects(&client, pair, wire))
        return 3;
    if (sends && !client_sends(&client))
        return 4;
    if ((wire->wire == RDDP_WIRE_SCTP || wire->wire == RDDP_WIRE_ROCE) && rddp_disconnect(client.qp))
        return 5;
    return rddp_drain(client.context, PAIR_WAIT_MS) ? 6 : 0;
}

static pid_t fork_client(const struct pair *pair, bool sends)
{
    struct rddp_wire_attr wire = pair_wire(pair->row, false);
    pid_t pid;

    wire.first_delay_ms = DELAY_MS;
    pid = fork_apart(CHILD_S);
    assert_true(pid >= 0);
    if (!pid)
        _exit(client_runs(pair, &wire, sends));
    return pid;
}

/* A child cannot use a device of its parent. */
static bool has_no_child(const struct pair *pair)
{
    return pair->row->packet || pair->row->hand_off || !CHILD_HAS_THREADS;
}

static void make_server(struct pair *pair)
{
    struct rddp_qp_attr attr = pair->qp_attr;

    attr.send_cq = attr.recv_cq = pair->server.cq;
    pair->server.qp = rddp_create_qp(pair->server.pd, &attr);
    assert_non_null(pair->server.qp);
}

static void accept_one(struct pair *pair)
{
    struct rddp_event event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);

    assert_int_equal(rddp_accept(event.request, pair->server.qp, NULL), 0);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
}

static void expect_success(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* All that was posted arrives, although it could not be sent before the process was about to exit. */
static void nothing_is_lost(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wc wc[SENDS];
    pid_t pid;

    if (has_no_child(pair))
        skip();
    make_server(pair);
    for (unsigned i = 0; i < SENDS; i++)
        pair_receive(&pair->server, i, i * SIZE, SIZE);
    pid = fork_client(pair, true);
    accept_one(pair);
    pair_completions(&pair->server, wc, SENDS);
    for (unsigned i = 0; i < SENDS; i++) {
        assert_int_equal(wc[i].status, RDDP_WC_SUCCESS);
        assert_true(pair_is_pattern(pair->server.buffer + i * SIZE, SIZE, 3));
    }
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
    expect_success(pid);
}

/* A connection without a message is one, too. */
static void connected_and_gone(void **state)
{
    struct pair *pair = of(state);
    pid_t pid;

    if (has_no_child(pair))
        skip();
    make_server(pair);
    pid = fork_client(pair, false);
    accept_one(pair);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
    expect_success(pid);
}

/* --- what is waited for ---------------------------------------------------------------------------------------- */

/* Waits for the next event, and works meanwhile: the context may have no thread. */
static void next_event(struct side *side, enum rddp_event_type type)
{
    struct rddp_event *event;
    int error;

    while ((error = rddp_get_event(side->events, &event)) == -EAGAIN)
        assert_int_equal(rddp_progress(side->context, 1), 0);
    assert_int_equal(error, 0);
    assert_int_equal(event->type, type);
    rddp_ack_event(event);
}

/* Connections that live and owe nothing do not delay it, those that close do. */
static void closing(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_info info;

    assert_int_equal(rddp_drain(pair->client.context, 0), 0);
    pair_connect(pair);
    assert_int_equal(rddp_drain(pair->client.context, PAIR_WAIT_MS), 0);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_CONNECTED);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(rddp_drain(pair->client.context, -1), 0);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_CLOSED);
    next_event(&pair->client, RDDP_EVENT_DISCONNECTED);
}

static int listen_deaf(struct sockaddr_storage *addr)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(*addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &length), 0);
    return fd;
}

/* Is this a row in which no peer has to answer? */
static bool peer_may_be_deaf(const struct pair *pair)
{
    return pair->row->immediate && !pair->row->packet && !pair->row->hand_off;
}

/* Connects to a peer that does not read. Returns its descriptor. */
static int connect_to_deaf(struct pair *pair, struct side *client)
{
    struct rddp_qp_attr qp_attr = pair->qp_attr;
    struct rddp_conn_attr attr;
    struct sockaddr_storage addr;
    int fd = listen_deaf(&addr);

    qp_attr.send_cq = qp_attr.recv_cq = client->cq;
    client->qp = rddp_create_qp(client->pd, &qp_attr);
    assert_non_null(client->qp);
    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    attr.wire.close_timeout_ms = 100;
    assert_int_equal(
        rddp_connect(client->qp, client->events, (struct sockaddr *)&addr, sizeof(struct sockaddr_in), &attr), 0);
    next_event(client, RDDP_EVENT_ESTABLISHED);
    return fd;
}

static void write_to_deaf(struct side *client)
{
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(pair_post(client, client, RDDP_WR_RDMA_WRITE, i, 0, 1 << 20, 0, 0), 0);
}

/* A peer that does not read: the time is over. */
static void peer_is_deaf(void **state)
{
    struct pair *pair = of(state);
    struct side *client = &pair->client;
    int fd;

    if (!peer_may_be_deaf(pair))
        skip();
    fd = connect_to_deaf(pair, client);
    write_to_deaf(client);
    assert_int_equal(rddp_drain(client->context, 0), -ETIMEDOUT);
    assert_int_equal(rddp_drain(client->context, 50), -ETIMEDOUT);
    assert_int_equal(rddp_disconnect(client->qp), 0);
    assert_int_equal(rddp_drain(client->context, PAIR_WAIT_MS), 0);
    assert_int_equal(pair_event(client, RDDP_EVENT_DISCONNECTED).status, -ETIMEDOUT);
    close(fd);
}

/* --- others work meanwhile ------------------------------------------------------------------------------------- */

/* Waits for the bell that the test holds, and does not wait for what is owed. */
static void *drain_now(void *arg)
{
    struct side *client = arg;

    return (void *)(intptr_t)rddp_drain(client->context, 0);
}

static void open_manual(struct side *client)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    client->context = rddp_open(&attr);
    assert_non_null(client->context);
    client->pd = rddp_alloc_pd(client->context);
    client->events = rddp_create_event_channel(client->context);
    client->cq = rddp_create_cq(client->context, 256, NULL, NULL);
    client->buffer = calloc(1, 1 << 20);
    client->mr = rddp_reg_mr(client->pd, client->buffer, 1 << 20, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_ZERO_BASED);
    assert_non_null(client->mr);
}

static void close_manual(struct side *client)
{
    rddp_dereg_mr(client->mr);
    rddp_destroy_cq(client->cq);
    rddp_destroy_event_channel(client->events);
    rddp_dealloc_pd(client->pd);
    assert_int_equal(rddp_close(client->context), 0);
    free(client->buffer);
}

/* One connection turns out to be lost, and its bell is rung, just when it is asked what it owes: it goes, and the next
 * one still owes. */
static void one_goes_meanwhile(void **state)
{
    struct pair *pair = of(state);
    struct side client = {.context = NULL};
    struct rddp_qp *owing, *lost;
    struct endpoint *endpoint;
    pthread_t thread;
    void *drained;
    int fd[2];

    if (!peer_may_be_deaf(pair))
        skip();
    open_manual(&client);
    fd[0] = connect_to_deaf(pair, &client);
    owing = client.qp;
    write_to_deaf(&client);
    fd[1] = connect_to_deaf(pair, &client);
    lost = client.qp;
    endpoint = lost->endpoint;
    doorbell_hold(&endpoint->bell);
    assert_int_equal(pthread_create(&thread, NULL, drain_now, &client), 0);
    while (!(atomic_load(&endpoint->bell.word) & DOORBELL_WAITED_FOR))
        sched_yield();
    life_lost(endpoint->life, FAULT_LOST);
    assert_false(doorbell_ring(&endpoint->bell));
    assert_true(doorbell_release(&endpoint->bell));
    assert_int_equal(pthread_join(thread, &drained), 0);
    assert_int_equal((intptr_t)drained, -ETIMEDOUT);
    next_event(&client, RDDP_EVENT_DISCONNECTED);
    rddp_destroy_qp(lost);
    rddp_destroy_qp(owing);
    close_manual(&client);
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(nothing_is_lost), PAIR_TEST(connected_and_gone), PAIR_TEST(closing),
        PAIR_TEST(peer_is_deaf),    PAIR_TEST(one_goes_meanwhile),
    };

    return pair_run("drain", tests, sizeof(tests) / sizeof(*tests), false);
}
