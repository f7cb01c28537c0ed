/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.c - the numbering of messages in one sequence: numbers sent and received, broken messages, processing
 * order. */
#include <errno.h>
#include <string.h>

#include "tests/lib/sequence.h"

/* --- leaving ---------------------------------------------------------------------------------------------------- */

/* SEG-3.3-01, SEG-3.4-16, SEG-3.4-22, SEG-3.4-28, SEG-3.4-44, SEG-3.4-04, SEG-3.4-13, SEG-3.4-15, SEG-3.4-31,
 * SEG-3.4-34, SEG-4-01, SEG-4-02, SEG-4-03: all messages share one sequence that begins at the configured number;
 * the first segment has B and the last E; each operation has its default order. */
static void numbers_out(void **state)
{
    const struct rddp_sge sge = piece_of(remote, 0, 100);
    struct rddp_send_wr wr = {.sg_list = (struct rddp_sge *)&sge, .num_sge = 1, .opcode = RDDP_WR_SEND};
    static const struct {
        uint32_t ask;
        uint16_t order;
    } asked[] = {{0, 0}, {5, 5}, {0xfffe, 0xfffe}, {0xffff, 0xfffe}, {70000, 0xfffe}, {RDDP_ORDER_ANY, 0xffff}};
    struct seg seg;

    (void)state;
    assert_int_equal(request(1, RDDP_WR_SEND, 0, 100), 0);
    assert_int_equal(request(2, RDDP_WR_RDMA_WRITE, 0, 100), 0);
    assert_int_equal(request(3, RDDP_WR_RDMA_READ, 0, 64), 0);
    for (uint32_t i = 0; i < 3; i++) {
        seg = leave(&s, 40).seg;
        assert_int_equal(seg.op, SEG_SEND);
        assert_int_equal(seg.msg, first);
        assert_int_equal(seg.offset, 40 * i);
        assert_int_equal(seg.order, 0);
        assert_int_equal(seg.flags, (i == 0 ? SEG_FIRST : 0) | (i == 2 ? SEG_LAST : 0));
    }
    for (uint32_t i = 0; i < 2; i++) {
        seg = leave(&s, 60).seg;
        assert_int_equal(seg.op, SEG_WRITE);
        assert_int_equal(seg.msg, first + 1);
        assert_int_equal(seg.offset, 0x4000 + 60 * i);
        assert_int_equal(seg.total, 100);
        assert_int_equal(seg.order, SEG_ORDER_ANY);
        assert_int_equal(seg.flags, i ? SEG_LAST : SEG_FIRST);
    }
    seg = leave(&s, 60).seg;
    assert_int_equal(seg.op, SEG_READ_REQ);
    assert_int_equal(seg.msg, 0);
    assert_int_equal(seg.order, 0);
    assert_int_equal(seg.flags, WHOLE);
    wr.send_flags = RDDP_SEND_ORDER;
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        wr.order = asked[i].ask;
        assert_int_equal(qp_post_send(&s.qp, &wr), 0);
        seg = leave(&s, 200).seg;
        assert_int_equal(seg.order, asked[i].order);
        assert_int_equal(seg.msg, 1 + i);
    }
}

/* SEG-2-02: posting accepts the largest offset and control length that a segment header can express and refuses
 * larger ones. Without the sequence numbering, posting refuses control data and RDDP_SEND_ORDER. */
static void refused(void **state)
{
    const struct rddp_sge sge = piece_of(remote, 0, 16);
    struct rddp_send_wr wr = {.sg_list = (struct rddp_sge *)&sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};

    (void)state;
    wr.remote_addr = (uint64_t)UINT32_MAX + 1 - 16;
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    wr.remote_addr++;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    wr.opcode = RDDP_WR_RDMA_READ;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    wr.opcode = RDDP_WR_SEND_WITH_INV;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EOPNOTSUPP);
    wr.opcode = RDDP_WR_SEND;
    wr.control = data;
    for (unsigned n = 0; n < 1030; n++) {
        wr.control_length = (uint16_t)n;
        wr.send_flags = RDDP_SEND_INLINE;
        assert_int_equal(numbering_sequence.check(&s.qp, &wr, 16), n % 4 || n > SEQUENCE_CONTROL_MAX ? -EINVAL : 0);
    }
    stage_again(NULL);
    wr.control_length = 4;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    wr.control_length = 0;
    wr.send_flags = RDDP_SEND_ORDER;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
}

/* SEG-3.4-23 -24 -25 -26: the first segment carries the control data and has less room for payload. */
static void control_out(void **state)
{
    const struct rddp_sge sge = piece_of(remote, 0, 100);
    struct rddp_send_wr wr = {.sg_list = (struct rddp_sge *)&sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE};
    struct seg seg;

    (void)state;
    wr.control = data;
    wr.control_length = 12;
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    seg = leave(&s, 60).seg;
    assert_int_equal(seg.length, 48);
    assert_int_equal(seg.control_length, 12);
    assert_ptr_equal(seg.control, data);
    seg = leave(&s, 60).seg;
    assert_int_equal(seg.length, 52);
    assert_int_equal(seg.control_length, 0);
    assert_int_equal(seg.offset, 48);
}

/* SEG-3.4-14 SEG-3.4-43 SEG-4-04 SEG-4-06: a Read response has the number of its request, no buffer key, and offsets
 * that begin at 0. */
static void response_out(void **state)
{
    (void)state;
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, read_(1, 0, 0)), FAULT_NONE);
    for (uint32_t i = 0; i < 3; i++) {
        struct seg seg = leave(&s, 60).seg;

        assert_int_equal(seg.op, SEG_READ_RESP);
        assert_int_equal(seg.msg, first + i / 2);
        assert_int_equal(seg.offset, i == 1 ? 60 : 0);
        assert_int_equal(seg.key, 0);
        assert_int_equal(seg.order, SEG_ORDER_ANY);
        assert_int_equal(seg.flags, (i == 1 ? 0 : SEG_FIRST) | (i == 0 ? 0 : SEG_LAST));
    }
    expect_idle();
}

/* --- arriving in turn --------------------------------------------------------------------------------------------- */

/* SEG-3.4-13 SEG-3.4-27 SEG-3.4-30 SEG-3.4-31 SEG-3.4-34 SEG-4-03: the fault of a broken message names the wrong
 * field, and the receiver places no octet of the wrong segment. */
static void broken_messages(void **state)
{
    const struct seg open_write = write_(0, 0, 10, 30, SEG_FIRST, 0), open_send = send_(0, 0, 10, SEG_FIRST, 0);
    struct seg other_key = write_(0, 10, 10, 30, 0, 0);
    const struct {
        struct seg before, wrong;
        enum fault fault;
    } cases[] = {
        {open_write, write_(1, 0, 10, 10, WHOLE, 0), FAULT_SEG_NUMBER}, /* a new number before E */
        {open_write, write_(0, 10, 10, 30, SEG_FIRST, 0), FAULT_SEG_BEGIN},
        {open_write, send_(0, 10, 10, 0, 0), FAULT_SEG_TYPE},
        {open_write, other_key, FAULT_SEG_BUFFER},
        {open_write, write_(0, 10, 10, 31, 0, 0), FAULT_SEG_TOTAL},
        {open_write, write_(0, 11, 10, 30, 0, 0), FAULT_SEG_PLACE},
        {open_write, write_(0, 10, 21, 30, 0, 0), FAULT_SEG_TOTAL},        /* beyond the total length */
        {open_write, write_(0, 10, 19, 30, SEG_LAST, 0), FAULT_SEG_TOTAL}, /* E before the total length */
        {open_send, send_(0, 11, 10, 0, 0), FAULT_SEG_OFFSET},
        {open_send, send_(0, 9, 10, 0, 0), FAULT_SEG_OFFSET},
        {write_(0, 0, 10, 10, WHOLE, 0), send_(2, 0, 10, WHOLE, 0), FAULT_SEG_NUMBER},
        {write_(0, 0, 10, 10, WHOLE, 0), send_(0, 0, 10, WHOLE, 0), FAULT_SEG_NUMBER},
        {write_(0, 0, 10, 10, WHOLE, 0), send_(1, 0, 10, SEG_LAST, 0), FAULT_SEG_BEGIN}, /* E before B */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct seg wrong = cases[i].wrong;

        sequence_again(false);
        post_buffers(2);
        if (cases[i].fault == FAULT_SEG_BUFFER)
            wrong.key++;
        assert_int_equal(arrive(&s, cases[i].before), FAULT_NONE);
        engine_remember(&e);
        assert_int_equal(arrive(&s, wrong), cases[i].fault);
        assert_int_equal(s.qp.note.fault, cases[i].fault);
        engine_expect(&e);
    }
    sequence_again(false);
    assert_int_equal(arrive(&s, write_(0, 0, 10, 20, 0, 0)), FAULT_SEG_BEGIN); /* no B */
}

/* SEG-3.4-05, SEG-3.4-26, SEG-3.4-24, SEG-3.4-25: the control data of a Send go to the control buffer of the
 * receive. The receiver drops what does not fit, and control_length counts all octets. */
static void control_in(void **state)
{
    uint8_t buffer[8];
    const struct rddp_sge sge = piece_of(local, 0, 64);
    struct rddp_recv_wr wr = {.sg_list = (struct rddp_sge *)&sge, .num_sge = 1, .control = buffer, .control_size = 6};
    struct seg seg = send_(0, 0, 10, SEG_FIRST, 0), write = write_(1, 0, 8, 8, WHOLE, 0);
    struct rddp_wc wc;

    (void)state;
    memset(buffer, 0xee, sizeof(buffer));
    assert_int_equal(qp_post_recv(&s.qp, &wr), 0);
    seg.control = data + 100;
    seg.control_length = 4;
    assert_int_equal(arrive(&s, seg), FAULT_NONE);
    seg = send_(0, 10, 10, SEG_LAST, 0);
    seg.control = data + 104;
    seg.control_length = 4;
    assert_int_equal(arrive(&s, seg), FAULT_NONE);
    wc = expect_wc(&s.recv_cq, 0, RDDP_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 20);
    assert_int_equal(wc.control_length, 8);
    assert_memory_equal(buffer, data + 100, 6);
    assert_int_equal(buffer[6], 0xee);
    assert_memory_equal(local->base, data, 20);
    memcpy(want_of(&e, remote), remote->base, STAGE_REMOTE);
    memcpy(want_of(&e, local), local->base, STAGE_LOCAL);
    memcpy(want_of(&e, remote), data, 8);
    write.control = data + 200;
    write.control_length = 4;
    assert_int_equal(arrive(&s, write), FAULT_NONE);
    engine_expect(&e);
}

/* SEG-3.4-14 SEG-3.4-43: a Read response must have the number of the oldest Read and the next offset. */
static void response_in(void **state)
{
    struct seg seg;

    (void)state;
    read_into(0);
    read_into(1);
    seg = a_read_response(0, 0, data, 30, SEG_FIRST);
    seg.msg = first + 1;
    assert_int_equal(arrive(&s, seg), FAULT_SEG_NUMBER);
    seg.msg = first;
    seg.flags = 0;
    assert_int_equal(arrive(&s, seg), FAULT_SEG_BEGIN);
    seg.flags = SEG_FIRST;
    assert_int_equal(arrive(&s, seg), FAULT_NONE);
    seg = a_read_response(0, 31, data + 31, 33, SEG_LAST);
    seg.msg = first;
    assert_int_equal(arrive(&s, seg), FAULT_SEG_OFFSET);
    seg.offset = 30;
    assert_int_equal(arrive(&s, seg), FAULT_UNASKED); /* gap 12: E early */
    seg.length = 35;
    assert_int_equal(arrive(&s, seg), FAULT_UNASKED); /* gap 12: too long */
    seg.length = 34;
    seg.data = data + 30;
    expect_quiet(&s.send_cq);
    assert_int_equal(arrive(&s, seg), FAULT_NONE);
    expect_wc(&s.send_cq, 0, RDDP_WC_SUCCESS);
    assert_memory_equal(local->base, data, 64);
}

/* --- order, in turn ------------------------------------------------------------------------------------------------
 */

/* SEG-3.4-17 SEG-3.4-21: a Send completes after the responses to the Reads before it have been sent, and later Sends
 * complete after that Send, unless the receiver allows the order that they ask for. */
static void send_waits_for_read(void **state)
{
    (void)state;
    post_buffers(4);
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, send_(1, 0, 10, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, send_(2, 0, 20, WHOLE, SEG_ORDER_ANY)), FAULT_NONE); /* order not allowed */
    expect_quiet(&s.recv_cq);
    assert_memory_equal(local->base, data, 10); /* the receiver has placed the Send */
    leave(&s, 60);
    expect_quiet(&s.recv_cq);
    leave(&s, 60);
    received(0, 10);
    received(1, 20);

    sequence_again(true);
    post_buffers(4);
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, send_(1, 0, 10, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, send_(2, 0, 20, WHOLE, 1)), FAULT_NONE); /* this Send waits for message 0, not for 1 */
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive(&s, send_(3, 0, 30, WHOLE, 3)), FAULT_NONE);
    received(2, 30);
    expect_quiet(&s.recv_cq);
    leave(&s, 100);
    received(0, 10);
    received(1, 20);
}

/* SEG-3.4-17 SEG-3.4-19: a Write does not change octets that an earlier Read has still to read. */
static void write_waits_for_read(void **state)
{
    uint8_t before[100];
    struct emit out;

    (void)state;
    memcpy(before, remote->base, 100);
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, write_(1, 100, 10, 10, WHOLE, 0)), FAULT_NONE); /* outside the octets of the Read */
    for (int i = 0; i < 2; i++)
        assert_int_equal(arrive(&s, write_(2, 99, 10, 10, WHOLE, 0)), FAULT_NOT_NOW);
    assert_int_equal(remote->base[99], before[99]);
    out = leave(&s, 100);
    assert_memory_equal(out.span[0].at, before, 100);
    assert_int_equal(arrive(&s, write_(2, 99, 10, 10, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(remote->base[99], data[99]);
    assert_int_equal(arrive(&s, read_(3, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, write_(4, 0, 10, 10, WHOLE, 1)), FAULT_NONE); /* order 1 need not wait for message 3 */
    assert_int_equal(arrive(&s, write_(5, 0, 10, 10, WHOLE, 1)), FAULT_NOT_NOW);
    assert_int_equal(arrive(&s, write_(5, 0, 10, 10, WHOLE, SEG_ORDER_ANY)), FAULT_NONE);
}

/* When the window is full of waiting Sends, the receiver refuses the next one for now. */
static void window_full(void **state)
{
    (void)state;
    post_buffers(WINDOW + 1);
    assert_int_equal(arrive(&s, read_(0, 10, 0)), FAULT_NONE);
    for (uint32_t i = 1; i <= WINDOW; i++)
        assert_int_equal(arrive(&s, send_(i, 0, 10, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, send_(WINDOW + 1, 0, 10, WHOLE, 0)), FAULT_NOT_NOW);
    leave(&s, 100);
    assert_int_equal(arrive(&s, send_(WINDOW + 1, 0, 10, WHOLE, 0)), FAULT_NONE);
    for (uint32_t i = 0; i <= WINDOW; i++)
        received(i, 10);
    assert_int_equal(arrive(&s, send_(WINDOW + 2, 0, 10, WHOLE, 0)), FAULT_NO_RECEIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEQUENCE_TEST(numbers_out),          SEQUENCE_TEST(refused),
        SEQUENCE_TEST(control_out),          SEQUENCE_TEST(response_out),
        SEQUENCE_TEST(broken_messages),      SEQUENCE_TEST(control_in),
        SEQUENCE_TEST(response_in),          SEQUENCE_TEST(send_waits_for_read),
        SEQUENCE_TEST(write_waits_for_read), SEQUENCE_TEST(window_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
