/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_link.c - a link that is polled all the time leaves the epoll set, and is back before anything sleeps there. */
#include <poll.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/manual.h"

enum { POLLS_MAX = 1000000, TURNS = 10 };

static uint64_t received;

/* Until the initiator has sent something, the responder may not (RFC 5044 7.1.2). */
static void speak_first(void)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .remote_addr = (uintptr_t)there.memory}, *bad;

    wr.rkey = rddp_mr_key(there.mr);
    assert_int_equal(rddp_post_send(here.qp, &wr, &bad), 0);
}

static int set_up(void **state)
{
    received = 0;
    manual_open(state);
    speak_first();
    return 0;
}

/* A message from `there`, for which a receive is posted. */
static void send_one(void)
{
    struct rddp_sge sge = {(uintptr_t)there.memory, MANUAL_SIZE, rddp_mr_key(there.mr)};
    struct rddp_sge to = {(uintptr_t)here.memory, MANUAL_SIZE, rddp_mr_key(here.mr)};
    struct rddp_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND}, *bad;

    assert_int_equal(rddp_post_recv(here.qp, &receive, &bad_receive), 0);
    assert_int_equal(rddp_post_send(there.qp, &wr, &bad), 0);
}

/* Polls until the link rests; a message makes it the one that is asked. */
static void poll_until_it_rests(void)
{
    struct loop *loop = here.context->loop;
    struct rddp_wc wc;
    uint64_t before = received;

    send_one();
    for (int i = 0; i < POLLS_MAX && (received == before || !loop->resting); i++)
        received += (uint64_t)rddp_poll_cq(here.cq, 1, &wc);
    assert_int_equal(received, before + 1);
    assert_non_null(loop->resting);
}

/* Without a poll that drives the loop: only what the caller does brings the completion. */
static bool has_come(void)
{
    struct rddp_wc wc;

    return cq_poll(&here.cq->cq, &wc, 1) == 1 && ++received;
}

static void a_sleeper_is_woken(void **state)
{
    (void)state;
    for (int i = 0; i < TURNS; i++) {
        poll_until_it_rests();
        send_one();
        while (!has_come())
            assert_int_equal(rddp_progress(here.context, -1), 0);
        assert_null(here.context->loop->resting);
    }
}

static void rounds_without_sleep(void **state)
{
    (void)state;
    poll_until_it_rests();
    send_one();
    for (int i = 0; i < PAIR_WAIT_MS && !has_come(); i++) {
        poll(NULL, 0, 1);
        assert_int_equal(rddp_progress(here.context, 0), 0);
    }
    assert_int_equal(received, 2);
}

static void at_the_descriptor(void **state)
{
    struct pollfd fd = {.events = POLLIN};
    struct rddp_wc wc;

    (void)state;
    poll_until_it_rests();
    fd.fd = rddp_progress_fd(here.context);
    send_one();
    while (!has_come()) {
        assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
        assert_int_equal(rddp_progress(here.context, 0), 0);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    assert_null(here.context->loop->resting); /* its application may sleep at the descriptor at any time */
}

/* The peer ends the connection of a link that rests: a poller sees it, and then the application that waits for it. */
static void the_end_is_seen(void **state)
{
    (void)state;
    poll_until_it_rests();
    assert_int_equal(rddp_disconnect(there.qp), 0);
    manual_event(&here, RDDP_EVENT_DISCONNECTED);
    manual_event(&there, RDDP_EVENT_DISCONNECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sleeper_is_woken, set_up, manual_close),
        cmocka_unit_test_setup_teardown(rounds_without_sleep, set_up, manual_close),
        cmocka_unit_test_setup_teardown(at_the_descriptor, set_up, manual_close),
        cmocka_unit_test_setup_teardown(the_end_is_seen, set_up, manual_close),
    };

    return cmocka_run_group_tests_name("polled_link", tests, NULL, NULL);
}
