/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turns.c - the order in which messages are sent, which requests wait, and the effect of local errors. */
#include "base/container.h"
#include "tests/lib/stage.h"

/* --- what waits, and whose turn it is ------------------------------------------------------------------------ */

/* RDMAP-6.1-01: at most ORD Reads are outstanding, and the requests behind them keep their order. */
static void test_ord(void **state)
{
    struct qp_attr attr = side_attr(&e);

    (void)state;
    for (uint32_t ord = 1; ord <= 4; ord++) {
        side_fini(&s);
        side_init(&s, &attr);
        qp_connect(&s.qp, 0, ord, 0);
        for (uint64_t i = 0; i < 6; i++)
            assert_int_equal(request(i, RDDP_WR_RDMA_READ, 0, 8), 0);
        assert_int_equal(request(6, RDDP_WR_SEND, 0, 8), 0);
        for (uint32_t i = 0; i < ord; i++)
            expect_op(SEG_READ_REQ);
        for (uint64_t i = 0; i < 6; i++) {
            expect_idle();
            assert_int_equal(answer_read(8), FAULT_NONE);
            expect_wc(&s.send_cq, i, RDDP_WC_SUCCESS);
            if (i + ord < 6)
                expect_op(SEG_READ_REQ);
            if (i + ord == 5)
                expect_op(SEG_SEND); /* the Send waits only until the Reads before it are sent */
        }
        expect_wc(&s.send_cq, 6, RDDP_WC_SUCCESS);
    }
}

/* With an ORD of 0 a Read could never be sent: it fails instead of waiting forever. */
static void test_no_ord(void **state)
{
    struct qp_attr attr = side_attr(&e);
    struct emit out;

    (void)state;
    side_fini(&s);
    side_init(&s, &attr);
    qp_connect(&s.qp, 4, 0, 0);
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 8), 0);
    assert_int_equal(request(2, RDDP_WR_RDMA_READ, 0, 8), 0);
    expect_op(SEG_SEND);
    assert_true(qp_has_output(&s.qp));
    assert_false(qp_emit(&s.qp, &out, 100, 100));
    assert_int_equal(s.qp.state, QP_ERROR);
    assert_int_equal(s.qp.note.fault, FAULT_NO_ORD);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 2, RDDP_WC_LOC_QP_OP_ERR);
}

/* A fenced request waits for the responses to earlier Reads, and for nothing else. RDMAP-5.5-03 */
static void test_fence(void **state)
{
    static const struct {
        enum rddp_wr_opcode opcode;
        enum seg_op op;
    } rows[] = {{RDDP_WR_SEND, SEG_SEND}, {RDDP_WR_RDMA_WRITE, SEG_WRITE}, {RDDP_WR_RDMA_READ, SEG_READ_REQ}};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        assert_int_equal(request(1, RDDP_WR_RDMA_READ, 0, 8), 0);
        assert_int_equal(request(2, RDDP_WR_RDMA_READ, 0, 9), 0);
        assert_int_equal(request(3, rows[i].opcode, RDDP_SEND_FENCE, 10), 0);
        assert_int_equal(request(4, RDDP_WR_SEND, 0, 8), 0);
        expect_op(SEG_READ_REQ);
        expect_op(SEG_READ_REQ);
        expect_idle();
        assert_int_equal(answer_read(8), FAULT_NONE);
        expect_idle();
        peer_reads((uint32_t)i + 1, 5); /* a response to the peer does not wait */
        expect_op(SEG_READ_RESP);
        expect_idle();
        assert_int_equal(answer_read(9), FAULT_NONE);
        expect_op(rows[i].op);
        expect_op(SEG_SEND);
        if (rows[i].op == SEG_READ_REQ)
            assert_int_equal(answer_read(10), FAULT_NONE);
        for (uint64_t id = 1; id <= 4; id++)
            expect_wc(&s.send_cq, id, RDDP_WC_SUCCESS);
        /* Without an outstanding Read a fence does not wait. */
        assert_int_equal(request(5, RDDP_WR_SEND, 0, 8), 0);
        assert_int_equal(request(6, RDDP_WR_SEND, RDDP_SEND_FENCE, 8), 0);
        expect_op(SEG_SEND);
        expect_op(SEG_SEND);
        expect_wc(&s.send_cq, 5, RDDP_WC_SUCCESS);
        expect_wc(&s.send_cq, 6, RDDP_WC_SUCCESS);
    }
}

/* Requests and responses alternate, message by message. RDMAP-5.2-01, RDMAP-5.5-05. */
static void test_turns(void **state)
{
    uint32_t responses = 0, sends = 0;

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        peer_reads(i + 1, 20 + i);
        assert_int_equal(request(i, RDDP_WR_SEND, 0, 20), 0);
    }
    for (int message = 0; message < 8; message++) {
        struct emit first = leave(&s, 15), second = leave(&s, 15);

        assert_int_equal(first.seg.op, second.seg.op); /* one message at a time */
        assert_true(second.seg.flags & SEG_LAST);
        if (first.seg.op == SEG_READ_RESP)
            assert_int_equal(first.seg.length + second.seg.length, 20 + responses++);
        else
            sends++;
        assert_true(responses - sends + 1 <= 2);
    }
    assert_int_equal(responses, 4);
    expect_idle();
}

/* A sent response frees its IRD place, so later rounds work like the first. RDMAP-5.2-03 */
static void test_ird_again(void **state)
{
    uint32_t msn = 1;

    (void)state;
    s.qp.answers.head = s.qp.answers.tail = msn = UINT32_MAX - 5;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++)
            peer_reads(msn++, 10);
        for (int i = 0; i < 4; i++)
            expect_op(SEG_READ_RESP);
        expect_idle();
    }
}

/* --- LOCAL_INV ----------------------------------------------------------------------------------------------- */

static void test_local_invalidate(void **state)
{
    struct mr *gone = engine_region(&e, 10, 0);
    const struct rddp_sge sge = piece_of(gone, 0, 10);
    struct emit out;

    (void)state;
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
    assert_int_equal(request(2, RDDP_WR_RDMA_READ, 0, 8), 0);
    assert_int_equal(post_remote(&s, 3, RDDP_WR_LOCAL_INV, RDDP_SEND_SIGNALED | RDDP_SEND_FENCE, NULL, 0, gone->key, 0),
                     0);
    assert_int_equal(request(4, RDDP_WR_SEND, 0, 5), 0);
    expect_op(SEG_SEND);
    expect_op(SEG_READ_REQ);
    expect_idle(); /* the LOCAL_INV is fenced */
    assert_true(gone->valid);
    assert_int_equal(answer_read(8), FAULT_NONE);
    assert_true(qp_has_output(&s.qp));
    expect_op(SEG_SEND);
    assert_false(gone->valid);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    assert_int_equal(expect_wc(&s.send_cq, 3, RDDP_WC_SUCCESS).opcode, RDDP_WC_LOCAL_INV);
    expect_wc(&s.send_cq, 4, RDDP_WC_SUCCESS);
    /* A LOCAL_INV with nothing to send after it completes, too; invalidating a key twice is a local error. */
    remote->valid = true;
    assert_int_equal(post_remote(&s, 5, RDDP_WR_LOCAL_INV, RDDP_SEND_SIGNALED, NULL, 0, remote->key, 0), 0);
    assert_true(qp_has_output(&s.qp));
    assert_false(qp_emit(&s.qp, &out, 10, 10));
    expect_wc(&s.send_cq, 5, RDDP_WC_SUCCESS);
    expect_idle();
    assert_int_equal(post_remote(&s, 6, RDDP_WR_LOCAL_INV, 0, NULL, 0, gone->key, 0), 0);
    assert_false(qp_emit(&s.qp, &out, 10, 10));
    assert_int_equal(s.qp.state, QP_ERROR);
    assert_int_equal(s.qp.note.fault, FAULT_LOCAL_KEY);
    assert_int_equal(s.qp.note.key, gone->key);
    expect_wc(&s.send_cq, 6, RDDP_WC_LOC_PROT_ERR);
}

/* --- mistakes ------------------------------------------------------------------------------------------------ */

/* A request with bad memory completes with a protection error. Earlier requests complete with success if they were
 * sent, and otherwise are flushed like the later ones. */
static void test_bad_memory(void **state)
{
    static const struct {
        enum rddp_wr_opcode opcode;
        enum { NO_KEY, DEAD, FOREIGN, BEFORE, BEHIND, WRAPS, NOT_WRITABLE } what;
    } rows[] = {
        {RDDP_WR_SEND, NO_KEY},          {RDDP_WR_SEND, DEAD},
        {RDDP_WR_SEND, FOREIGN},         {RDDP_WR_SEND, BEFORE},
        {RDDP_WR_SEND, BEHIND},          {RDDP_WR_SEND, WRAPS},
        {RDDP_WR_RDMA_WRITE, DEAD},      {RDDP_WR_RDMA_WRITE, BEHIND},
        {RDDP_WR_SEND_WITH_INV, BEHIND}, {RDDP_WR_RDMA_READ, DEAD},
        {RDDP_WR_RDMA_READ, FOREIGN},    {RDDP_WR_RDMA_READ, BEHIND},
        {RDDP_WR_RDMA_READ, WRAPS},      {RDDP_WR_RDMA_READ, NOT_WRITABLE},
    };
    struct mr *dead = engine_region(&e, 64, ALL_ACCESS), *foreign = engine_region(&e, 64, ALL_ACCESS);
    struct mr *sealed = engine_region(&e, 64, 0), *zero = engine_region(&e, 64, ALL_ACCESS | RDDP_ACCESS_ZERO_BASED);

    (void)state;
    dead->valid = false;
    foreign->pd = &e.other_pd;
    for (size_t i = 0; i < countof(rows); i++) {
        const struct rddp_sge bad[] = {
            [NO_KEY] = {remote->start, 8, 0xdead},
            [DEAD] = piece_of(dead, 0, 8),
            [FOREIGN] = piece_of(foreign, 0, 8),
            [BEFORE] = {remote->start - 1, 8, remote->key},
            [BEHIND] = piece_of(remote, STAGE_REMOTE - 7, 8),
            [WRAPS] = {UINT64_MAX - 3, 8, zero->key},
            [NOT_WRITABLE] = piece_of(sealed, 0, 8),
        };
        bool is_read = rows[i].opcode == RDDP_WR_RDMA_READ;
        const struct rddp_sge sge[] = {bad[rows[i].what], piece_of(remote, 0, 8)};
        struct emit out;

        side_fini(&s);
        side_open(&s, &e, NULL);
        assert_int_equal(request(1, RDDP_WR_SEND, 0, 10), 0);
        assert_int_equal(request(2, RDDP_WR_SEND, 0, 10), 0);
        assert_int_equal(post_remote(&s, 3, rows[i].opcode, 0, sge, is_read ? 1 : 2, 5, 0), 0);
        assert_int_equal(request(4, RDDP_WR_SEND, 0, 10), 0);
        assert_int_equal(post_recv(&s, 5, NULL, 0), 0);
        leave(&s, 100);
        assert_true(qp_emit(&s.qp, &out, 100, 100)); /* request 2 is still being sent */
        qp_queued(&s.qp, s.qp.tx_pos + 50);
        assert_true(qp_has_output(&s.qp));
        assert_false(qp_emit(&s.qp, &out, 100, 100));
        assert_int_equal(s.qp.state, QP_ERROR);
        assert_int_equal(s.qp.note.fault, FAULT_LOCAL_KEY);
        assert_int_equal(s.qp.note.key, sge[0].lkey);
        assert_int_equal(s.qp.note.offset, sge[0].addr);
        expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
        expect_wc(&s.send_cq, 2, RDDP_WC_WR_FLUSH_ERR);
        assert_int_equal(expect_wc(&s.send_cq, 3, RDDP_WC_LOC_PROT_ERR).vendor_err, FAULT_LOCAL_KEY);
        expect_wc(&s.send_cq, 4, RDDP_WC_WR_FLUSH_ERR);
        expect_wc(&s.recv_cq, 5, RDDP_WC_WR_FLUSH_ERR);
    }
}

/* A piece that ends outside its region fails before its first octet is sent. The keys of empty pieces are not
 * checked. */
static void test_bad_end(void **state)
{
    const struct rddp_sge empty = {.addr = 1, .lkey = 0xdead}, piece = piece_of(remote, STAGE_REMOTE - 50, 51);
    struct emit out;

    (void)state;
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &empty, 1), 0);
    expect_op(SEG_SEND);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(post_remote(&s, 2, RDDP_WR_RDMA_READ, 0, &empty, 1, 0, 0), 0);
    expect_op(SEG_READ_REQ);
    assert_int_equal(post(&s, 3, RDDP_WR_RDMA_WRITE, 0, &piece, 1), 0);
    assert_false(qp_emit(&s.qp, &out, 10, 10));
    assert_int_equal(s.qp.state, QP_ERROR);
}

/* The region of a response is invalidated before or during the response, or loses its access right. RDMAP-7.1-01:
 * the fault note has all fields of the request. */
static void test_response_gone(void **state)
{
    enum { BEFORE, IN_THE_MIDDLE, RIGHT, WAYS };
    struct mr *source = engine_region(&e, 100, ALL_ACCESS);
    struct emit out;

    (void)state;
    for (int way = BEFORE; way < WAYS; way++) {
        side_fini(&s);
        side_open(&s, &e, NULL);
        source->valid = true;
        source->access = ALL_ACCESS;
        assert_int_equal(arrive(&s, read_of(source, 1, 100)), FAULT_NONE);
        assert_int_equal(post_recv(&s, 1, NULL, 0), 0);
        if (way == IN_THE_MIDDLE)
            assert_int_equal(leave(&s, 50).seg.op, SEG_READ_RESP);
        if (way == RIGHT)
            source->access = LOCAL;
        else
            source->valid = false;
        assert_true(qp_has_output(&s.qp));
        assert_false(qp_emit(&s.qp, &out, 50, 50));
        assert_int_equal(s.qp.state, QP_ERROR);
        assert_int_equal(s.qp.note.fault, way == RIGHT ? FAULT_RIGHT : FAULT_KEY);
        assert_int_equal(s.qp.note.op, SEG_READ_REQ);
        assert_int_equal(s.qp.note.key, source->key);
        assert_int_equal(s.qp.note.offset, source->start);
        assert_int_equal(s.qp.note.length, 100);
        assert_int_equal(s.qp.note.msg, 1);
        assert_int_equal(s.qp.note.read.sink_key, 0xaaaa0001);
        expect_wc(&s.recv_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(test_ord),        STAGE_TEST(test_no_ord),    STAGE_TEST(test_fence),
        STAGE_TEST(test_turns),      STAGE_TEST(test_ird_again), STAGE_TEST(test_local_invalidate),
        STAGE_TEST(test_bad_memory), STAGE_TEST(test_bad_end),   STAGE_TEST(test_response_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
