/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_events.c - what queue pairs of RoCE report besides completions: that the peer has begun, that the send queue is
 * drained, receives that run out, and why they failed. */
#include <errno.h>
#include <poll.h>

#include "tests/suite/lib/by_hand.h"

static struct hands h;
static struct rddp_async_channel *channels[2];

static void watched(enum rddp_qp_type type)
{
    hands_open(&h, type, "127.0.0.1");
    hands_make(&h);
    for (unsigned i = 0; i < 2; i++) {
        channels[i] = rddp_create_async_channel(h.end[i].context);
        assert_non_null(channels[i]);
        assert_int_equal(rddp_watch_qp(h.end[i].qp, channels[i], &h.end[i]), 0);
    }
}

static bool has_event(unsigned end, int wait_ms)
{
    struct pollfd fd = {.fd = rddp_async_channel_fd(channels[end]), .events = POLLIN};

    return poll(&fd, 1, wait_ms) == 1;
}

static void reports(unsigned end, enum rddp_async_type type)
{
    struct rddp_async_event event;

    assert_true(has_event(end, HAND_WAIT_MS));
    assert_int_equal(rddp_get_async_event(channels[end], &event), 0);
    assert_string_equal(rddp_async_event_str(event.type), rddp_async_event_str(type));
    assert_true(type == RDDP_ASYNC_SRQ_LIMIT_REACHED || event.qp == h.end[end].qp);
    rddp_ack_async_event(&event);
}

static void unwatched(void)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_false(has_event(i, 0));
        assert_int_equal(rddp_destroy_qp(h.end[i].qp), 0);
        h.end[i].qp = NULL;
        assert_int_equal(rddp_destroy_async_channel(channels[i]), 0);
    }
    hands_close(&h);
}

static void steps_to(unsigned end, enum rddp_ib_state state)
{
    struct rddp_ib_attr attr;

    assert_int_equal(rddp_query_ib(h.end[end].qp, &attr), 0);
    attr.state = state;
    assert_int_equal(rddp_modify_qp(h.end[end].qp, &attr), 0);
}

static void is_done(unsigned end)
{
    assert_int_equal(hand_completion(&h.end[end]).status, RDDP_WC_SUCCESS);
}

/* ROCE-RSP-21: in RTR requests are executed and answered. The owner learns once that they come. */
static void established(void **state)
{
    struct rddp_ib_attr attr;

    (void)state;
    watched(RDDP_QPT_RC);
    hand_connect(&h, 0, rddp_qp_num(h.end[1].qp));
    attr = h.ib;
    attr.peer = h.address;
    attr.peer_qpn = rddp_qp_num(h.end[0].qp);
    attr.rq_psn = h.end[0].psn;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTR; attr.state++)
        assert_int_equal(rddp_modify_qp(h.end[1].qp, &attr), 0);
    for (unsigned i = 0; i < 3; i++) {
        hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 3000, 0);
        is_done(0);
    }
    reports(1, RDDP_ASYNC_COMM_EST);
    attr.state = RDDP_IB_RTS;
    attr.sq_psn = h.end[1].psn;
    assert_int_equal(rddp_modify_qp(h.end[1].qp, &attr), 0);
    hand_post(&h.end[1], &h.end[0], RDDP_WR_RDMA_WRITE, 0, 3000, 0); /* in RTS there is no such event */
    is_done(1);
    unwatched();
}

/* Whoever has nothing under way is drained at once; what is posted in SQD begins in RTS. */
static void drained_idle(void **state)
{
    struct rddp_ib_attr attr;
    struct rddp_wc wc;

    (void)state;
    watched(RDDP_QPT_RC);
    hands_connect(&h);
    steps_to(0, RDDP_IB_SQD);
    reports(0, RDDP_ASYNC_SQ_DRAINED);
    hand_fill(h.end[0].buffer, 5000, 1);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 5000, 0);
    hand_post(&h.end[1], &h.end[0], RDDP_WR_RDMA_READ, 10000, 5000, 0); /* the peer's are executed all the while */
    is_done(1);
    hand_check(h.end[1].buffer + 10000, 5000, 1);
    assert_int_equal(rddp_poll_cq(h.end[0].cq, 1, &wc), 0);
    assert_int_equal(rddp_query_ib(h.end[0].qp, &attr), 0);
    assert_int_equal(attr.state, RDDP_IB_SQD);
    steps_to(0, RDDP_IB_SQD);
    steps_to(0, RDDP_IB_RTS);
    is_done(0);
    hand_check(h.end[1].buffer, 5000, 1);
    unwatched();
}

/* Another path that cannot be leaves the queue pair with the one that it has. */
static void drained_without_path(void **state)
{
    struct rddp_ib_attr attr;

    (void)state;
    watched(RDDP_QPT_RC);
    hands_connect(&h);
    steps_to(0, RDDP_IB_SQD);
    reports(0, RDDP_ASYNC_SQ_DRAINED);
    assert_int_equal(rddp_query_ib(h.end[0].qp, &attr), 0);
    attr.peer = hand_address("127.0.0.9", 0);
    attr.local = hand_address("::1", 0);
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), -EADDRNOTAVAIL);
    attr.peer = hand_address("127.0.0.9", 0);
    attr.local = hand_address("127.0.0.8", 0);
    attr.min_rnr_timer = 32; /* which is no code */
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), -EINVAL);
    steps_to(0, RDDP_IB_RTS);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 5000, 0);
    is_done(0);
    hand_post(&h.end[1], &h.end[0], RDDP_WR_RDMA_WRITE, 0, 5000, 0);
    is_done(1);
    unwatched();
}

/* Both begin before the peer can answer the first, because they are in one list. One that is posted when the peer has
 * refused the first does not begin before that has been sent again. */
static void post_two_sends(void)
{
    struct rddp_sge sge = {0, 5000, rddp_mr_key(h.end[0].mr)};
    struct rddp_send_wr second = {
        .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_send_wr first = second;

    first.next = &second;
    assert_int_equal(rddp_post_send(h.end[0].qp, &first, NULL), 0);
}

/* A request that has begun goes on until it is done, and the event comes no sooner. */
static void drained_under_way(void **state)
{
    (void)state;
    watched(RDDP_QPT_RC);
    h.ib.min_rnr_timer = 1;
    hands_connect(&h);
    post_two_sends(); /* for which there is no receive yet */
    steps_to(0, RDDP_IB_SQD);
    assert_false(has_event(0, 20));
    hand_receive(&h.end[1], 1, 0, 5000);
    hand_receive(&h.end[1], 2, 0, 5000);
    is_done(0);
    is_done(0);
    reports(0, RDDP_ASYNC_SQ_DRAINED);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 8, 0);
    steps_to(0, RDDP_IB_RTS);
    is_done(0);
    steps_to(0, RDDP_IB_SQD); /* each time again */
    reports(0, RDDP_ASYNC_SQ_DRAINED);
    is_done(1);
    is_done(1);
    unwatched();
}

/* Completions say why the requester failed; the responder has none, and reports. */
static void failures(void **state)
{
    static const struct {
        unsigned access;
        enum rddp_async_type type;
        enum rddp_wc_status status;
    } failure[] = {
        {RDDP_ACCESS_REMOTE_WRITE, RDDP_ASYNC_QP_ACCESS_ERR, RDDP_WC_REM_ACCESS_ERR},
        {RDDP_ACCESS_REMOTE_READ, RDDP_ASYNC_QP_REQ_ERR, RDDP_WC_REM_INV_REQ_ERR},
    };

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        watched(RDDP_QPT_RC);
        hands_connect(&h);
        assert_int_equal(rddp_set_qp_access(h.end[1].qp, failure[i].access), 0);
        hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 65, HAND_BUFFER - 64);
        assert_int_equal(hand_completion(&h.end[0]).status, failure[i].status);
        reports(1, failure[i].type);
        unwatched();
    }
    watched(RDDP_QPT_RC);
    h.ib.timeout = 8;
    h.ib.retry_cnt = 1;
    hand_connect(&h, 0, rddp_qp_num(h.end[1].qp)); /* which stays in RESET */
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 8, 0);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_RETRY_EXC_ERR);
    unwatched();
}

/* ROCE-RSP-20: the limit of an SRQ, and the last receive that a queue pair in error takes of it. */
static void shared_receives(void **state)
{
    struct rddp_sge sge = {0, 100, 0};
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct rddp_srq *srq;

    (void)state;
    hands_open(&h, RDDP_QPT_RC, "127.0.0.1");
    srq = rddp_create_srq(h.end[1].pd, 8, 1);
    assert_non_null(srq);
    hands_make(&h);
    assert_int_equal(rddp_destroy_qp(h.end[1].qp), 0);
    h.qp.srq = srq;
    h.qp.send_cq = h.qp.recv_cq = h.end[1].cq;
    h.end[1].qp = rddp_create_qp(h.end[1].pd, &h.qp);
    assert_non_null(h.end[1].qp);
    for (unsigned i = 0; i < 2; i++) {
        channels[i] = rddp_create_async_channel(h.end[i].context);
        assert_int_equal(rddp_watch_qp(h.end[i].qp, channels[i], NULL), 0);
    }
    assert_int_equal(rddp_watch_srq(srq, channels[1], NULL), 0);
    hands_connect(&h);
    sge.lkey = rddp_mr_key(h.end[1].mr);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rddp_post_srq_recv(srq, &wr, NULL), 0);
    assert_int_equal(rddp_set_srq_limit(srq, 2), 0);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, 100, 0);
    is_done(1);
    is_done(0);
    reports(1, RDDP_ASYNC_SRQ_LIMIT_REACHED);
    assert_int_equal(rddp_fail_qp(h.end[1].qp), 0);
    reports(1, RDDP_ASYNC_QP_LAST_WQE_REACHED);
    assert_int_equal(rddp_destroy_qp(h.end[1].qp), 0);
    h.end[1].qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(has_event(i, 0));
        if (h.end[i].qp)
            assert_int_equal(rddp_destroy_qp(h.end[i].qp), 0);
        h.end[i].qp = NULL;
        assert_int_equal(rddp_destroy_async_channel(channels[i]), 0);
    }
    hands_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(established),          cmocka_unit_test(drained_idle), cmocka_unit_test(drained_under_way),
        cmocka_unit_test(drained_without_path), cmocka_unit_test(failures),     cmocka_unit_test(shared_receives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
