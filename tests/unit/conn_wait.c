/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_wait.c - a message that finds no receive: how long it waits, what waits with it, and how the wait ends. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/conn_host.h"

enum { WAIT_US = 700000, LENGTH = 64 };

static struct mr *mr;

static void begin(uint64_t wait_us, const struct conn_attr *attr)
{
    next_connection();
    h.side.qp.attr.receive_wait_us = wait_us;
    host_ready(&h, false, attr);
    h.told = 0;
    mr = engine_region(&h.engine, 8 * LENGTH, ALL_ACCESS | RDDP_ACCESS_ZERO_BASED);
}

static void begin_usual(uint64_t wait_us)
{
    const struct conn_attr attr = host_attr();

    begin(wait_us, &attr);
}

static void say_send(uint32_t msg)
{
    uint8_t data[LENGTH];

    pattern(data, LENGTH, msg);
    peer_says(&h, a_send(msg, 0, data, LENGTH, SEG_LAST));
}

static void give_receive(uint64_t wr_id, uint32_t at)
{
    struct rddp_sge piece = piece_of(mr, at, LENGTH);

    assert_int_equal(post_recv(&h.side, wr_id, &piece, 1), 0);
}

/* The host finds that the connection wants its octets again. */
static void present_again(void)
{
    assert_true(conn_wants(&h.conn, h.now_us) & CONN_AGAIN);
    host_hear(&h, NULL, 0);
}

static void expect_waiting(void)
{
    unsigned wants = conn_wants(&h.conn, h.now_us);

    assert_int_equal(wants & (CONN_RX | CONN_AGAIN | CONN_FIN), 0);
    assert_true(conn_wants_end(&h.conn) || h.conn.life.peer_is_gone);
    assert_int_equal(h.conn.life.state, CONN_READY);
    assert_int_equal(h.told, 0);
    assert_int_equal(h.side.qp.note.fault, FAULT_NONE);
}

/* Without a wait it is the fault that it always was; with one, nothing has happened yet. */
static void waits_or_not(void **state)
{
    (void)state;
    begin_usual(0);
    say_send(1);
    expect_terminate(&h, 0x1202);
    expect_end(&h, FAULT_NO_RECEIVE);

    begin_usual(WAIT_US);
    say_send(1);
    expect_waiting();
    expect_silence(&h);
    give_receive(11, 0);
    present_again();
    assert_int_equal(expect_wc(&h.side.recv_cq, 11, RDDP_WC_SUCCESS).byte_len, LENGTH);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    assert_true(conn_wants(&h.conn, h.now_us) & CONN_RX);
}

/* A microsecond before the limit it waits; at the limit the peer gets the Terminate, about this very segment. */
static void limit(void **state)
{
    (void)state;
    begin_usual(WAIT_US);
    say_send(1);
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + WAIT_US);
    host_wait_until(&h, h.now_us + WAIT_US - 1);
    expect_waiting();
    host_wait_until(&h, h.now_us + 1);
    present_again();
    expect_terminate(&h, 0x1202);
    expect_end(&h, FAULT_NO_RECEIVE);

    /* A receive comes in time, but the host is late: the message has it. */
    begin_usual(WAIT_US);
    say_send(1);
    give_receive(11, 0);
    host_wait_until(&h, h.now_us + 2 * WAIT_US);
    present_again();
    expect_wc(&h.side.recv_cq, 11, RDDP_WC_SUCCESS);

    /* Each message has its own time, and one that is presented in vain no new one. */
    say_send(2);
    host_wait_until(&h, h.now_us + WAIT_US / 2);
    host_hear(&h, NULL, 0);
    expect_waiting();
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + WAIT_US / 2);
}

/* No limit: not even those of the peer's stalls run. */
static void no_limit(void **state)
{
    (void)state;
    begin_usual(UINT64_MAX);
    peer_says(&h, a_write(mr->key, 0, (const uint8_t *)"begun", 5, 0)); /* a message that does not go on */
    say_send(1);
    expect_waiting();
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    host_wait_until(&h, h.now_us + 1000 * (uint64_t)WAIT_US);
    expect_waiting();
    give_receive(1, LENGTH);
    present_again();
    expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + 1000000); /* the stall limit, from now on */
}

/* Sends behind Writes in one read, with and without markers, which decoding takes out of the octets: what is in front
 * is placed, what is behind stays, however often it is presented. */
static void in_one_read(void **state)
{
    static uint8_t octets[8 * WIRE_UNIT_MAX];
    struct conn_attr attr = host_attr();
    uint8_t data[LENGTH];

    (void)state;
    for (int markers = 0; markers < 2; markers++) {
        size_t n = 0;

        attr.markers = markers;
        begin(UINT64_MAX, &attr);
        for (uint32_t i = 0; i < 8; i++) {
            pattern(data, LENGTH, i);
            n += peer_frames(&h,
                             i % 2 ? a_send(i / 2 + 1, 0, data, LENGTH, SEG_LAST)
                                   : a_write(mr->key, i * LENGTH, data, LENGTH, SEG_LAST),
                             octets + n);
        }
        host_hear(&h, octets, n);
        for (uint32_t i = 1; i < 8; i += 2) {
            expect_waiting();
            host_hear(&h, NULL, 0);
            expect_waiting();
            pattern(data, LENGTH, i - 1);
            assert_memory_equal(mr->base + (i - 1) * LENGTH, data, LENGTH);
            give_receive(i, i * LENGTH);
            present_again();
            expect_wc(&h.side.recv_cq, i, RDDP_WC_SUCCESS);
            pattern(data, LENGTH, i);
            assert_memory_equal(mr->base + i * LENGTH, data, LENGTH);
        }
        assert_int_equal(h.staged, 0);
    }
}

/* Immediate data, and a Send that invalidates, wait as well; the count of the Write in front is not lost. */
static void other_kinds(void **state)
{
    struct seg seg = {.op = SEG_IMMEDIATE, .flags = SEG_LAST, .msg = 1};
    struct rddp_wc wc;
    struct mr *other;

    (void)state;
    begin_usual(WAIT_US);
    peer_says(&h, a_write(mr->key, 0, (const uint8_t *)"octets", 6, SEG_LAST));
    seg.immediate = (uint64_t)0x12345678 << 32 | SEG_IMMEDIATE_OF_WRITE;
    seg.data = (const uint8_t *)"";
    peer_says(&h, seg);
    expect_waiting();
    give_receive(1, LENGTH);
    present_again();
    wc = expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, RDDP_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.byte_len, 6);

    other = engine_region(&h.engine, LENGTH, ALL_ACCESS);
    seg = a_send(2, 0, (const uint8_t *)"gone", 4, SEG_LAST | SEG_INVALIDATE);
    seg.invalidate = other->key;
    peer_says(&h, seg);
    expect_waiting();
    assert_true(mr_is_valid(other));
    give_receive(2, LENGTH);
    present_again();
    wc = expect_wc(&h.side.recv_cq, 2, RDDP_WC_SUCCESS);
    assert_int_equal(wc.invalidated_rkey, other->key);
    assert_false(mr_is_valid(other));
}

/* Our own requests leave, and the answers to Reads that came before; what the peer answers is behind its Send. */
static void we_go_on(void **state)
{
    struct seg read = {.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = 1};
    struct rddp_sge piece;

    (void)state;
    begin_usual(UINT64_MAX);
    read.read = (struct seg_read){.sink_key = 5, .source_key = mr->key, .length = LENGTH};
    h.takes = 0;
    peer_says(&h, read);
    say_send(1);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_seg(&h, SEG_READ_RESP);
    piece = piece_of(mr, 0, LENGTH);
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &piece, 1), 0);
    host_pump(&h);
    expect_seg(&h, SEG_SEND);
    expect_wc(&h.side.send_cq, 1, RDDP_WC_SUCCESS);
    expect_waiting();
}

/* Octets come out of order: the second half of the message, presented after the post, claims the receive before the
 * first half, which waits, is presented again. */
static void claimed_by_another_part(void **state)
{
    static struct reorder reorder;
    uint8_t first[256], second[256], data[LENGTH];
    struct conn_attr attr = host_attr();
    size_t n, m, octets;
    uint64_t at;

    (void)state;
    attr.aligned = true; /* a unit begins where a packet does */
    begin(UINT64_MAX, &attr);
    at = h.conn.agreed.rx_pos;
    conn_attach_reorder(&h.conn, &reorder);
    pattern(data, LENGTH, 1);
    n = peer_frames(&h, a_send(1, 0, data, LENGTH / 2, 0), first);
    m = peer_frames(&h, a_send(1, LENGTH / 2, data + LENGTH / 2, LENGTH / 2, SEG_LAST), second);
    assert_int_equal(conn_rx_out_of_order(&h.conn, first, n, at, &octets, h.now_us), CONN_KEEP);
    expect_waiting();
    give_receive(1, 0);
    assert_int_equal(conn_rx_out_of_order(&h.conn, second, m, at + n, &octets, h.now_us), CONN_TAKEN);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX); /* the peer is not late */
    assert_true(conn_wants(&h.conn, h.now_us) & CONN_AGAIN);
    assert_int_equal(conn_rx(&h.conn, first, n, h.now_us), n);
    expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_memory_equal(mr->base, data, LENGTH);
}

/* --- the end --------------------------------------------------------------------------------------------------- */

/* The peer's end is noticed: a receive in the next half second still has its message, and the end comes in its turn. */
static void peer_ends(void **state)
{
    (void)state;
    begin_usual(UINT64_MAX);
    say_send(1);
    conn_rx_end_unread(&h.conn, h.now_us);
    conn_rx_end_unread(&h.conn, h.now_us + 7); /* once is enough */
    assert_false(conn_wants_end(&h.conn));
    host_wait_until(&h, h.now_us + LIFE_GONE_US - 1);
    expect_waiting();
    give_receive(1, 0);
    present_again();
    expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
    host_hear_end(&h);
    expect_end(&h, FAULT_NONE);

    begin_usual(UINT64_MAX);
    say_send(1);
    conn_rx_end_unread(&h.conn, h.now_us);
    host_wait_until(&h, h.now_us + LIFE_GONE_US);
    present_again();
    expect_silence(&h); /* there is no peer to be told */
    expect_end(&h, FAULT_CUT);

    /* The limit of the queue pair is shorter. */
    begin_usual(LIFE_GONE_US / 2);
    say_send(1);
    conn_rx_end_unread(&h.conn, h.now_us);
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + LIFE_GONE_US / 2);
}

/* The link is lost, this end closes, or the queue pair goes. */
static void other_ends(void **state)
{
    struct rddp_sge piece;

    (void)state;
    begin_usual(UINT64_MAX);
    say_send(1);
    conn_lost(&h.conn, FAULT_LOST);
    host_pump(&h);
    expect_end(&h, FAULT_LOST);

    begin_usual(UINT64_MAX);
    say_send(1);
    piece = piece_of(mr, 0, LENGTH);
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &piece, 1), 0);
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    expect_seg(&h, SEG_SEND);
    assert_true(h.fin);
    present_again(); /* it is dropped */
    assert_int_equal(h.staged, 0);
    expect_wc(&h.side.send_cq, 1, RDDP_WC_SUCCESS);
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_OVER);

    begin_usual(UINT64_MAX);
    say_send(1);
    conn_detach(&h.conn, h.now_us);
    host_pump(&h);
    assert_true(h.fin);
    host_hear(&h, NULL, 0);
    assert_int_equal(h.staged, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_or_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_one_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(we_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claimed_by_another_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_ends, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_wait", tests, NULL, NULL);
}
