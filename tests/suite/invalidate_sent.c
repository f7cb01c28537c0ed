/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* invalidate_sent.c - a key is taken away while memory behind it waits for a peer that does not read. What takes it
 * away does not wait for that peer, and nothing that is written to the memory afterwards is sent (RDMAP-5.3-03). */
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { LENGTH = 300 << 10, LINKS = 2, SMALL = 16 << 10, GRACE_MS = 100 };

/* `here` drives itself, and so reads only when the test wants it to. */
struct end {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_event_channel *events;
    struct rddp_cq *cq;
    struct rddp_qp *qp[LINKS];
    struct rddp_mr *mr;
};

static struct end here, there;
static struct rddp_listener *listener;
static uint8_t source[LENGTH], sink[LENGTH];

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void open_end(struct end *end, bool manual, uint8_t *memory, unsigned access)
{
    struct rddp_context_attr attr;
    struct rddp_qp_attr qp_attr;

    rddp_context_attr_init(&attr);
    attr.manual_progress = manual;
    attr.loops = manual ? 1 : LINKS;
    end->context = rddp_open(&attr);
    end->pd = rddp_alloc_pd(end->context);
    end->events = rddp_create_event_channel(end->context);
    end->cq = rddp_create_cq(end->context, 256, NULL, NULL);
    end->mr = rddp_reg_mr(end->pd, memory, LENGTH, access);
    assert_non_null(end->mr);
    rddp_qp_attr_init(&qp_attr);
    qp_attr.send_cq = qp_attr.recv_cq = end->cq;
    for (int i = 0; i < LINKS; i++)
        assert_non_null(end->qp[i] = rddp_create_qp(end->pd, &qp_attr));
}

/* Its sockets take little, so that most of a response waits in the library. */
static void listen_small(struct sockaddr_in *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), octets = SMALL;
    socklen_t length = sizeof(*addr);
    struct rddp_wire_attr wire;

    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof(octets)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)addr, length), 0);
    assert_int_equal(listen(fd, LINKS), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &length), 0);
    rddp_wire_attr_init(&wire);
    wire.crc = false; /* otherwise the memory is copied at once */
    assert_non_null(listener = rddp_listen_fd(there.events, fd, &wire, NULL));
}

/* Waits for an event of either end, while `here` works. */
static struct rddp_event next_event(struct end *end, enum rddp_event_type type)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(end->events), .events = POLLIN};
    struct rddp_event *event, copy;

    for (int i = 0; i < PAIR_WAIT_MS && poll(&fd, 1, 0) != 1; i++)
        assert_int_equal(rddp_progress(here.context, 1), 0);
    assert_int_equal(rddp_get_event(end->events, &event), 0);
    copy = *event;
    rddp_ack_event(event);
    assert_int_equal(copy.type, type);
    return copy;
}

static void connect_one(int i, const struct sockaddr_in *addr)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.first_delay_ms = 0;
    attr.wire.crc = false;
    assert_int_equal(rddp_connect(here.qp[i], here.events, (const struct sockaddr *)addr, sizeof(*addr), &attr), 0);
    assert_int_equal(rddp_accept(next_event(&there, RDDP_EVENT_CONNECT_REQUEST).request, there.qp[i], NULL), 0);
    next_event(&here, RDDP_EVENT_ESTABLISHED);
    next_event(&there, RDDP_EVENT_ESTABLISHED);
}

static int set_up(void **state)
{
    struct sockaddr_in addr;

    (void)state;
    open_end(&here, true, sink, RDDP_ACCESS_LOCAL_WRITE);
    open_end(&there, false, source, RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_STABLE);
    listen_small(&addr);
    for (int i = 0; i < LINKS; i++)
        connect_one(i, &addr);
    memset(source, 'o', sizeof(source));
    memset(sink, 0, sizeof(sink));
    return 0;
}

static void close_end(struct end *end)
{
    for (int i = 0; i < LINKS; i++)
        rddp_destroy_qp(end->qp[i]);
    if (end->mr)
        rddp_dereg_mr(end->mr);
    rddp_destroy_cq(end->cq);
    rddp_destroy_event_channel(end->events);
    assert_int_equal(rddp_dealloc_pd(end->pd), 0);
    assert_int_equal(rddp_close(end->context), 0);
}

static int tear_down(void **state)
{
    (void)state;
    rddp_destroy_listener(listener);
    close_end(&here);
    close_end(&there);
    return 0;
}

static void post(struct rddp_qp *qp, uint64_t id, enum rddp_wr_opcode opcode, uint32_t length)
{
    struct rddp_sge sge = {(uintptr_t)sink, length, rddp_mr_key(here.mr)};
    struct rddp_send_wr wr = {
        .wr_id = id,
        .opcode = opcode,
        .send_flags = RDDP_SEND_SIGNALED,
        .sg_list = &sge,
        .num_sge = length ? 1 : 0,
        .remote_addr = rddp_mr_offset(there.mr, source),
        .rkey = rddp_mr_key(there.mr),
        .invalidate_rkey = rddp_mr_key(there.mr),
    };

    assert_int_equal(rddp_post_send(qp, &wr, NULL), 0);
}

/* The peer of there.qp[0] asks for all of the memory, and reads no answer. */
static void begin_to_answer(void)
{
    struct rddp_qp_info info = {.tx_octets = 0};

    post(here.qp[0], 1, RDDP_WR_RDMA_READ, LENGTH);
    for (int i = 0; i < PAIR_WAIT_MS && info.tx_octets < LENGTH; i++) {
        assert_int_equal(rddp_query_qp(there.qp[0], &info), 0);
        pause_ms(1);
    }
    assert_true(there.mr->mr->sending); /* it was cut, and the socket is full */
}

/* Polls for a completion at the end that does not drive itself. */
static struct rddp_wc told(void)
{
    struct rddp_wc wc = {.wr_id = 0};

    for (int i = 0; i < PAIR_WAIT_MS && rddp_poll_cq(there.cq, 1, &wc) != 1; i++)
        pause_ms(1);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    return wc;
}

/* The memory is the application's again, which writes to it; what the peer reads then is what was there before. */
static void peer_reads_on(void)
{
    struct rddp_wc wc = {.wr_id = 0};

    memset(source, 'n', sizeof(source));
    for (int i = 0; i < PAIR_WAIT_MS && wc.wr_id != 1; i++) {
        assert_int_equal(rddp_progress(here.context, 1), 0);
        while (wc.wr_id != 1 && rddp_poll_cq(here.cq, 1, &wc) == 1)
            assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
    assert_int_equal(wc.wr_id, 1);
    for (size_t i = 0; i < sizeof(sink); i++)
        assert_int_equal(sink[i], 'o');
}

/* By a LOCAL_INV on the connection that sends, and on another one, of another loop. */
static void by_its_owner(void **state)
{
    int which = *state ? 0 : 1;

    post(here.qp[which], 9, RDDP_WR_RDMA_WRITE, 0); /* a responder does not send first */
    begin_to_answer();
    post(there.qp[which], 7, RDDP_WR_LOCAL_INV, 0);
    assert_int_equal(told().wr_id, 7);
    assert_false(there.mr->mr->sending);
    peer_reads_on();
}

static void by_its_peer(void **state)
{
    struct rddp_recv_wr receive = {.wr_id = 8};

    (void)state;
    assert_int_equal(rddp_post_recv(there.qp[1], &receive, NULL), 0);
    begin_to_answer();
    post(here.qp[1], 2, RDDP_WR_SEND_WITH_INV, 0);
    assert_int_equal(told().wc_flags, RDDP_WC_WITH_INV);
    assert_false(there.mr->mr->sending);
    peer_reads_on();
}

/* The peer has said nothing since the start-up, so that nothing may be sent to it. */
static void beside_a_silent_peer(void **state)
{
    (void)state;
    post(there.qp[1], 7, RDDP_WR_LOCAL_INV, 0);
    assert_int_equal(told().wr_id, 7);
    assert_false(rddp_mr_is_valid(there.mr));
}

static void *deregister(void *done)
{
    rddp_dereg_mr(there.mr);
    *(atomic_bool *)done = true;
    return NULL;
}

/* A poster has borrowed, entered another epoch, and still holds the endpoint: `borrows` is not set yet. */
static void by_deregistration(void **state)
{
    struct endpoint *endpoint = there.qp[0]->endpoint;
    static atomic_bool done;
    pthread_t thread;

    (void)state;
    begin_to_answer();
    while (!doorbell_try(&endpoint->bell))
        pause_ms(1);
    endpoint->borrows = false;
    assert_int_equal(pthread_create(&thread, NULL, deregister, &done), 0);
    pause_ms(GRACE_MS);
    assert_false(done);
    endpoint_answer(endpoint);
    pthread_join(thread, NULL);
    there.mr = NULL;
    peer_reads_on();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    static int same;
    const struct CMUnitTest tests[] = {
        {"by_its_owner_there", by_its_owner, set_up, tear_down, &same},
        {"by_its_owner_elsewhere", by_its_owner, set_up, tear_down, NULL},
        TEST(by_its_peer),
        TEST(beside_a_silent_peer),
        TEST(by_deregistration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
