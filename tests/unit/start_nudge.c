/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start_nudge.c - an initiator that gets nothing back after its first FPDU: siw's responder may have overlooked it. */
#include "tests/unit/conn_host.h"

enum { C = 0x40, S = 0x10, A = 0x8000, LARGE = 1 << 20 };

/* The reply has come. Returns when. */
static uint64_t connects(const struct conn_attr *attr)
{
    uint8_t frame[MPA_FRAME_MAX];

    host_active(&h, attr, NULL, 0);
    h.read_octets = h.sent_octets;
    h.peer = (struct wire_state){.crc = true, .version = 1};
    if (attr->revision == 1)
        host_hear(&h, frame, start_frame(frame, true, C, 1, NULL, 0));
    else
        host_hear(&h, frame, start_frame_enhanced(frame, true, C | S, A | 4, A | 4, NULL, 0));
    return h.now_us;
}

static struct conn_attr of_peers(void)
{
    struct conn_attr attr = host_attr();

    attr.peer_to_peer = true;
    return attr;
}

/* Our ready-to-receive message has been sent, too. Returns when the reply came. */
static uint64_t is_ready(const struct conn_attr *attr)
{
    uint64_t at_us = connects(attr);

    host_wait_until(&h, at_us + attr->first_delay_us);
    assert_int_equal(expect_seg(&h, SEG_WRITE).length, 0);
    return at_us;
}

/* Waits for 10, 20, 40 and 80 times the delay, each from where the last has ended, and then no more. */
static void says_it_four_times(void **state)
{
    struct conn_attr attr = of_peers();
    uint64_t at_us = is_ready(&attr);

    (void)state;
    for (uint64_t times = 10; times <= 80; times *= 2) {
        at_us += times * attr.first_delay_us;
        assert_true(conn_deadline(&h.conn, h.now_us) == at_us);
        host_wait_until(&h, at_us - 1);
        expect_silence(&h);
        host_wait_until(&h, at_us);
        assert_int_equal(expect_seg(&h, SEG_WRITE).length, 0);
        expect_silence(&h);
    }
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    host_wait_until(&h, at_us + 1000 * attr.first_delay_us);
    expect_silence(&h);
    assert_false(h.told & CONN_NEWS_FAILED);
}

static void peer_writes(void)
{
    peer_says(&h, (struct seg){.op = SEG_WRITE, .flags = SEG_LAST, .key = 1, .data = (const uint8_t *)""});
}

static void peer_terminates(void)
{
    static const uint8_t local_catastrophic[4];

    peer_says(&h,
              (struct seg){.op = SEG_TERMINATE, .flags = SEG_LAST, .msg = 1, .data = local_catastrophic, .length = 4});
}

/* Any FPDU of the peer shows that it listens. */
static void answered(void **state)
{
    struct conn_attr attr = of_peers();
    uint64_t at_us = is_ready(&attr);

    (void)state;
    peer_writes();
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    expect_silence(&h);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    assert_true(conn_sends_straight(&h.conn));
}

/* Without a ready-to-receive message it follows the application's first one, and without that nothing is said. */
static void follows_a_message(void **state)
{
    struct conn_attr attr = host_attr();
    uint64_t at_us;

    (void)state;
    attr.revision = 1;
    at_us = connects(&attr);
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    expect_silence(&h);
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
    host_pump(&h);
    expect_seg(&h, SEG_SEND);
    expect_silence(&h);
    host_wait_until(&h, at_us + 30 * attr.first_delay_us);
    assert_int_equal(expect_seg(&h, SEG_WRITE).length, 0);
    assert_int_equal(post(&h.side, 2, RDDP_WR_SEND, 0, NULL, 0), 0);
    host_pump(&h);
    assert_int_equal(expect_seg(&h, SEG_SEND).msg, 2);
}

/* Whoever wants no delay knows that its peer is no siw. */
static void no_delay(void **state)
{
    struct conn_attr attr = of_peers();

    (void)state;
    attr.first_delay_us = 0;
    connects(&attr);
    expect_seg(&h, SEG_WRITE);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
}

/* What waits for the link will wake the peer. */
static void link_is_full(void **state)
{
    struct conn_attr attr = of_peers();
    uint64_t at_us = is_ready(&attr);

    (void)state;
    h.takes = 5;
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
    host_pump(&h);
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    h.takes = HOST_SENT;
    host_pump(&h);
    expect_seg(&h, SEG_SEND);
    expect_silence(&h);
}

/* Nothing comes between the segments of a message, nor between a Write and its immediate data: the peer takes all that
 * was written before that for one message. */
static void amid(enum rddp_wr_opcode opcode, enum seg_op op)
{
    struct conn_attr attr = of_peers();
    struct mr *mr = engine_region(&h.engine, LARGE, ALL_ACCESS);
    struct rddp_sge sge = piece_of(mr, 0, LARGE);
    uint64_t at_us = is_ready(&attr);
    uint32_t octets = 0;

    assert_int_equal(post_remote(&h.side, 1, opcode, 0, &sge, 1, 5, 0), 0);
    out_init(&h.out, h.buffer);
    h.conn.life.out = &h.out;
    conn_fill(&h.conn, h.now_us);
    h.takes = h.out.octets; /* all that is on its way leaves, and no more */
    assert_true(h.takes < LARGE);
    host_pump(&h);
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    h.takes = HOST_SENT;
    host_pump(&h);
    while (octets < LARGE) {
        struct seg seg = expect_seg(&h, op);

        assert_true(seg.length);
        octets += seg.length;
        assert_int_equal(!!(seg.flags & SEG_LAST), octets == LARGE);
    }
    if (opcode == RDDP_WR_RDMA_WRITE_WITH_IMM)
        expect_seg(&h, SEG_IMMEDIATE);
    expect_silence(&h);
}

static void amid_a_send(void **state)
{
    (void)state;
    amid(RDDP_WR_SEND, SEG_SEND);
}

static void amid_a_write(void **state)
{
    (void)state;
    amid(RDDP_WR_RDMA_WRITE, SEG_WRITE);
}

static void before_immediate_data(void **state)
{
    (void)state;
    amid(RDDP_WR_RDMA_WRITE_WITH_IMM, SEG_WRITE);
}

/* The link takes nothing when it is due, and the peer says something before there is room again. */
static void overtaken(void (*peer_says_it)(void))
{
    struct conn_attr attr = of_peers();
    uint64_t at_us = is_ready(&attr);

    h.takes = 0;
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    assert_true(h.conn.start.nudge_due);
    peer_says_it();
    h.takes = HOST_SENT;
    host_pump(&h);
    expect_silence(&h);
}

static void overtaken_by_a_write(void **state)
{
    (void)state;
    overtaken(peer_writes);
}

static void overtaken_by_a_terminate(void **state)
{
    (void)state;
    overtaken(peer_terminates);
}

/* Nothing follows the end of our stream. */
static void not_at_the_end(void **state)
{
    struct conn_attr attr = of_peers();
    uint64_t at_us = is_ready(&attr);

    (void)state;
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    assert_true(h.fin);
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    expect_silence(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(says_it_four_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(follows_a_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_delay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(link_is_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(amid_a_send, set_up, tear_down),
        cmocka_unit_test_setup_teardown(amid_a_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(before_immediate_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(overtaken_by_a_write, set_up, tear_down),
        cmocka_unit_test_setup_teardown(overtaken_by_a_terminate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_at_the_end, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("start_nudge", tests, NULL, NULL);
}
