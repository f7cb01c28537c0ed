/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - control data with Writes, Read Requests and Read Responses: which side gets them, when, and in which
 * buffer. */
#include <string.h>

#include "core/sequence.h"
#include "tests/lib/sequence.h"

enum { BUFFER = 1024, UNTOUCHED = 0xee };

static uint8_t head[BUFFER], buffer[BUFFER + 4];

/* Attaches `length` octets of head[], from `at` on, to the segment. */
static struct seg with(struct seg seg, uint32_t at, uint32_t length)
{
    seg.control = head + at;
    seg.control_length = length;
    return seg;
}

/* Posts a receive of a whole buffer with room for this many octets of control data. */
static void post_size(uint64_t wr_id, uint32_t octets)
{
    static struct rddp_sge sge;
    struct rddp_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .control = buffer, .control_size = octets};

    sge = piece_of(local, 0, STAGE_BUFFER);
    assert_int_equal(qp_post_recv(&s.qp, &wr), 0);
}

static void expect_size(uint32_t octets)
{
    assert_memory_equal(buffer, head, octets);
    for (uint32_t i = octets; i < sizeof(buffer); i++)
        assert_int_equal(buffer[i], UNTOUCHED);
    memset(buffer, UNTOUCHED, sizeof(buffer));
}

static void told(uint64_t wr_id, enum rddp_wc_opcode opcode, uint32_t length, uint32_t control)
{
    struct rddp_wc wc = expect_wc(&s.recv_cq, wr_id, RDDP_WC_SUCCESS);

    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.byte_len, length);
    assert_int_equal(wc.control_length, control);
    assert_int_equal(wc.wc_flags, 0);
}

static int open_control(void **state)
{
    pattern(head, sizeof(head), 9);
    memset(buffer, UNTOUCHED, sizeof(buffer));
    if (sequence_open(state))
        return -1;
    sequence_for_control(false);
    return 0;
}

/* --- Writes ------------------------------------------------------------------------------------------------------ */

/* SEG-3.4-23 -24 -25: lengths about the limits, in rooms of one octet less, the same size, and one octet more; the
 * payload goes to its target, and none of it to the buffer of the receive. */
static void writes(void **state)
{
    static const uint32_t lengths[] = {4, 8, 1016, 1020};
    uint64_t id = 0;
    uint32_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (uint32_t got = lengths[i] - 1; got <= lengths[i] + 1; got++) {
            memset(remote->base, 0, 32);
            engine_remember(&e);
            post_size(id, got);
            assert_int_equal(arrive(&s, with(write_(n++, 8, 10, 10, WHOLE, 0), 0, lengths[i])), FAULT_NONE);
            told(id++, RDDP_WC_RECV_RDMA_WITH_IMM, 10, lengths[i]);
            expect_size(got < lengths[i] ? got : lengths[i]);
            memcpy(want_of(&e, remote) + 8, data + 8, 10);
            engine_expect(&e);
        }
    }
    post_size(id, 0);
    assert_int_equal(arrive(&s, with(write_(n++, 0, 0, 0, WHOLE, 0), 0, 4)), FAULT_NONE); /* no payload and no room */
    told(id, RDDP_WC_RECV_RDMA_WITH_IMM, 0, 4);
    expect_size(0);
    assert_int_equal(arrive(&s, write_(n, 0, 10, 10, WHOLE, 0)), FAULT_NONE); /* no control data: no receive */
    expect_quiet(&s.recv_cq);
    assert_int_equal(s.qp.control_dropped, 0);
}

/* SEG-3.4-04 SEG-3.4-05 SEG-3.4-25: the control data of several segments are joined, whichever segments have any. */
static void segments(void **state)
{
    (void)state;
    post_size(0, BUFFER);
    post_size(1, BUFFER);
    post_size(2, 10);
    assert_int_equal(arrive(&s, with(write_(0, 0, 10, 30, SEG_FIRST, 0), 0, 8)), FAULT_NONE);
    assert_int_equal(arrive(&s, write_(0, 10, 10, 30, 0, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(0, 20, 5, 30, 0, 0), 8, 4)), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive(&s, write_(0, 25, 5, 30, SEG_LAST, 0)), FAULT_NONE);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 30, 12);
    expect_size(12);
    assert_int_equal(arrive(&s, write_(1, 0, 10, 20, SEG_FIRST, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(1, 10, 10, 20, SEG_LAST, 0), 0, 1020)), FAULT_NONE);
    told(1, RDDP_WC_RECV_RDMA_WITH_IMM, 20, 1020);
    expect_size(1020);
    assert_int_equal(arrive(&s, with(write_(2, 0, 10, 20, SEG_FIRST, 0), 0, 8)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(2, 10, 10, 20, SEG_LAST, 0), 8, 8)), FAULT_NONE);
    told(2, RDDP_WC_RECV_RDMA_WITH_IMM, 20, 16);
    expect_size(10);
}

/* A peer may send segments of nothing but control data without end: the count stops at its maximum, and no memory
 * outside the room is written. */
static void endless(void **state)
{
    (void)state;
    post_size(0, 4);
    assert_int_equal(arrive(&s, with(write_(0, 0, 1, 2, SEG_FIRST, 0), 0, 4)), FAULT_NONE);
    s.qp.arriving.ring[s.qp.arriving.next & s.qp.arriving.mask].control_length = UINT32_MAX - 7;
    assert_int_equal(arrive(&s, with(write_(0, 1, 0, 2, 0, 0), 100, 8)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(0, 1, 1, 2, SEG_LAST, 0), 100, 1020)), FAULT_NONE);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 2, UINT32_MAX);
    expect_size(4);
}

/* Without a receive the connection fails as for a Send; a Write with a fault ends with its receive flushed. */
static void no_receive(void **state)
{
    const struct fault_note lost = {.fault = FAULT_LOST};
    struct seg wrong = with(write_(0, 0, 10, 10, WHOLE, 0), 0, 4);

    (void)state;
    engine_remember(&e);
    assert_int_equal(arrive(&s, with(write_(0, 0, 10, 10, WHOLE, 0), 0, 4)), FAULT_NO_RECEIVE);
    assert_int_equal(s.qp.note.op, SEG_WRITE);
    assert_int_equal(arrive(&s, with(read_(0, 10, 0), 0, 4)), FAULT_NO_RECEIVE);
    engine_expect(&e);
    expect_idle();

    post_size(5, BUFFER);
    wrong.key++;
    assert_int_equal(arrive(&s, wrong), FAULT_KEY);
    qp_fail(&s.qp, &lost);
    expect_wc(&s.recv_cq, 5, RDDP_WC_WR_FLUSH_ERR);
    expect_quiet(&s.recv_cq);

    sequence_for_control(false); /* in the middle of one */
    post_size(6, BUFFER);
    post_size(7, BUFFER);
    assert_int_equal(arrive(&s, with(write_(0, 0, 10, 20, SEG_FIRST, 0), 0, 4)), FAULT_NONE);
    qp_fail(&s.qp, &lost);
    expect_wc(&s.recv_cq, 6, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.recv_cq, 7, RDDP_WC_WR_FLUSH_ERR);
    expect_quiet(&s.recv_cq);
    assert_int_equal(s.qp.rq->taken, 0);
}

/* A side that did not ask for control data gets none, and its receives stay posted; the dropped octets are counted. */
static void not_asked_for(void **state)
{
    (void)state;
    sequence_again(false);
    post_size(0, BUFFER);
    assert_int_equal(arrive(&s, with(write_(0, 0, 10, 10, WHOLE, 0), 0, 4)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(read_(1, 10, 0), 0, 1020)), FAULT_NONE);
    leave(&s, 100);
    expect_quiet(&s.recv_cq);
    expect_size(0);
    assert_int_equal(s.qp.control_dropped, 1024);
    assert_int_equal(arrive(&s, with(send_(2, 0, 10, WHOLE, 0), 0, 4)), FAULT_NONE);
    told(0, RDDP_WC_RECV, 10, 4);
    assert_int_equal(s.qp.control_dropped, 1024);
}

/* --- order ------------------------------------------------------------------------------------------------------- */

/* SEG-3.4-17 SEG-3.4-25: whatever the order of its payload, a Write is reported when everything before it is processed.
 * A Send behind it waits for that, unless its order lets it overtake. */
static void in_order(void **state)
{
    (void)state;
    post_buffers(4);
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(1, 200, 10, 10, WHOLE, SEG_ORDER_ANY), 0, 4)), FAULT_NONE);
    assert_memory_equal(remote->base + 200, data + 200, 10);
    assert_int_equal(arrive(&s, send_(2, 0, 20, WHOLE, 0)), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    leave(&s, 60);
    expect_quiet(&s.recv_cq);
    leave(&s, 60);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 4);
    told(1, RDDP_WC_RECV, 20, 0);

    sequence_for_control(true);
    post_buffers(4);
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(1, 200, 10, 10, WHOLE, SEG_ORDER_ANY), 0, 4)), FAULT_NONE);
    assert_int_equal(arrive(&s, send_(2, 0, 20, WHOLE, 1)), FAULT_NONE); /* waits for 0 */
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive(&s, send_(3, 0, 30, WHOLE, 3)), FAULT_NONE); /* waits for none of them */
    told(2, RDDP_WC_RECV, 30, 0);
    expect_quiet(&s.recv_cq);
    leave(&s, 100);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 4);
    told(1, RDDP_WC_RECV, 20, 0);
}

/* A Write that is held behind a Read takes one receive, however often it is presented. */
static void held(void **state)
{
    struct seg seg = with(write_(1, 0, 10, 10, WHOLE, 0), 0, 4);

    (void)state;
    post_size(0, BUFFER);
    post_size(1, BUFFER);
    assert_int_equal(arrive(&s, read_(0, 100, 0)), FAULT_NONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(arrive(&s, seg), FAULT_NOT_NOW);
    expect_quiet(&s.recv_cq);
    leave(&s, 100);
    expect_quiet(&s.recv_cq);
    assert_int_equal(arrive(&s, seg), FAULT_NONE);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 4);
    expect_size(4);
    assert_int_equal(arrive(&s, with(write_(2, 0, 10, 10, WHOLE, 0), 0, 8)), FAULT_NONE);
    told(1, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 8);
}

/* More control data wait than there is room for: the stream waits, too. */
static void window_full(void **state)
{
    (void)state;
    post_buffers(WINDOW + 1);
    assert_int_equal(arrive(&s, read_(0, 10, 0)), FAULT_NONE);
    for (uint32_t i = 1; i <= WINDOW; i++)
        assert_int_equal(arrive(&s, with(write_(i, 100, 10, 10, WHOLE, 0), 0, 4)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(write_(WINDOW + 1, 100, 10, 10, WHOLE, 0), 0, 4)), FAULT_NOT_NOW);
    leave(&s, 100);
    assert_int_equal(arrive(&s, with(write_(WINDOW + 1, 100, 10, 10, WHOLE, 0), 0, 4)), FAULT_NONE);
    for (uint32_t i = 0; i <= WINDOW; i++)
        told(i, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 4);
    assert_int_equal(arrive(&s, with(write_(WINDOW + 2, 100, 10, 10, WHOLE, 0), 0, 4)), FAULT_NO_RECEIVE);
}

/* SEG-1-04 SEG-3.4-25: the payload of an early segment is placed at once; its control data wait for their turn and
 * arrive once. */
static void early(void **state)
{
    struct seg seg[] = {
        with(write_(0, 0, 10, 10, WHOLE, 0), 0, 4),
        with(write_(1, 10, 10, 20, SEG_FIRST, SEG_ORDER_ANY), 4, 8),
        with(write_(1, 20, 10, 20, SEG_LAST, SEG_ORDER_ANY), 12, 4),
        with(write_(2, 40, 10, 10, WHOLE, SEG_ORDER_ANY), 16, 4),
    };

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        post_size(i, BUFFER);
    assert_int_equal(unit(0, seg[0]), FAULT_NONE);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 4);
    expect_size(4);
    for (uint32_t i = 3; i > 1; i--)
        for (int twice = 0; twice < 2; twice++)
            assert_int_equal(unit(i, seg[i]), FAULT_NONE);
    assert_memory_equal(remote->base + 20, data + 20, 10);
    assert_memory_equal(remote->base + 40, data + 40, 10);
    expect_quiet(&s.recv_cq);
    memset(remote->base + 20, 0x33, 10); /* the application changes the memory that it has now */
    expect_size(0);
    assert_int_equal(unit(1, seg[1]), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(unit(2, seg[2]), FAULT_NONE);
    told(1, RDDP_WC_RECV_RDMA_WITH_IMM, 20, 12);
    assert_memory_equal(buffer, head + 4, 12);
    assert_int_equal(remote->base[20], 0x33);
    assert_int_equal(unit(3, seg[3]), FAULT_NONE);
    told(2, RDDP_WC_RECV_RDMA_WITH_IMM, 10, 4);
    assert_memory_equal(buffer, head + 16, 4);
    assert_int_equal(unit(4, with(write_(3, 0, 1, 1, WHOLE, 0), 0, 4)), FAULT_NONE);
    told(3, RDDP_WC_RECV_RDMA_WITH_IMM, 1, 4);
}

/* An early segment only claims to be a Send of that number: it must not take the receive of the Write. */
static void early_impostor(void **state)
{
    (void)state;
    sequence_for_control(true);
    post_buffers(4);
    assert_int_equal(unit(0, with(write_(0, 0, 10, 20, SEG_FIRST, 0), 0, 4)), FAULT_NONE);
    assert_int_equal(unit(2, send_(0, 0, 10, WHOLE, SEG_ORDER_ANY)), FAULT_NONE);
    told(1, RDDP_WC_RECV, 10, 0);
    assert_int_equal(unit(1, write_(0, 10, 10, 20, SEG_LAST, 0)), FAULT_NONE);
    told(0, RDDP_WC_RECV_RDMA_WITH_IMM, 20, 4);
    assert_int_equal(unit(2, send_(0, 0, 10, WHOLE, SEG_ORDER_ANY)), FAULT_SEG_NUMBER);
}

/* --- Reads ------------------------------------------------------------------------------------------------------- */

/* SEG-3.4-25: the control data of a Read Request reach the application when the request is processed, which is when all
 * of the response has been cut into segments. */
static void read_requests(void **state)
{
    const struct fault_note lost = {.fault = FAULT_LOST};

    (void)state;
    post_size(0, BUFFER);
    post_size(1, 1019);
    post_size(2, BUFFER);
    assert_int_equal(arrive(&s, with(read_(0, 100, 0), 0, 4)), FAULT_NONE);
    assert_int_equal(arrive(&s, read_(1, 10, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, with(read_(2, 0, 0), 0, 1020)), FAULT_NONE);
    leave(&s, 60);
    expect_quiet(&s.recv_cq);
    leave(&s, 60);
    told(0, RDDP_WC_RECV_RDMA_READ, 100, 4);
    leave(&s, 60);
    expect_quiet(&s.recv_cq);
    leave(&s, 60);
    told(1, RDDP_WC_RECV_RDMA_READ, 0, 1020);
    expect_size(1019);
    assert_int_equal(arrive(&s, with(read_(3, 100, 0), 0, 4)), FAULT_NONE);
    leave(&s, 60);
    qp_fail(&s.qp, &lost);
    expect_wc(&s.recv_cq, 2, RDDP_WC_WR_FLUSH_ERR);
    expect_quiet(&s.recv_cq);
}

static void post_read(uint64_t wr_id, uint32_t octets, unsigned flags)
{
    struct rddp_sge sge = piece_of(local, 0, STAGE_BUFFER);
    struct rddp_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_READ};

    wr.send_flags = flags;
    wr.response_control = buffer;
    wr.response_size = octets;
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    expect_op(SEG_READ_REQ);
}

/* The octets [at, at + length) of the answer to our n-th message. */
static struct seg answer(uint32_t n, uint32_t at, uint32_t length, unsigned flags)
{
    struct seg seg = a_read_response(0, at, data + at, length, flags);

    seg.msg = first + n;
    return seg;
}

/* SEG-3.4-24 SEG-3.4-25: the control data of a response go to the room of the request, and never into its sink. */
static void responses(void **state)
{
    uint32_t n = 0;

    (void)state;
    for (uint32_t octets = 1019; octets <= 1021; octets++, n++) {
        post_read(n, octets, RDDP_SEND_SIGNALED);
        assert_int_equal(arrive(&s, with(answer(n, 0, 64, WHOLE), 0, 1020)), FAULT_NONE);
        assert_int_equal(expect_wc(&s.send_cq, n, RDDP_WC_SUCCESS).control_length, 1020);
        expect_size(octets < 1020 ? octets : 1020);
        assert_memory_equal(local->base, data, 64);
    }
    post_read(n, BUFFER, RDDP_SEND_SIGNALED);
    assert_int_equal(arrive(&s, answer(n, 0, 64, WHOLE)), FAULT_NONE);
    assert_int_equal(expect_wc(&s.send_cq, n++, RDDP_WC_SUCCESS).control_length, 0);
    post_read(n, BUFFER, 0);
    assert_int_equal(arrive(&s, with(answer(n++, 0, 64, WHOLE), 0, 4)), FAULT_NONE);
    expect_quiet(&s.send_cq);
    expect_size(4);
    post_read(n, 0, RDDP_SEND_SIGNALED);
    assert_int_equal(arrive(&s, with(answer(n, 0, 64, WHOLE), 0, 4)), FAULT_NONE);
    assert_int_equal(expect_wc(&s.send_cq, n, RDDP_WC_SUCCESS).control_length, 4);
    expect_size(0);
}

/* The control data of several segments, early ones among them, are joined in stream order, once. */
static void early_responses(void **state)
{
    struct seg seg[3];

    (void)state;
    post_read(0, BUFFER, RDDP_SEND_SIGNALED);
    seg[0] = with(answer(0, 0, 20, SEG_FIRST), 0, 4);
    seg[1] = with(answer(0, 20, 20, 0), 4, 8);
    seg[2] = with(answer(0, 40, 24, SEG_LAST), 12, 4);
    assert_int_equal(unit(2, seg[2]), FAULT_NONE);
    assert_int_equal(unit(1, seg[1]), FAULT_NONE);
    expect_size(0);
    for (uint32_t i = 0; i < 3; i++) {
        expect_quiet(&s.send_cq);
        assert_int_equal(unit(i, seg[i]), FAULT_NONE);
    }
    assert_int_equal(expect_wc(&s.send_cq, 0, RDDP_WC_SUCCESS).control_length, 16);
    expect_size(16);
    assert_memory_equal(local->base, data, 64);
}

/* --- leaving ----------------------------------------------------------------------------------------------------- */

/* The solicited flag is sent with messages that take a receive, and the receiver honours it. */
static void solicited(void **state)
{
    static const enum rddp_wr_opcode opcode[] = {RDDP_WR_SEND, RDDP_WR_RDMA_WRITE, RDDP_WR_RDMA_READ};
    const struct rddp_sge sge = piece_of(local, 0, 10);
    struct rddp_send_wr wr = {.sg_list = (struct rddp_sge *)&sge, .num_sge = 1};
    struct seg seg = with(write_(0, 0, 10, 10, WHOLE, 0), 0, 4);

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        wr.opcode = opcode[i / 2];
        wr.send_flags = RDDP_SEND_SOLICITED;
        wr.control = head;
        wr.control_length = i % 2 ? 8 : 0;
        assert_int_equal(qp_post_send(&s.qp, &wr), 0);
        seg = leave(&s, 100).seg;
        assert_int_equal(seg.control_length, wr.control_length);
        assert_int_equal(seg.reserved, i == 2 || i == 4 ? 0 : SEQUENCE_SOLICITED);
    }
    seg = with(write_(0, 0, 10, 10, WHOLE, 0), 0, 4);
    for (unsigned asked = 0; asked < 2; asked++) {
        sequence_for_control(false);
        post_size(0, BUFFER);
        seg.reserved = asked ? SEQUENCE_SOLICITED : 0;
        cq_arm(&s.recv_cq, CQ_SOLICITED);
        assert_int_equal(arrive(&s, seg), FAULT_NONE);
        assert_int_equal(s.recv_cq.arm, asked ? CQ_QUIET : CQ_SOLICITED);
    }
}

#define CONTROL_TEST(name) cmocka_unit_test_setup_teardown(name, open_control, sequence_shut)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTROL_TEST(writes),
        CONTROL_TEST(segments),
        CONTROL_TEST(endless),
        CONTROL_TEST(no_receive),
        CONTROL_TEST(not_asked_for),
        CONTROL_TEST(in_order),
        CONTROL_TEST(held),
        CONTROL_TEST(window_full),
        CONTROL_TEST(early),
        CONTROL_TEST(early_impostor),
        CONTROL_TEST(read_requests),
        CONTROL_TEST(responses),
        CONTROL_TEST(early_responses),
        CONTROL_TEST(solicited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
