/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* immediate.c - immediate data where queues number the messages: the Write they follow, and the receive they take. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/lib/stage.h"

static const uint8_t wire_order[] = {0x00, 0xc0, 0xff, 0xee};

static int post_imm(struct side *from, uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, uint32_t length)
{
    const struct rddp_sge sge = piece_of(remote, 0, length);
    struct rddp_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = (struct rddp_sge *)&sge,
        .num_sge = length ? 1 : 0,
        .opcode = opcode,
        .send_flags = flags | RDDP_SEND_SIGNALED,
        .remote_addr = remote->start + 1024,
        .rkey = (uint32_t)remote->key,
    };

    memcpy(&wr.imm_data, wire_order, 4);
    return qp_post_send(&from->qp, &wr);
}

static struct seg an_immediate(uint32_t msn, uint64_t immediate)
{
    return (struct seg){.op = SEG_IMMEDIATE, .flags = SEG_LAST, .msg = msn, .immediate = immediate};
}

static void expect_imm(uint64_t wr_id, enum rddp_wc_opcode opcode, uint32_t byte_len)
{
    struct rddp_wc wc = expect_wc(&s.recv_cq, wr_id, RDDP_WC_SUCCESS);

    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.byte_len, byte_len);
    assert_int_equal(wc.wc_flags, RDDP_WC_WITH_IMM);
    assert_memory_equal(&wc.imm_data, wire_order, 4);
}

static const uint64_t of_write = 0x00c0ffee00000000, of_send = 0x00c0ffee00000001;

/* EXT-07: a Write of any number of segments, then the immediate data with the number of a Send. The request completes
 * when both have left, and nothing leaves between them. */
static void leaves_behind_its_write(void **state)
{
    struct emit out;

    (void)state;
    assert_int_equal(post_imm(&s, 1, RDDP_WR_RDMA_WRITE_WITH_IMM, RDDP_SEND_SOLICITED, 100), 0);
    assert_int_equal(request(2, RDDP_WR_SEND, 0, 8), 0);
    peer_reads(1, 8);
    for (uint32_t at = 0; at < 100; at += 40) {
        out = leave(&s, 40);
        assert_int_equal(out.seg.op, SEG_WRITE);
        assert_int_equal(out.seg.offset, remote->start + 1024 + at);
        assert_int_equal(out.seg.flags, at == 80 ? SEG_LAST : 0);
        expect_quiet(&s.send_cq);
    }
    assert_true(qp_has_output(&s.qp));
    out = leave(&s, 40);
    assert_int_equal(out.seg.op, SEG_IMMEDIATE);
    assert_int_equal(out.seg.flags, SEG_LAST | SEG_SOLICITED);
    assert_int_equal(out.seg.msg, 1);
    assert_int_equal(out.seg.offset, 0);
    assert_int_equal(out.seg.length, 0);
    assert_int_equal(out.spans, 0);
    assert_true(out.seg.immediate == of_write);
    assert_int_equal(expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS).opcode, RDDP_WC_RDMA_WRITE);
    expect_op(SEG_READ_RESP);
    out = leave(&s, 40);
    assert_int_equal(out.seg.op, SEG_SEND);
    assert_int_equal(out.seg.msg, 2);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    expect_idle();
}

/* A Send with immediate data is an Immediate Data message only; RFC 7306 has no message for one with a payload. */
static void leaves_alone(void **state)
{
    struct emit out;

    (void)state;
    assert_int_equal(post_imm(&s, 1, RDDP_WR_SEND_WITH_IMM, 0, 1), -EOPNOTSUPP);
    assert_int_equal(post_imm(&s, 1, RDDP_WR_SEND_WITH_IMM, 0, 0), 0);
    out = leave(&s, 40);
    assert_int_equal(out.seg.op, SEG_IMMEDIATE);
    assert_int_equal(out.seg.flags, SEG_LAST);
    assert_true(out.seg.immediate == of_send);
    assert_int_equal(expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS).opcode, RDDP_WC_SEND);
    /* An empty Write is sent, too, so that the peer knows that the immediate data follow a Write. */
    assert_int_equal(post_imm(&s, 2, RDDP_WR_RDMA_WRITE_WITH_IMM, RDDP_SEND_INLINE, 0), 0);
    expect_op(SEG_WRITE);
    out = leave(&s, 40);
    assert_int_equal(out.seg.msg, 2);
    assert_true(out.seg.immediate == of_write);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    expect_idle();
}

/* EXT-06: takes a receive in its turn among the Sends, and reports how much the Write before it placed. */
static void takes_a_receive(void **state)
{
    (void)state;
    post_buffers(8);
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start, data, 30, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start + 30, data, 12, SEG_LAST)), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive(&s, an_immediate(1, of_write)), FAULT_NONE);
    expect_imm(0, RDDP_WC_RECV_RDMA_WITH_IMM, 42);
    assert_int_equal(arrive(&s, a_send(2, 0, data, 8, SEG_LAST)), FAULT_NONE);
    assert_int_equal(expect_wc(&s.recv_cq, 1, RDDP_WC_SUCCESS).wc_flags, 0);
    /* After a Send or another Immediate Data message in between, no Write is reported. */
    assert_int_equal(arrive(&s, an_immediate(3, of_write)), FAULT_NONE);
    expect_imm(2, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start, data, 20, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, an_immediate(4, of_send)), FAULT_NONE);
    expect_imm(3, RDDP_WC_RECV, 0);
    assert_int_equal(arrive(&s, an_immediate(5, of_write)), FAULT_NONE);
    expect_imm(4, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
    assert_int_equal(arrive(&s, a_write(0, 0, data, 0, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, an_immediate(6, of_write)), FAULT_NONE);
    expect_imm(5, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start, data, 20, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, a_send(7, 0, data, 8, SEG_LAST)), FAULT_NONE);
    expect_wc(&s.recv_cq, 6, RDDP_WC_SUCCESS);
    assert_int_equal(arrive(&s, an_immediate(8, of_write)), FAULT_NONE);
    expect_imm(7, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
    assert_int_equal(arrive(&s, an_immediate(9, of_write)), FAULT_NO_RECEIVE);
}

/* A response to a Read of ours may arrive in between: it belongs to none of the peer's requests. */
static void response_between(void **state)
{
    (void)state;
    post_buffers(1);
    read_into(1);
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start, data, 20, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, response(1, 0, STAGE_BUFFER)), FAULT_NONE);
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start + 20, data, 1, SEG_LAST)), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(arrive(&s, an_immediate(1, of_write)), FAULT_NONE);
    expect_imm(0, RDDP_WC_RECV_RDMA_WITH_IMM, 21);
}

/* Immediate data that arrive early wait for what is before them. Octets of a Write that arrived early are not counted,
 * and then no length is reported. */
static void out_of_order(void **state)
{
    (void)state;
    post_buffers(3);
    assert_int_equal(arrive_at(&s, an_immediate(1, of_write), 200, 300), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_write(remote->key, remote->start, data, 20, 0), 100, 150), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive_at(&s, a_send(2, 0, data, 4, SEG_LAST), 300, 400), FAULT_NONE);
    assert_int_equal(qp_advance(&s.qp, 150), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive_at(&s, a_write(remote->key, remote->start, data, 5, SEG_LAST), 150, 200), FAULT_NONE);
    assert_int_equal(qp_advance(&s.qp, 400), FAULT_NONE);
    expect_imm(0, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
    expect_wc(&s.recv_cq, 1, RDDP_WC_SUCCESS);
    /* 150 to 200 came in order, but not all of its message did. */
    assert_int_equal(arrive(&s, a_write(remote->key, remote->start, data, 7, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, an_immediate(3, of_write)), FAULT_NONE);
    expect_imm(2, RDDP_WC_RECV_RDMA_WITH_IMM, 7);
}

/* Early octets make the length of the Write that ends behind them unknown, never too small. */
static void unknown_not_wrong(void **state)
{
    (void)state;
    post_buffers(1);
    assert_int_equal(arrive_at(&s, a_write(remote->key, remote->start, data, 20, 0), 100, 150), FAULT_NONE);
    assert_int_equal(qp_advance(&s.qp, 150), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_write(remote->key, remote->start, data, 5, SEG_LAST), 150, 200), FAULT_NONE);
    assert_int_equal(arrive(&s, an_immediate(1, of_write)), FAULT_NONE);
    expect_imm(0, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
}

/* The number of a Send that has begun is taken, and numbers keep counting. */
static void wrong_numbers(void **state)
{
    (void)state;
    post_buffers(2);
    assert_int_equal(arrive(&s, an_immediate(2, of_write)), FAULT_MSN);
    stage_again(NULL);
    post_buffers(2);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 8, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, an_immediate(1, of_write)), FAULT_MO);
    stage_again(NULL);
    post_buffers(2);
    assert_int_equal(arrive(&s, an_immediate(1, of_write)), FAULT_NONE);
    expect_imm(0, RDDP_WC_RECV_RDMA_WITH_IMM, 0);
    assert_int_equal(arrive(&s, an_immediate(1, of_write)), FAULT_MSN);
}

/* A peer without immediate data answers with a Terminate: the request that it blames fails, even while half of it has
 * left. */
static void refused_by_the_peer(void **state)
{
    (void)state;
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 8), 0);
    assert_int_equal(post_imm(&s, 2, RDDP_WR_RDMA_WRITE_WITH_IMM, 0, 8), 0);
    expect_op(SEG_SEND);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_op(SEG_WRITE);
    qp_blame(&s.qp, SEG_IMMEDIATE, RDDP_WC_REM_OP_ERR);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_TERMINATED});
    expect_wc(&s.send_cq, 2, RDDP_WC_REM_OP_ERR);
    expect_quiet(&s.send_cq);
}

/* From one queue pair to another, among other messages. */
static void there(void **state)
{
    static struct side peer;

    (void)state;
    side_open(&peer, &e, NULL);
    post_buffers(8);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(post_imm(&peer, i, RDDP_WR_RDMA_WRITE_WITH_IMM, 0, 100 + i), 0);
        assert_int_equal(post_imm(&peer, 10 + i, RDDP_WR_SEND_WITH_IMM, 0, 0), 0);
    }
    converse(&peer, &s, 33);
    for (unsigned i = 0; i < 4; i++) {
        expect_imm(2 * i, RDDP_WC_RECV_RDMA_WITH_IMM, 100 + i);
        expect_imm(2 * i + 1, RDDP_WC_RECV, 0);
        expect_wc(&peer.send_cq, i, RDDP_WC_SUCCESS);
        expect_wc(&peer.send_cq, 10 + i, RDDP_WC_SUCCESS);
    }
    side_fini(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(leaves_behind_its_write), STAGE_TEST(leaves_alone),        STAGE_TEST(takes_a_receive),
        STAGE_TEST(response_between),        STAGE_TEST(out_of_order),        STAGE_TEST(unknown_not_wrong),
        STAGE_TEST(wrong_numbers),           STAGE_TEST(refused_by_the_peer), STAGE_TEST(there),
    };

    return cmocka_run_group_tests_name("immediate", tests, NULL, NULL);
}
