/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_shut_out.c - while a polled socket is out of the epoll set the system takes nothing into the set. */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drive/thread.h"
#include "endpoint/objects.h"
#include "tests/suite/interposed/full_set.h"
#include "tests/suite/lib/manual.h"

enum {
    WAIT_US = PAIR_WAIT_MS * 1000,
    SOON_US = 8000000, /* in time: the timer of a stream that stalls, after 10 s, asks it anyway */
    POLLS = 200,       /* between two posts */
    FDS = 64,          /* that a process of this test has */
    GONE_MS = 20,      /* the thread has looked by then */
    TIMES = 3,
    PIECE = 1 << 16, /* Writes that fill a stream, ... */
    PIECES_MAX = 400,
};

static struct {
    struct rddp_mr *source, *target;
    uint8_t from[PIECE], to[PIECE];
} large;

static void write_piece(void)
{
    struct rddp_sge sge = {(uintptr_t)large.from, PIECE, rddp_mr_key(large.source)};
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_RDMA_WRITE,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .remote_addr = (uintptr_t)large.to,
                              .rkey = rddp_mr_key(large.target)},
                        *bad;

    assert_int_equal(rddp_post_send(here.qp, &wr, &bad), 0);
}

static void poll_stream_until_out(void)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .remote_addr = (uintptr_t)there.memory}, *bad;
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;
    int received = 0;

    set_refusals = 0;
    wr.rkey = rddp_mr_key(there.mr);
    assert_int_equal(rddp_post_send(here.qp, &wr, &bad), 0); /* the initiator speaks first (RFC 5044 7.1.2) */
    manual_send(&there, &here);
    while (!received || !here.context->loop->resting) {
        received += rddp_poll_cq(here.cq, 1, &wc);
        assert_true(reactor_now_us() - began_us < WAIT_US);
    }
}

/* Who sleeps gets what comes to a socket that is not taken back, and again when it is. */
static void a_sleeper_beside_a_full_set(void **state)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    (void)state;
    poll_stream_until_out();
    set_is_full = true;
    for (int times = 0; times < 2 * TIMES; times++) {
        set_is_full = times < TIMES;
        manual_send(&there, &here);
        while (!cq_poll(&here.cq->cq, &wc, 1)) {
            assert_int_equal(rddp_progress(here.context, 1), 0);
            assert_true(reactor_now_us() - began_us < SOON_US);
        }
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
    assert_true(set_refusals);
}

/* The socket is full when the system does not take it back. Whoever polls on gets it taken back, and all is sent. */
static void a_full_stream_is_taken_back(void **state)
{
    struct loop *other = there.context->loop;
    struct endpoint *endpoint = here.qp->endpoint;
    int posted = 0, done = 0;
    uint64_t began_us;
    struct rddp_wc wc;

    (void)state;
    poll_stream_until_out();
    large.source = rddp_reg_mr(here.pd, large.from, PIECE, RDDP_ACCESS_LOCAL_WRITE);
    large.target = rddp_reg_mr(there.pd, large.to, PIECE, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    loop_lock(other); /* nothing is read for a moment */
    set_is_full = true;
    for (; posted < PIECES_MAX && !endpoint->blocked; posted++) {
        write_piece();
        for (int i = 0; i < POLLS; i++) /* no turn to send is over */
            done += rddp_poll_cq(here.cq, 1, &wc) == 1;
    }
    assert_true(set_refusals);
    set_is_full = false;
    loop_unlock(other);
    for (began_us = reactor_now_us(); done < posted; done += rddp_poll_cq(here.cq, 1, &wc) == 1)
        assert_true(reactor_now_us() - began_us < SOON_US);
    manual_send(&here, &there);
    while (!rddp_poll_cq(there.cq, 1, &wc)) /* all is placed in front of it */
        assert_int_equal(rddp_progress(here.context, 0), 0);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(rddp_dereg_mr(large.source), 0);
    assert_int_equal(rddp_dereg_mr(large.target), 0);
}

/* The peer's socket of that connection. */
static int find_peer(void)
{
    struct sockaddr_storage own = here.qp->endpoint->local, other;

    for (int fd = STDERR_FILENO + 1; fd < FDS; fd++) {
        socklen_t length = sizeof(other);

        memset(&other, 0, sizeof(other));
        if (!getpeername(fd, (struct sockaddr *)&other, &length) && other.ss_family == AF_INET &&
            ((struct sockaddr_in *)&other)->sin_port == ((struct sockaddr_in *)&own)->sin_port)
            return fd;
    }
    return -1;
}

/* It is found to be over by the call that would put its socket back, and must not be asked again: it is freed. */
static void a_stream_ends_when_it_is_not_taken_back(void **state)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .remote_addr = (uintptr_t)there.memory}, *bad;
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    struct rddp_wc wc;

    (void)state;
    poll_stream_until_out();
    loop_lock(there.context->loop);
    assert_int_equal(connect(find_peer(), &none, sizeof(none)), 0); /* a reset */
    loop_unlock(there.context->loop);
    poll(NULL, 0, GONE_MS);
    set_is_full = true;
    wr.rkey = rddp_mr_key(there.mr);
    for (int i = 0; i < 2; i++) /* the second finds it */
        assert_int_equal(rddp_post_send(here.qp, &wr, &bad), 0);
    for (int ms = 0; ms < GONE_MS; ms++) {
        assert_int_equal(rddp_progress(here.context, 0), 0);
        poll(NULL, 0, 1);
        while (rddp_poll_cq(here.cq, 1, &wc) > 0)
            continue;
    }
    set_is_full = false;
    assert_true(set_refusals);
    assert_int_equal(here.context->loop->reactor.timers.count, 0);
}

/* A Send waits for its receive, so the stream is not read, and its end is all that is waited for. Only the set,
 * or the timer in its place, shows that. `once`: the set takes the stream back when that is tried again. */
static void expect_the_end(bool once)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND}, *bad;
    struct pollfd events = {rddp_event_channel_fd(here.events), POLLIN, 0};
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    poll_stream_until_out();
    set_is_full = true;
    while (!once && set_refusals < TIMES) /* no poller has it any more, but the timer */
        assert_int_equal(rddp_progress(here.context, 1), 0);
    assert_int_equal(rddp_post_send(there.qp, &wr, &bad), 0);
    while (!here.qp->endpoint->conn.held || (once && !set_refusals))
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    set_is_full = !once;
    assert_int_equal(rddp_disconnect(there.qp), 0);
    for (; !poll(&events, 1, 0); assert_true(reactor_now_us() - began_us < SOON_US))
        assert_int_equal(once ? rddp_poll_cq(here.cq, 1, &wc) : rddp_progress(here.context, 1), 0);
    manual_event(&here, RDDP_EVENT_DISCONNECTED);
    set_is_full = false;
}

static void the_end_of_a_stream_that_is_not_taken_back(void **state)
{
    (void)state;
    expect_the_end(false);
}

static void the_end_of_a_stream_that_was_not_taken_back_once(void **state)
{
    (void)state;
    expect_the_end(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sleeper_beside_a_full_set, manual_open, manual_close),
        cmocka_unit_test_setup_teardown(a_stream_ends_when_it_is_not_taken_back, manual_open, manual_close),
        cmocka_unit_test_setup_teardown(the_end_of_a_stream_that_is_not_taken_back, manual_open_patient, manual_close),
        cmocka_unit_test_setup_teardown(the_end_of_a_stream_that_was_not_taken_back_once, manual_open_patient,
                                        manual_close),
        cmocka_unit_test_setup_teardown(a_full_stream_is_taken_back, manual_open, manual_close),
    };

    return cmocka_run_group_tests_name("polled_shut_out", tests, NULL, NULL);
}
