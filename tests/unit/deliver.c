/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deliver.c - messages are delivered in the order of the stream or never: DDP-4.1-03, DDP-5.4-01, RDMAP-5.3,
 * RDMAP-5.5-02. */
#include <string.h>

#include "base/container.h"
#include "tests/lib/stage.h"

static unsigned events;

static void notify(struct cq *cq)
{
    (void)cq;
    events++;
}

/* --- out of order and wrong ---------------------------------------------------------------------------------- */

static struct seg read_at_offset(uint32_t offset)
{
    struct seg seg = read_of(remote, 1, 8);

    seg.offset = offset;
    return seg;
}

static void test_early_faults(void **state)
{
    const struct {
        struct seg seg;
        enum fault fault;
    } rows[] = {
        {a_send(3, 0, data, 1, SEG_LAST), FAULT_NONE},
        {a_send(4, 0, data, 1, SEG_LAST), FAULT_NO_RECEIVE},
        {a_send(0x80000000, 0, data, 1, SEG_LAST), FAULT_NO_RECEIVE},
        {a_send(0, 0, data, 1, SEG_LAST), FAULT_MSN},
        {a_send(0x80000001, 0, data, 1, SEG_LAST), FAULT_MSN},
        {a_send(1, STAGE_BUFFER, data, 0, 0), FAULT_NONE},
        {a_send(1, STAGE_BUFFER - 1, data, 1, 0), FAULT_NONE},
        {a_send(1, STAGE_BUFFER, data, 1, 0), FAULT_TOO_LONG},
        {a_send(1, STAGE_BUFFER + 1, data, 0, 0), FAULT_MO},
        {a_send(1, STAGE_BUFFER + 1, data, 1, 0), FAULT_MO},
        /* message 2 already has octets [20, 30) with the L flag: DDP-4.1-02 */
        {a_send(2, 20, data, 10, SEG_LAST), FAULT_NONE},
        {a_send(2, 20, data, 9, SEG_LAST), FAULT_MO},
        {a_send(2, 20, data, 11, SEG_LAST), FAULT_MO},
        {a_send(2, 30, data, 1, 0), FAULT_MO},
        {a_send(2, 0, data, 30, 0), FAULT_NONE},
        {a_send(2, 0, data, 31, 0), FAULT_MO},
        {read_of(remote, 4, 8), FAULT_NONE},
        {read_of(remote, 5, 8), FAULT_READS},
        {read_of(remote, 0, 8), FAULT_MSN},
        {read_at_offset(1), FAULT_MO},
        {read_of(local, 2, 8), FAULT_NONE}, /* not checked before its delivery: RDMAP-5.5-02 */
        {response(1, 0, 64), FAULT_NONE},
        {response(1, 13, 7), FAULT_NONE},
        {response(2, 0, 64), FAULT_UNASKED},
        {a_read_response(local->key, local->start + STAGE_BUFFER, data, 64, 0), FAULT_UNASKED},
        {a_read_response(local->key, local->start + STAGE_BUFFER, data, 63, SEG_LAST), FAULT_UNASKED},
        {a_read_response(local->key, local->start + STAGE_BUFFER - 1, data, 64, 0), FAULT_UNASKED},
        {a_read_response(local->key, local->start + STAGE_BUFFER + 1, data, 64, SEG_LAST), FAULT_UNASKED},
        {a_read_response(remote->key, local->start + STAGE_BUFFER, data, 64, SEG_LAST), FAULT_UNASKED},
        {a_write(local->key, local->start, data, 1, SEG_LAST), FAULT_RIGHT},
    };

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        enum fault fault;

        stage_again(NULL);
        post_buffers(3);
        read_into(1);
        assert_int_equal(arrive_at(&s, a_send(2, 20, data, 10, SEG_LAST), 2000, 2100), FAULT_NONE);
        fault = arrive_at(&s, rows[i].seg, 3000, 3100);
        if (fault != rows[i].fault)
            fail_msg("row %zu: %s, not %s", i, fault_name(fault), fault_name(rows[i].fault));
        assert_int_equal(s.qp.rx_pos, 0);
        expect_quiet(&s.recv_cq);
        expect_quiet(&s.send_cq);
    }
    /* The end of a message in front of octets that are already there. */
    stage_again(NULL);
    post_buffers(1);
    assert_int_equal(arrive_at(&s, a_send(1, 20, data, 10, 0), 2000, 2100), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send(1, 10, data, 19, SEG_LAST), 3000, 3100), FAULT_MO);
}

/* The gap closes, and the message can never become complete. */
static void test_advance_faults(void **state)
{
    (void)state;
    for (int way = 0; way < 6; way++) {
        static const enum fault faults[] = {FAULT_MO, FAULT_MSN, FAULT_MSN, FAULT_UNASKED, FAULT_UNASKED, FAULT_KEY};

        stage_again(NULL);
        post_buffers(3);
        remote->valid = true;
        switch (way) {
        case 0: /* a hole in the message */
            assert_int_equal(arrive_at(&s, a_send(1, 0, data, 10, 0), 100, 200), FAULT_NONE);
            assert_int_equal(arrive_at(&s, a_send(1, 11, data, 10, SEG_LAST), 200, 300), FAULT_NONE);
            break;
        case 1: /* a message that is missing */
            assert_int_equal(arrive_at(&s, a_send(2, 0, data, 10, SEG_LAST), 100, 300), FAULT_NONE);
            break;
        case 2:
            assert_int_equal(arrive_at(&s, read_of(remote, 2, 8), 100, 300), FAULT_NONE);
            break;
        case 3: /* RDMAP-5.5-05 */
            read_into(0);
            read_into(1);
            assert_int_equal(arrive_at(&s, response(1, 0, 64), 100, 300), FAULT_NONE);
            break;
        case 4:
            read_into(0);
            assert_int_equal(arrive_at(&s, response(0, 0, 10), 100, 200), FAULT_NONE);
            assert_int_equal(arrive_at(&s, response(0, 11, 53), 200, 300), FAULT_NONE);
            break;
        default: /* a fault that only the delivery finds */
            assert_int_equal(arrive_at(&s, read_of(remote, 1, 8), 100, 300), FAULT_NONE);
            remote->valid = false;
            break;
        }
        assert_int_equal(qp_advance(&s.qp, 100), FAULT_NONE);
        assert_int_equal(qp_advance(&s.qp, 300), faults[way]);
        assert_int_equal(s.qp.note.fault, faults[way]);
        expect_quiet(&s.recv_cq);
        expect_quiet(&s.send_cq);
    }
}

/* --- between the queues -------------------------------------------------------------------------------------- */

/* A Send with Invalidate and a Read Request of the same region take effect in stream order, whichever arrived first.
 * RDMAP-5.3-03, RDMAP-5.5-02. */
static void test_order_between_queues(void **state)
{
    struct emit out;

    (void)state;
    for (int way = 0; way < 4; way++) {
        bool read_first = way & 1, placed_backwards = way & 2;
        uint64_t read_at = read_first ? 100 : 200, send_at = read_first ? 200 : 100;

        stage_again(NULL);
        remote->valid = true;
        post_buffers(1);
        if (placed_backwards)
            assert_int_equal(arrive_at(&s, read_of(remote, 1, 8), read_at, read_at + 100), FAULT_NONE);
        assert_int_equal(arrive_at(&s, send_inv(1, remote->key), send_at, send_at + 100), FAULT_NONE);
        if (!placed_backwards)
            assert_int_equal(arrive_at(&s, read_of(remote, 1, 8), read_at, read_at + 100), FAULT_NONE);
        assert_true(remote->valid);
        assert_int_equal(qp_advance(&s.qp, 300), read_first ? FAULT_NONE : FAULT_KEY);
        assert_false(remote->valid);
        struct rddp_wc wc = expect_wc(&s.recv_cq, 0, RDDP_WC_SUCCESS);
        assert_int_equal(wc.wc_flags, RDDP_WC_WITH_INV);
        assert_int_equal(wc.invalidated_rkey, remote->key);
        if (read_first) /* accepted, and then the region went */
            assert_false(qp_emit(&s.qp, &out, 100, 100));
        assert_int_equal(s.qp.note.fault, FAULT_KEY);
        assert_int_equal(s.qp.note.op, SEG_READ_REQ);
    }
}

/* One CQ for all completions shows the order of the stream. DDP-5.3-02 */
static void test_order_in_cq(void **state)
{
    struct qp_attr attr = side_attr(&e);

    (void)state;
    attr.recv_cq = &s.send_cq;
    for (int way = 0; way < 2; way++) {
        uint64_t send_at = way ? 100 : 200, response_at = way ? 200 : 100;

        stage_again(&attr);
        assert_int_equal(post_recv(&s, 10, NULL, 0), 0);
        read_into(1);
        assert_int_equal(arrive_at(&s, a_send(1, 0, NULL, 0, SEG_LAST), send_at, send_at + 100), FAULT_NONE);
        assert_int_equal(arrive_at(&s, response(1, 0, STAGE_BUFFER), response_at, response_at + 100), FAULT_NONE);
        expect_quiet(&s.send_cq);
        assert_int_equal(qp_advance(&s.qp, 300), FAULT_NONE);
        expect_wc(&s.send_cq, way ? 10 : 1, RDDP_WC_SUCCESS);
        expect_wc(&s.send_cq, way ? 1 : 10, RDDP_WC_SUCCESS);
    }
}

/* RDMAP-5.5-02: a Read returns the data of the Writes before it. */
static void test_read_after_write(void **state)
{
    struct emit out;

    (void)state;
    assert_int_equal(arrive_at(&s, read_of(remote, 1, 50), 100, 200), FAULT_NONE);
    assert_false(qp_has_output(&s.qp));
    assert_int_equal(arrive_at(&s, a_write(remote->key, remote->start, data, 50, SEG_LAST), 0, 100), FAULT_NONE);
    assert_false(qp_has_output(&s.qp));
    assert_int_equal(qp_advance(&s.qp, 200), FAULT_NONE);
    out = leave(&s, 100);
    assert_memory_equal(out.span[0].at, data, 50);
}

/* --- numbers and events -------------------------------------------------------------------------------------- */

/* DDP-4.3-01, DDP-V-msn-wrap-a, -b: 0 follows 0xffffffff. Forwards and backwards, for Sends and Reads. */
static void test_msn_wrap(void **state)
{
    enum { SENDS = 6, READS = 4, UNIT = 50 };
    const uint32_t first = 0xfffffffd;

    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        stage_again(NULL);
        post_buffers(SENDS);
        s.qp.arriving.claimed = s.qp.arriving.next = s.qp.answers.head = s.qp.answers.tail = first;
        for (uint32_t i = 0; i < SENDS + READS; i++) {
            uint32_t k = backwards ? SENDS + READS - 1 - i : i, msn = first + k - (k < SENDS ? 0 : SENDS);
            struct seg seg = k < SENDS ? a_send(msn, 0, data + k, 1, SEG_LAST) : read_of(remote, msn, 8);

            assert_int_equal(arrive_at(&s, seg, (uint64_t)UNIT * k, (uint64_t)UNIT * (k + 1)), FAULT_NONE);
        }
        assert_int_equal(qp_advance(&s.qp, (uint64_t)UNIT * (SENDS + READS)), FAULT_NONE);
        for (uint32_t i = 0; i < SENDS; i++) {
            expect_wc(&s.recv_cq, i, RDDP_WC_SUCCESS);
            assert_int_equal(local->base[i * STAGE_BUFFER], data[i]);
        }
        assert_int_equal(s.qp.arriving.next, 3);
        assert_int_equal(s.qp.answers.head, 1);
        assert_int_equal(arrive(&s, read_of(remote, 1, 8)), FAULT_READS);
        for (int i = 0; i < READS; i++)
            expect_op(SEG_READ_RESP);
        assert_int_equal(arrive(&s, read_of(remote, 1, 8)), FAULT_NONE);
    }
}

/* RDMAP-5.3-02: only the flag of the delivered Send counts. */
static void test_solicited(void **state)
{
    (void)state;
    events = 0;
    s.recv_cq.notify = notify;
    post_buffers(4);
    cq_arm(&s.recv_cq, CQ_SOLICITED);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 4, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, a_send(2, 0, data, 4, SEG_SOLICITED)), FAULT_NONE);
    assert_int_equal(events, 0);
    assert_int_equal(arrive(&s, a_send(2, 4, data, 4, SEG_SOLICITED | SEG_LAST)), FAULT_NONE);
    assert_int_equal(events, 1);
    assert_int_equal(arrive(&s, a_send(3, 0, data, 4, SEG_SOLICITED | SEG_LAST)), FAULT_NONE);
    assert_int_equal(events, 1);
}

/* RFC 6581 5: a ready-to-receive Send takes a number, but no receive. */
static void test_skip(void **state)
{
    (void)state;
    post_buffers(1);
    qp_skip_receive(&s.qp);
    assert_int_equal(qp_advance(&s.qp, 24), FAULT_NONE);
    assert_int_equal(arrive(&s, a_send(2, 0, data, 4, SEG_LAST)), FAULT_NONE);
    expect_wc(&s.recv_cq, 0, RDDP_WC_SUCCESS);
}

/* DDP-5.4-01, RDMAP-5.3-01: the completion gives the length, and a short message leaves the rest of its buffer
 * unchanged. */
static void test_length(void **state)
{
    (void)state;
    memset(local->base, 0x55, local->length);
    post_buffers(STAGE_BUFFERS);
    for (uint32_t i = 0; i < STAGE_BUFFERS; i++) {
        uint32_t n = i * STAGE_BUFFER / (STAGE_BUFFERS - 1);

        assert_int_equal(arrive(&s, a_send(i + 1, 0, data, n, SEG_LAST)), FAULT_NONE);
        struct rddp_wc wc = expect_wc(&s.recv_cq, i, RDDP_WC_SUCCESS);
        assert_int_equal(wc.byte_len, n);
        assert_int_equal(wc.opcode, RDDP_WC_RECV);
        assert_int_equal(wc.qp_num, 7);
        assert_int_equal(wc.wc_flags, 0);
        assert_memory_equal(local->base + i * STAGE_BUFFER, data, n);
        for (uint32_t k = n; k < STAGE_BUFFER; k++)
            assert_int_equal(local->base[i * STAGE_BUFFER + k], 0x55);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(test_early_faults),
        STAGE_TEST(test_advance_faults),
        STAGE_TEST(test_order_between_queues),
        STAGE_TEST(test_order_in_cq),
        STAGE_TEST(test_read_after_write),
        STAGE_TEST(test_msn_wrap),
        STAGE_TEST(test_solicited),
        STAGE_TEST(test_skip),
        STAGE_TEST(test_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
