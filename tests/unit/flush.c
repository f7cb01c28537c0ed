/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.c - how a failing queue pair completes each request, and what it leaves alone: RDMAP-6.2-01, RDMAP-8-02. */
#include <errno.h>

#include "base/container.h"
#include "tests/lib/stage.h"

/* RDMAP-6.2-01: outstanding operations complete in error, once and in order, and the culprit with its own status. */
static void test_flush(void **state)
{
    const struct fault_note lost = {.fault = FAULT_LOST}, later = {.fault = FAULT_CRC};
    struct emit out;

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(post_recv(&s, 100 + i, &(struct rddp_sge){remote->start, 8, remote->key}, 1), 0);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 4, 0)), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send(2, 0, data, 4, 0), 500, 600), FAULT_NONE);
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 10), 0);
    leave(&s, 100);
    assert_int_equal(request(2, RDDP_WR_SEND, 0, 10), 0); /* left, but still in the socket */
    assert_true(qp_emit(&s.qp, &out, 100, 100));
    qp_queued(&s.qp, 1000);
    assert_int_equal(request(3, RDDP_WR_RDMA_READ, 0, 10), 0);
    assert_true(qp_emit(&s.qp, &out, 100, 100));
    qp_queued(&s.qp, 1100);
    assert_int_equal(request(4, RDDP_WR_SEND, 0, 100), 0); /* half of it has left */
    assert_true(qp_emit(&s.qp, &out, 50, 50));
    qp_queued(&s.qp, 1200);
    assert_int_equal(request(5, RDDP_WR_SEND, 0, 10), 0);

    assert_int_equal(arrive_at(&s, read_of(local, 1, 8), 700, 800),
                     FAULT_NONE); /* not permitted, which stays unnoticed */
    qp_blame(&s.qp, SEG_READ_REQ, RDDP_WC_REM_ACCESS_ERR);
    qp_fail(&s.qp, &lost);
    qp_fail(&s.qp, &later);
    assert_int_equal(s.qp.state, QP_ERROR);
    assert_int_equal(s.qp.note.fault, FAULT_LOST);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(expect_wc(&s.send_cq, 2, RDDP_WC_WR_FLUSH_ERR).vendor_err, FAULT_LOST);
    expect_wc(&s.send_cq, 3, RDDP_WC_REM_ACCESS_ERR);
    expect_wc(&s.send_cq, 4, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.send_cq, 5, RDDP_WC_WR_FLUSH_ERR);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(expect_wc(&s.recv_cq, 100 + i, RDDP_WC_WR_FLUSH_ERR).vendor_err, FAULT_LOST);

    assert_false(qp_has_output(&s.qp));
    assert_false(qp_emit(&s.qp, &out, 100, 100));
    qp_queued(&s.qp, 1300);
    qp_sent(&s.qp, 2000);
    assert_int_equal(arrive_at(&s, a_send(3, 0, data, 8, SEG_LAST), 900, 910), FAULT_NONE);
    assert_int_equal(qp_advance(&s.qp, 5000), FAULT_NONE);
    expect_quiet(&s.send_cq);
    expect_quiet(&s.recv_cq);
    /* From here on each request is flushed at once, any number of times. */
    for (uint64_t i = 0; i < 40; i++) {
        assert_int_equal(request(200 + i, RDDP_WR_SEND, 0, 1), 0);
        assert_int_equal(post_recv(&s, 300 + i, NULL, 0), 0);
        expect_wc(&s.send_cq, 200 + i, RDDP_WC_WR_FLUSH_ERR);
        expect_wc(&s.recv_cq, 300 + i, RDDP_WC_WR_FLUSH_ERR);
    }
    assert_int_equal(request(1, RDDP_WR_SEND, 1 << 4, 1), -EINVAL);
}

/* With one CQ for both, the sends are flushed before the receives; and no Read of the peer waits for an answer any
 * more. */
static void test_flush_order(void **state)
{
    struct qp_attr attr = side_attr(&e);

    (void)state;
    attr.send_cq = attr.recv_cq = &s.send_cq;
    stage_again(&attr);
    assert_int_equal(arrive(&s, read_of(remote, 1, 8)), FAULT_NONE);
    assert_int_not_equal(s.qp.answers.tail, s.qp.answers.head);
    assert_int_equal(post_recv(&s, 100, NULL, 0), 0);
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 1), 0);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST});
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.send_cq, 100, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(s.qp.answers.tail, s.qp.answers.head);
}

/* The same in a queue pair that was never connected. */
static void test_flush_idle(void **state)
{
    struct qp_attr attr = side_attr(&e);

    (void)state;
    side_fini(&s);
    side_init(&s, &attr);
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 10), 0);
    assert_int_equal(post_recv(&s, 2, NULL, 0), 0);
    assert_false(qp_has_output(&s.qp));
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_REJECTED});
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.recv_cq, 2, RDDP_WC_WR_FLUSH_ERR);
}

enum { SRQ_DEPTH = 8, TAKEN = 8 };

static int post_shared(struct rq *srq, uint32_t wr_id)
{
    struct rddp_sge sge = piece_of(local, wr_id % STAGE_BUFFERS * STAGE_BUFFER, TAKEN);
    const struct rddp_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    return rq_post(srq, &wr);
}

static void expect_taken(struct side *by, uint32_t wr_id)
{
    expect_wc(&by->recv_cq, wr_id, RDDP_WC_SUCCESS);
    assert_memory_equal(local->base + wr_id % STAGE_BUFFERS * STAGE_BUFFER, data, TAKEN);
}

/* A receive goes to the first message that arrives on any queue pair. A message that is arriving stays whole while its
 * place is posted again. A failing queue pair flushes the receives that it took and leaves the others. RDMAP-8-02. */
static void test_srq(void **state)
{
    static uint64_t space[512];
    static struct side a, b;
    struct qp_attr attr = side_attr(&e);
    struct rq srq;

    (void)state;
    assert_true(rq_size(SRQ_DEPTH, 1) <= sizeof(space));
    rq_init(&srq, &e.pd, SRQ_DEPTH, 1, space);
    attr.srq = &srq;
    side_open(&a, &e, &attr);
    side_open(&b, &e, &attr);
    for (uint32_t i = 0; i < SRQ_DEPTH; i++)
        assert_int_equal(post_shared(&srq, i), 0);
    assert_int_equal(post_shared(&srq, 99), -ENOMEM);
    assert_int_equal(arrive(&a, a_send(1, 0, data, 4, 0)), FAULT_NONE);            /* takes 0 */
    assert_int_equal(arrive(&b, a_send(1, 0, data, TAKEN, SEG_LAST)), FAULT_NONE); /* takes 1 */
    expect_taken(&b, 1);
    assert_int_equal(post_shared(&srq, 10), 0); /* into the place of receive 0, with other memory */
    assert_int_equal(post_shared(&srq, 99), -ENOMEM);
    assert_int_equal(arrive(&a, a_send(1, 4, data + 4, 4, SEG_LAST)), FAULT_NONE);
    assert_int_equal(post_shared(&srq, 99), -ENOMEM); /* complete, but not polled */
    expect_taken(&a, 0);
    assert_int_equal(post_shared(&srq, 11), 0);
    assert_int_equal(arrive_at(&a, a_send(3, 0, data, TAKEN, SEG_LAST), 900, 950), FAULT_NONE); /* takes 2 and 3 */
    assert_int_equal(arrive(&b, a_send(2, 0, data, TAKEN, SEG_LAST)), FAULT_NONE);              /* takes 4 */
    expect_taken(&b, 4);
    qp_fail(&a.qp, &(struct fault_note){.fault = FAULT_LOST});
    expect_wc(&a.recv_cq, 2, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&a.recv_cq, 3, RDDP_WC_WR_FLUSH_ERR);
    expect_quiet(&a.recv_cq);
    for (uint32_t i = 12; i < 15; i++) /* the places of these and of receive 4 */
        assert_int_equal(post_shared(&srq, i), 0);
    assert_int_equal(post_shared(&srq, 99), -ENOMEM);
    for (uint32_t msn = 3; msn <= 9; msn++) {
        static const uint32_t left[] = {5, 6, 7, 10, 11, 12, 13};

        assert_int_equal(arrive(&b, a_send(msn, 0, data, TAKEN, SEG_LAST)), FAULT_NONE);
        expect_taken(&b, left[msn - 3]);
    }
    assert_int_equal(arrive(&b, a_send(10, 0, data, 1, 0)), FAULT_NONE);
    assert_int_equal(arrive_at(&b, a_send(11, 0, data, TAKEN, SEG_LAST), 9000, 9100), FAULT_NO_RECEIVE);
    side_fini(&a);
    side_fini(&b); /* in the middle of a message */
    for (uint32_t i = 0; i < SRQ_DEPTH; i++)
        assert_int_equal(post_shared(&srq, i), 0);
}

/* Which request is blamed when the peer reports an error. */
static void test_blame(void **state)
{
    static const struct {
        enum seg_op op;
        uint64_t culprit; /* 0: none */
    } rows[] = {
        {SEG_SEND, 2}, {SEG_WRITE, 4}, {SEG_READ_REQ, 3}, {SEG_READ_RESP, 0}, {SEG_TERMINATE, 2}, {SEG_OPS, 2},
    };
    const struct rddp_sge sge = piece_of(remote, 0, 100);
    struct emit out;

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        stage_again(NULL);
        assert_int_equal(request(1, RDDP_WR_SEND, 0, 10), 0);
        leave(&s, 100);
        expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
        assert_int_equal(request(2, RDDP_WR_SEND, 0, 10), 0);
        assert_int_equal(request(3, RDDP_WR_RDMA_READ, 0, 10), 0);
        assert_int_equal(post(&s, 4, RDDP_WR_RDMA_WRITE, 0, &sge, 1), 0); /* only its first half has left */
        assert_int_equal(post(&s, 5, RDDP_WR_RDMA_WRITE, 0, &sge, 1), 0);
        for (int k = 0; k < 3; k++)
            assert_true(qp_emit(&s.qp, &out, 50, 50));
        qp_blame(&s.qp, rows[i].op, RDDP_WC_REM_OP_ERR);
        qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_TERMINATED});
        for (uint64_t id = 2; id <= 5; id++)
            expect_wc(&s.send_cq, id, id == rows[i].culprit ? RDDP_WC_REM_OP_ERR : RDDP_WC_WR_FLUSH_ERR);
    }
    /* Nothing has left, so no request can be to blame. */
    stage_again(NULL);
    qp_blame(&s.qp, SEG_SEND, RDDP_WC_REM_OP_ERR);
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 10), 0);
    qp_blame(&s.qp, SEG_SEND, RDDP_WC_REM_OP_ERR);
    qp_blame(&s.qp, SEG_READ_REQ, RDDP_WC_REM_OP_ERR);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_TERMINATED});
    qp_blame(&s.qp, SEG_SEND, RDDP_WC_REM_OP_ERR);
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
}

/* RDMAP-8-02: a CQ without room fails its queue pair at once, whatever the completion is about. */
static void test_cq_full(void **state)
{
    (void)state;
    for (int way = 0; way < 5; way++) {
        stage_again(NULL);
        s.send_cq.cqe = s.recv_cq.cqe = 1;
        assert_int_equal(request(1, RDDP_WR_SEND, 0, 1), 0);
        leave(&s, 10);
        assert_int_equal(post_recv(&s, 2, NULL, 0), 0);
        assert_int_equal(arrive(&s, a_send(1, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
        assert_int_equal(s.qp.state, QP_READY);
        assert_int_equal(post_recv(&s, 3, NULL, 0), 0);
        if (way == 0) { /* a Send has left */
            assert_int_equal(request(4, RDDP_WR_SEND, 0, 1), 0);
            assert_int_equal(request(5, RDDP_WR_SEND, 0, 1), 0);
            leave(&s, 10);
        } else if (way == 1) { /* a Send has come */
            assert_int_equal(arrive(&s, a_send(2, 0, data, 0, SEG_LAST)), FAULT_CQ_FULL);
        } else if (way == 2) { /* a Read is answered */
            assert_int_equal(request(6, RDDP_WR_RDMA_READ, 0, 8), 0);
            leave(&s, 10);
            assert_int_equal(answer_read(8), FAULT_CQ_FULL);
        } else if (way == 3) { /* LOCAL_INV, and nothing leaves behind it */
            assert_int_equal(post_remote(&s, 8, RDDP_WR_LOCAL_INV, RDDP_SEND_SIGNALED, NULL, 0, remote->key, 0), 0);
            assert_int_equal(request(9, RDDP_WR_SEND, 0, 1), 0);
            assert_false(qp_emit(&s.qp, &(struct emit){.spans = 0}, 10, 10));
        } else { /* two messages at once: the second is not delivered after the first failed */
            assert_int_equal(post_recv(&s, 7, NULL, 0), 0);
            assert_int_equal(arrive_at(&s, a_send(3, 0, data, 0, SEG_LAST), 200, 300), FAULT_NONE);
            assert_int_equal(arrive_at(&s, a_send(2, 0, data, 0, SEG_LAST), 100, 200), FAULT_NONE);
            assert_int_equal(qp_advance(&s.qp, 300), FAULT_CQ_FULL);
        }
        assert_int_equal(s.qp.state, QP_ERROR);
        assert_int_equal(s.qp.note.fault, FAULT_CQ_FULL);
        assert_int_equal(s.send_cq.overflowed, way == 0 || way == 2 || way == 3);
        assert_true(s.recv_cq.overflowed); /* of the receive that was left to be flushed, at the latest */
        expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
        expect_quiet(&s.send_cq);
        expect_wc(&s.recv_cq, 2, RDDP_WC_SUCCESS);
        expect_quiet(&s.recv_cq);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(test_flush), STAGE_TEST(test_flush_order), STAGE_TEST(test_flush_idle),
        STAGE_TEST(test_srq),   STAGE_TEST(test_blame),       STAGE_TEST(test_cq_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
