/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c - a child inherits objects that do nothing until it uses them, and the parent never notices. */
#include <dlfcn.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

enum {
    CHILD_S = 40,       /* a child that takes longer has hung */
    IDLE_MS = 50,       /* how long the parent is watched */
    IDLE_ROUNDS = 200,  /* rounds of its loop in that time: a loop that spins makes thousands */
    LENGTH = 40000,     /* octets of a message */
    FORKS = 4,          /* during traffic, for each row */
    MINE = 0x666f726b00 /* wr_ids of a child's requests start here */
};

/* ThreadSanitizer ends a child that starts a thread; there, children only close what they inherited. */
#ifdef __SANITIZE_THREAD__
enum { CHILD_HAS_THREADS = 0 };
#else
enum { CHILD_HAS_THREADS = 1 };
#endif

/* --- what the parent does -------------------------------------------------------------------------------------- */

static atomic_uint rounds;

int epoll_wait(int fd, struct epoll_event *event, int events, int timeout_ms)
{
    static _Atomic(void *) real;
    int (*call)(int, struct epoll_event *, int, int);

    if (!real)
        real = dlsym(RTLD_NEXT, "epoll_wait");
    *(void **)&call = real;
    rounds++;
    fork_thread_runs();
    return call(fd, event, events, timeout_ms);
}

static void expect_idle(void)
{
    struct timespec a_while = {.tv_nsec = IDLE_MS * 1000000L};
    unsigned before;

    nanosleep(&a_while, NULL); /* what has just happened is handled */
    before = rounds;
    nanosleep(&a_while, NULL);
    if (rounds - before > IDLE_ROUNDS)
        fail_msg("%u rounds of the loops in %d ms, and nothing to do", rounds - before, IDLE_MS);
}

static void expect_message(struct side *from, struct side *to, unsigned seed)
{
    struct rddp_wc wc;

    pair_pattern(from->buffer, LENGTH, seed);
    pair_receive(to, seed, 0, LENGTH);
    assert_int_equal(pair_post(from, to, RDDP_WR_SEND, seed, 0, LENGTH, 0, RDDP_SEND_SIGNALED), 0);
    wc = pair_completion(to);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.wr_id, seed);
    assert_int_equal(pair_completion(from).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(to->buffer, LENGTH, seed));
}

static void expect_untouched(struct pair *pair)
{
    struct rddp_event *event;

    assert_int_equal(rddp_get_event(pair->client.events, &event), -EAGAIN);
    assert_int_equal(rddp_get_event(pair->server.events, &event), -EAGAIN);
    expect_message(&pair->client, &pair->server, 1);
    expect_message(&pair->server, &pair->client, 2);
    expect_idle();
}

/* --- what children do; an assertion of cmocka would continue with the next test -------------------------- */

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "child: %s:%d: %s\n", __FILE__, __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

/* 0, or what waitpid() tells. */
static int child_status(void (*work)(struct pair *), struct pair *pair)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork_apart(CHILD_S);
    if (!child) {
        work(pair);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static void in_child(void (*work)(struct pair *), struct pair *pair)
{
    int status = child_status(work, pair);

    if (status)
        fail_msg("the child ended with status 0x%x", (unsigned)status);
}

static void just_exit(struct pair *pair)
{
    (void)pair;
}

/* A thread of the parent had a region registered at the time. */
static bool others_registered;

static void close_side(struct side *side)
{
    int error;

    if (side->qp)
        CHECK(!rddp_destroy_qp(side->qp));
    if (side->device)
        CHECK(!rddp_close_device(side->device));
    CHECK(!rddp_dereg_mr(side->mr));
    CHECK(!rddp_destroy_cq(side->cq));
    CHECK(!rddp_destroy_comp_channel(side->channel));
    CHECK(!rddp_destroy_event_channel(side->events));
    error = rddp_dealloc_pd(side->pd);
    CHECK(!error || (error == -EBUSY && others_registered));
    CHECK(rddp_close(side->context) == error);
    free(side->guarded);
}

static void close_all(struct pair *pair)
{
    CHECK(!rddp_destroy_listener(pair->listener));
    close_side(&pair->client);
    close_side(&pair->server);
}

static void close_again(struct pair *pair)
{
    CHECK(!child_status(close_all, pair));
    close_all(pair);
}

static struct rddp_event wait_event(struct side *side, enum rddp_event_type type)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(side->events), .events = POLLIN};
    struct rddp_event *event, copy;

    CHECK(poll(&fd, 1, PAIR_WAIT_MS) == 1);
    CHECK(!rddp_get_event(side->events, &event));
    copy = *event;
    CHECK(copy.type == type);
    rddp_ack_event(event);
    return copy;
}

static struct rddp_wc wait_completion(struct side *side)
{
    struct rddp_wc wc;
    int n;

    while (!(n = rddp_poll_cq(side->cq, 1, &wc)))
        continue;
    CHECK(n == 1);
    return wc;
}

/* The connection is over: posted requests and new ones are flushed, and the application gets the event. */
static void expect_lost(struct side *side)
{
    struct rddp_qp_info info;
    struct rddp_wc wc[8];
    int n;

    CHECK(!rddp_query_qp(side->qp, &info));
    CHECK(info.state == RDDP_QP_ERROR);
    CHECK(strstr(rddp_fault_str(info.fault), "forked"));
    while ((n = rddp_poll_cq(side->cq, 8, wc)))
        CHECK(n > 0);
    CHECK(!pair_post(side, side, RDDP_WR_SEND, MINE, 0, 1, 0, RDDP_SEND_SIGNALED));
    CHECK(rddp_poll_cq(side->cq, 8, wc) == 1);
    CHECK(wc[0].wr_id == MINE && wc[0].status == RDDP_WC_WR_FLUSH_ERR);
    CHECK(wait_event(side, RDDP_EVENT_DISCONNECTED).status == -ECONNABORTED);
}

/* Makes a connection with what the child inherited, and one new queue pair at each end. */
static void talk(struct pair *pair)
{
    struct rddp_wire_attr wire = pair_wire(pair->row, true);
    struct side client = pair->client, server = pair->server;
    struct rddp_qp_attr attr = pair->qp_attr;
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr = pair->addr;
    struct rddp_listener *listener;
    struct rddp_conn_attr conn;

    if (pair->row->packet)
        memcpy(&addr, &loopback, sizeof(loopback));
    memset((char *)&addr + offsetof(struct sockaddr_in, sin_port), 0, sizeof(in_port_t)); /* for IPv6, too */
    listener = rddp_listen(server.events, (struct sockaddr *)&addr, sizeof(addr), 4, &wire, NULL);
    CHECK(listener && !rddp_listener_addr(listener, &addr));
    attr.send_cq = attr.recv_cq = client.cq;
    CHECK((client.qp = rddp_create_qp(client.pd, &attr)));
    attr.send_cq = attr.recv_cq = server.cq;
    CHECK((server.qp = rddp_create_qp(server.pd, &attr)));
    rddp_conn_attr_init(&conn);
    conn.wire = pair_wire(pair->row, false);
    CHECK(!rddp_connect(client.qp, client.events, (struct sockaddr *)&addr, sizeof(addr), &conn));
    CHECK(!rddp_accept(wait_event(&server, RDDP_EVENT_CONNECT_REQUEST).request, server.qp, NULL));
    wait_event(&client, RDDP_EVENT_ESTABLISHED);
    wait_event(&server, RDDP_EVENT_ESTABLISHED);

    pair_pattern(client.buffer, LENGTH, 77);
    memset(server.buffer, 0, LENGTH);
    CHECK(!rddp_post_recv(server.qp, &(struct rddp_recv_wr){.wr_id = 1}, NULL));
    CHECK(!pair_post(&client, &server, RDDP_WR_RDMA_WRITE, 2, 0, LENGTH, 0, RDDP_SEND_SIGNALED));
    CHECK(!pair_post(&client, &server, RDDP_WR_SEND, 3, 0, 0, 0, RDDP_SEND_SIGNALED));
    CHECK(wait_completion(&server).status == RDDP_WC_SUCCESS);
    CHECK(wait_completion(&client).status == RDDP_WC_SUCCESS);
    CHECK(wait_completion(&client).status == RDDP_WC_SUCCESS);
    CHECK(pair_is_pattern(server.buffer, LENGTH, 77));
    CHECK(!rddp_destroy_qp(client.qp));
    CHECK(!rddp_destroy_qp(server.qp));
    CHECK(!rddp_destroy_listener(listener));
}

/* The TCP behind the device is the parent's, and only the parent may send its packets, or take connections over. */
static void expect_no_device(struct pair *pair)
{
    struct rddp_wire_attr wire = pair_wire(pair->row, true);
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_conn_attr conn;
    struct rddp_qp *qp;

    wire.device = pair->server.device;
    CHECK(!rddp_listen(pair->server.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), 4, &wire, NULL));
    CHECK(errno == ENODEV);
    attr.send_cq = attr.recv_cq = pair->client.cq;
    CHECK((qp = rddp_create_qp(pair->client.pd, &attr)));
    rddp_conn_attr_init(&conn);
    conn.wire = pair_wire(pair->row, false);
    conn.wire.device = pair->client.device;
    CHECK(rddp_connect(qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &conn) == -ENODEV);
    CHECK(!rddp_destroy_qp(qp));
}

static void use_all(struct pair *pair)
{
    struct sockaddr_storage addr;
    struct rddp_context *second;

    expect_lost(&pair->client);
    expect_lost(&pair->server);
    if (pair->row->packet || pair->row->hand_off)
        expect_no_device(pair);
    if (!pair->row->packet)
        CHECK(rddp_listener_addr(pair->listener, &addr) == -EBADF);
    talk(pair);
    CHECK((second = rddp_open(NULL)));
    CHECK(!rddp_close(second));
    close_all(pair);
}

static void use_server(struct pair *pair)
{
    expect_lost(&pair->server);
    talk(pair);
    close_all(pair);
}

/* A grandchild inherits what the child has made its own. */
static void use_again(struct pair *pair)
{
    expect_lost(&pair->client);
    CHECK(!rddp_destroy_qp(pair->client.qp));
    pair->client.qp = NULL;
    CHECK(!child_status(use_server, pair));
    use_server(pair);
}

static void (*const work[])(struct pair *) = {just_exit, close_all, close_again, use_all, use_again};
enum { WORKS = CHILD_HAS_THREADS ? 5 : 3 };

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void beside_an_idle_parent(void **state)
{
    for (unsigned i = 0; i < WORKS; i++) {
        in_child(work[i], *state);
        expect_untouched(*state);
    }
}

/* One side sends as long as it may; posts and completions are counted. */
struct traffic {
    struct pair *pair;
    atomic_bool stop;
    atomic_uint posted, wrong;
    unsigned completed;
};

static void poll_some(struct traffic *traffic)
{
    struct rddp_wc wc[16];
    int n = rddp_poll_cq(traffic->pair->client.cq, 16, wc);

    for (int i = 0; i < n; i++)
        traffic->wrong += wc[i].status != RDDP_WC_SUCCESS;
    traffic->wrong += n < 0;
    traffic->completed += n > 0 ? (unsigned)n : 0;
}

static void *send_on(void *arg)
{
    struct traffic *traffic = arg;
    struct pair *pair = traffic->pair;

    fork_thread_runs();
    while (!traffic->stop) {
        int error = pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, traffic->posted, 0,
                              traffic->posted % 8 ? 100 : 100000, 1000000, RDDP_SEND_SIGNALED);

        traffic->wrong += error && error != -ENOMEM;
        traffic->posted += !error;
        poll_some(traffic);
    }
    while (traffic->completed < traffic->posted && !traffic->wrong)
        poll_some(traffic);
    return NULL;
}

/* Registers and deregisters; each call waits for the look-ups of the other threads. */
static void *register_on(void *arg)
{
    struct traffic *traffic = arg;
    static uint8_t buffer[4096];

    fork_thread_runs();
    while (!traffic->stop) {
        struct rddp_mr *mr;

        fork_not_now();
        mr = rddp_reg_mr(traffic->pair->client.pd, buffer, sizeof(buffer), 0);
        traffic->wrong += !mr || rddp_dereg_mr(mr);
        fork_again();
    }
    return NULL;
}

static void beside_traffic(void **state)
{
    struct traffic sending = {.pair = *state}, registering = {.pair = *state};
    struct timespec a_moment = {.tv_nsec = 2000000};
    pthread_t thread[2];
    int status = 0;

    others_registered = true;
    assert_int_equal(pthread_create(&thread[0], NULL, send_on, &sending), 0);
    while (!sending.posted && !sending.wrong)
        nanosleep(&a_moment, NULL);
    assert_int_equal(pthread_create(&thread[1], NULL, register_on, &registering), 0);
    for (unsigned i = 0; i < FORKS && !status; i++) { /* the threads use our stack: nothing fails before they end */
        status = child_status(work[1 + i % (WORKS - 1)], *state);
        nanosleep(&a_moment, NULL);
    }
    sending.stop = registering.stop = true;
    others_registered = false;
    assert_int_equal(pthread_join(thread[0], NULL), 0);
    assert_int_equal(pthread_join(thread[1], NULL), 0);
    assert_int_equal(status, 0);
    assert_int_equal(sending.wrong, 0);
    assert_int_equal(registering.wrong, 0);
    assert_true(sending.posted > 0);
    assert_int_equal(sending.completed, sending.posted);
    expect_untouched(*state);
}

/* Takes an event that the parent has not taken either. */
static void take_completion_event(struct pair *pair)
{
    struct rddp_cq *cq;

    CHECK(!rddp_get_cq_event(pair->server.channel, &cq, NULL));
    CHECK(cq == pair->server.cq);
    rddp_ack_cq_events(cq, 1);
    CHECK(rddp_comp_channel_fd(pair->server.channel) >= 0);
    close_all(pair);
}

/* The parent's descriptors report the parent's events only: a child that takes events or closes its copies takes
 * nothing away. */
static void with_an_event_waiting(void **state)
{
    struct pair *pair = *state;
    struct pollfd fd = {.fd = rddp_comp_channel_fd(pair->server.channel), .events = POLLIN};
    struct rddp_cq *cq;

    pair_receive(&pair->server, 5, 0, LENGTH);
    assert_int_equal(rddp_req_notify_cq(pair->server.cq, false), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 5, 0, 100, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    in_child(close_all, pair);
    assert_int_equal(poll(&fd, 1, 0), 1);
    if (CHILD_HAS_THREADS)
        in_child(take_completion_event, pair);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(rddp_get_cq_event(pair->server.channel, &cq, NULL), 0);
    in_child(close_all, pair); /* which needs not acknowledge what its parent took */
    rddp_ack_cq_events(cq, 1);
    assert_int_equal(poll(&fd, 1, 0), 0);
    pair_completion(&pair->server);
    pair_completion(&pair->client);
    expect_untouched(pair);
}

/* A child's event arrives at the descriptor's old number, with its old flags. */
static void event_numbers(struct pair *pair)
{
    struct pollfd fd = {.events = POLLIN};
    struct rddp_cq *cq;
    struct rddp_wc wc;

    fd.fd = pair->client.channel ? rddp_comp_channel_fd(pair->client.channel) : -1;
    CHECK(!poll(&fd, 1, 0));
    CHECK(rddp_get_cq_event(pair->client.channel, &cq, NULL) == -EAGAIN);
    CHECK(!rddp_req_notify_cq(pair->client.cq, false));
    CHECK(!pair_post(&pair->client, &pair->client, RDDP_WR_SEND, MINE, 0, 1, 0, 0));
    CHECK(poll(&fd, 1, PAIR_WAIT_MS) == 1);
    CHECK(!rddp_get_cq_event(pair->client.channel, &cq, NULL) && cq == pair->client.cq);
    rddp_ack_cq_events(cq, 1);
    while (rddp_poll_cq(pair->client.cq, 1, &wc) == 1)
        CHECK(wc.status == RDDP_WC_WR_FLUSH_ERR);
    close_all(pair);
}

static int event_fd[3];

static void same_numbers(struct pair *pair)
{
    CHECK(rddp_comp_channel_fd(pair->client.channel) == event_fd[0]);
    CHECK(rddp_event_channel_fd(pair->client.events) == event_fd[1]);
    CHECK(rddp_event_channel_fd(pair->server.events) == event_fd[2]);
    CHECK(fcntl(event_fd[0], F_GETFL) & O_NONBLOCK);
    event_numbers(pair);
}

static void numbers_stay(void **state)
{
    struct pair *pair = *state;

    event_fd[0] = rddp_comp_channel_fd(pair->client.channel);
    event_fd[1] = rddp_event_channel_fd(pair->client.events);
    event_fd[2] = rddp_event_channel_fd(pair->server.events);
    assert_int_equal(fcntl(event_fd[0], F_SETFL, O_NONBLOCK), 0);
    in_child(same_numbers, pair);
    expect_untouched(pair);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(beside_an_idle_parent),
        PAIR_TEST(beside_traffic),
        PAIR_TEST(with_an_event_waiting),
        PAIR_TEST(numbers_stay),
    };

    return pair_run("fork", tests, CHILD_HAS_THREADS ? 4 : 3, true);
}
