/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_slow.c - peers that begin and do not continue: messages that are cut off or never continued, and ends that are
 * delayed. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/conn_host.h"

enum { SECOND = 1000000, LENGTH = 64 };

static struct mr *mr;
static const uint8_t octets[LENGTH];

/* A responder with a receive and, if `reads`, with a Read of its own outstanding. */
static void begin(bool reads)
{
    const struct conn_attr attr = host_attr();
    struct rddp_sge piece;

    next_connection();
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS);
    piece = piece_of(mr, 0, LENGTH);
    assert_int_equal(post_recv(&h.side, 1, &piece, 1), 0);
    host_ready(&h, false, &attr);
    if (!reads)
        return;
    assert_int_equal(post_remote(&h.side, 2, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &piece, 1, 9, 0), 0);
    host_pump(&h);
    expect_seg(&h, SEG_READ_REQ);
}

/* The octets from `at` on of the one message of each kind. */
static struct seg part(enum seg_op op, uint32_t at, uint32_t length)
{
    unsigned flags = at + length == LENGTH ? SEG_LAST : 0;

    if (op == SEG_SEND)
        return a_send(1, at, octets, length, flags);
    if (op == SEG_WRITE)
        return a_write(mr->key, mr->start + at, octets, length, flags);
    return a_read_response(mr->key, mr->start + at, octets, length, flags);
}

static const enum seg_op ops[] = {SEG_SEND, SEG_WRITE, SEG_READ_RESP};

/* RFC 5040 6.2: a connection that is "closed in the middle of a message" does not end well, wherever in the message. */
static void message_is_cut_off(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        for (uint32_t there = 0; there <= LENGTH; there += LENGTH / 2) {
            bool cut = there ? there < LENGTH : ops[i] == SEG_READ_RESP;

            begin(ops[i] == SEG_READ_RESP);
            if (there)
                peer_says(&h, part(ops[i], 0, LENGTH / 2));
            if (there == LENGTH)
                peer_says(&h, part(ops[i], LENGTH / 2, LENGTH / 2));
            host_hear_end(&h);
            expect_end(&h, cut ? FAULT_CUT : FAULT_NONE);
            assert_int_equal(h.conn.life.state, CONN_OVER);
        }
    }
}

/* Only a message's own segments restart its timer. */
static void message_is_not_ended(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin(ops[i] == SEG_READ_RESP);
        for (uint32_t at = 0; at < LENGTH; at += LENGTH / 4) {
            peer_says(&h, part(ops[i], at, LENGTH / 4));
            host_wait_until(&h, h.now_us + SECOND - 1);
            assert_int_equal(h.conn.life.state, CONN_READY);
        }
        assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);

        begin(ops[i] == SEG_READ_RESP);
        peer_says(&h, part(ops[i], 0, LENGTH / 2));
        for (uint32_t turn = 0; turn < 3; turn++) {
            host_wait_until(&h, h.now_us + SECOND / 4);
            peer_says(&h, ops[i] == SEG_WRITE ? part(SEG_SEND, turn * 8, 8) : part(SEG_WRITE, 0, LENGTH));
        }
        assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + SECOND / 4);
        host_wait_until(&h, h.now_us + SECOND / 4 - 1);
        assert_int_equal(h.conn.life.state, CONN_READY);
        host_wait_until(&h, h.now_us + 1);
        expect_end(&h, FAULT_STALLED);
    }
}

/* The peer always has an unfinished unit under way, but never one of that message. */
static void message_is_put_off(void **state)
{
    uint8_t stream[512];
    size_t n = 0, at = 10;

    (void)state;
    begin(false);
    peer_says(&h, part(SEG_SEND, 0, LENGTH / 2));
    for (int i = 0; i < 4; i++)
        n += peer_frames(&h, part(SEG_WRITE, 0, LENGTH), stream + n);
    host_hear(&h, stream, at);
    for (int turn = 1; turn <= 3; turn++, at += n / 4) {
        host_wait_until(&h, h.now_us + SECOND * 2 / 5);
        assert_int_equal(h.conn.life.state, CONN_READY);
        host_hear(&h, stream + at, n / 4);
    }
    expect_end(&h, FAULT_STALLED);
}

/* With a limit of 0 a message may wait without limit; a close in its middle is still an error. */
static void message_may_wait(void **state)
{
    (void)state;
    begin(false);
    h.conn.life.limits.stall_us = 0;
    peer_says(&h, part(SEG_SEND, 0, LENGTH / 2));
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    host_hear_end(&h);
    expect_end(&h, FAULT_CUT);
}

/* --- segments that this side holds back ---------------------------------------------------------------------- */

static struct seg numbered(struct seg seg, uint32_t number)
{
    seg.msg = number;
    seg.flags |= SEG_FIRST | SEG_LAST;
    seg.total = seg.length;
    return seg;
}

/* SEG-3.4-19: a Write of order 0 waits for the answer to a Read of the same octets. While the peer does not take the
 * answer, no timer runs, neither for the Write nor for what has begun behind it. */
static void we_hold_it_back(void **state)
{
    const struct conn_attr attr = host_attr();
    const struct seg read = {.op = SEG_READ_REQ};
    uint8_t unit[256];
    struct seg seg;
    void *buffer;

    (void)state;
    next_connection();
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS | RDDP_ACCESS_ZERO_BASED);
    buffer = calloc(1, qp_sequence_size(&h.side.qp, 4));
    qp_sequence(&h.side.qp, 1, 4, buffer);
    conn_init_passive(&h.conn, &wire_rdmatcp, &attr, h.now_us);
    assert_int_equal(conn_accept(&h.conn, &h.side.qp, 4, 4, NULL, 0, h.now_us), 0);
    h.peer = (struct wire_state){.crc = true, .id_known = true, .connection_id = 7};
    h.takes = 0;
    seg = numbered(read, 10);
    seg.read = (struct seg_read){.source_key = mr->key, .length = LENGTH};
    peer_says(&h, seg);
    seg = numbered(part(SEG_WRITE, 0, LENGTH), 11);
    host_hear(&h, unit, peer_frames(&h, seg, unit));
    assert_true(h.conn.held);
    for (int turn = 0; turn < 5; turn++) {
        assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
        host_wait_until(&h, h.now_us + SECOND);
    }
    peer_frames(&h, numbered(part(SEG_WRITE, 0, LENGTH), 12), unit);
    memcpy(h.stage + h.staged, unit, 10);
    h.staged += 10;
    h.takes = SIZE_MAX;
    host_pump(&h);
    host_hear(&h, NULL, 0);
    assert_false(h.conn.held);
    assert_int_equal(h.staged, 10);
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + SECOND);
    host_wait_until(&h, h.now_us + SECOND);
    expect_end(&h, FAULT_STALLED);
    conn_detach(&h.conn, h.now_us);
    h.side.qp.sequence = NULL;
    free(buffer);
}

/* --- closing ------------------------------------------------------------------------------------------------- */

static void peer_reads(uint32_t msn)
{
    const struct seg_read read = {.sink_key = 7, .length = LENGTH, .source_key = mr->key, .source_offset = mr->start};

    peer_says(&h, a_read_request(msn, &read));
}

/* Read Requests from before the close are answered; later ones do not delay the end. */
static void peer_reads_on(void **state)
{
    (void)state;
    begin(false);
    h.takes = 0;
    peer_reads(1);
    peer_reads(2);
    conn_close(&h.conn, h.now_us);
    peer_reads(3);
    h.takes = 10;
    host_pump(&h);
    assert_false(h.fin);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_seg(&h, SEG_READ_RESP);
    expect_seg(&h, SEG_READ_RESP);
    expect_silence(&h);
    assert_true(h.fin);
    host_hear_end(&h);
    expect_end(&h, FAULT_NONE);
}

/* A request of ours is never answered and the peer keeps reading: the state just before the limit, and at the limit. */
static void close_has_an_end(void **state)
{
    const uint64_t step = 1500000;
    uint64_t until;

    (void)state;
    begin(true);
    conn_close(&h.conn, h.now_us);
    until = h.now_us + LIFE_CLOSES * 2 * SECOND;
    for (uint32_t msn = 1; h.now_us < until - 1; msn++) {
        peer_reads(msn);
        expect_seg(&h, SEG_READ_RESP);
        host_wait_until(&h, h.now_us + step < until ? h.now_us + step : until - 1);
    }
    assert_int_equal(h.conn.life.state, CONN_DRAINING);
    host_wait_until(&h, until);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_STALLED);
}

/* The same for a side that has failed and whose Terminate is taken one octet at a time. */
static void last_words_have_an_end(void **state)
{
    uint64_t until;

    (void)state;
    begin(false);
    h.takes = 0;
    peer_says(&h, a_write(0x666, 0, octets, 4, SEG_LAST));
    assert_int_equal(h.conn.life.state, CONN_TERMINATING);
    h.conn.life.limits.close_us = 1000;
    h.conn.life.end_deadline_us = until = h.now_us + LIFE_CLOSES / 4 * 1000;
    while (h.now_us + 500 < until) {
        h.takes = 1;
        host_pump(&h);
        host_wait_until(&h, h.now_us + 500);
    }
    assert_int_equal(h.conn.life.state, CONN_TERMINATING);
    host_wait_until(&h, until);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(message_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(message_is_not_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(message_is_put_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(message_may_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(we_hold_it_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_reads_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_has_an_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(last_words_have_an_end, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_slow", tests, NULL, NULL);
}
