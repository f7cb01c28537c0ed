/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_end.c - every way in which a connection ends, and what becomes of the outstanding requests. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/conn_host.h"

static void begin(bool active)
{
    const struct conn_attr attr = host_attr();

    host_ready(&h, active, &attr);
    h.told = 0;
}

static struct seg terminate_of(const uint8_t *data, uint32_t length)
{
    return (struct seg){.op = SEG_TERMINATE, .flags = SEG_LAST, .msg = 1, .data = data, .length = length};
}

/* --- the peer's Terminate ------------------------------------------------------------------------------------ */

enum { WR_READ = 1, WR_WRITE, WR_SEND, WR_LATER };

/* The header copies follow the control word and the DDP Segment Length. siw sends the same with its bits swapped
 * (mpa.md 9.2). The opcode in the copied header identifies the message. */
static const struct {
    const char *name;
    uint32_t code;
    uint64_t culprit;
    enum rddp_wc_status status;
    uint8_t octets[8];
    uint32_t length;
} terminates[] = {
    {"read, bounds", 0x0101, WR_READ, RDDP_WC_REM_ACCESS_ERR, {0x01, 0x01, 0xe0, 0, 0, 46, 0x41, 0x41}, 52},
    {"read, bounds, siw", 0x0101, WR_READ, RDDP_WC_REM_ACCESS_ERR, {0x10, 0x01, 0x07, 0, 0, 0, 0x41, 0x41}, 52},
    {"read, opcode", 0x0206, WR_READ, RDDP_WC_REM_INV_REQ_ERR, {0x02, 0x06, 0xc0, 0, 0, 46, 0x41, 0x41}, 24},
    {"write, key", 0x1100, WR_WRITE, RDDP_WC_REM_ACCESS_ERR, {0x11, 0x00, 0xc0, 0, 0, 64, 0xc1, 0x40}, 20},
    {"write, key, siw", 0x1100, WR_WRITE, RDDP_WC_REM_ACCESS_ERR, {0x11, 0x00, 0x03, 0, 0, 50, 0xc1, 0x40}, 20},
    {"send, no receive", 0x1202, WR_SEND, RDDP_WC_REM_OP_ERR, {0x12, 0x02, 0xc0, 0, 0, 64, 0x41, 0x43}, 24},
    {"send, no receive, siw", 0x1202, WR_SEND, RDDP_WC_REM_OP_ERR, {0x21, 0x02, 0x03, 0, 0, 46, 0x41, 0x43}, 24},
    {"send, too long", 0x1205, WR_SEND, RDDP_WC_REM_INV_REQ_ERR, {0x12, 0x05, 0xc0, 0, 0, 64, 0x41, 0x43}, 24},
    {"send, too long, siw", 0x1205, WR_SEND, RDDP_WC_REM_INV_REQ_ERR, {0x21, 0x05, 0x03, 0, 0, 46, 0x41, 0x43}, 24},
    {"send, global", 0x0208, WR_SEND, RDDP_WC_REM_OP_ERR, {0x02, 0x08, 0xc0, 0, 0, 64, 0x41, 0x43}, 24},
    {"crc", 0x2002, 0, RDDP_WC_SUCCESS, {0x20, 0x02, 0, 0}, 4},
    {"crc, siw", 0x2002, 0, RDDP_WC_SUCCESS, {0x02, 0x02, 0, 0}, 4},
    {"catastrophe", 0x0000, 0, RDDP_WC_SUCCESS, {0, 0, 0, 0}, 4},
};

/* Posts a Read that none of the Terminates is about. */
static void post_later(struct mr *mr)
{
    struct rddp_sge piece = piece_of(mr, 0, 64);

    assert_int_equal(post_remote(&h.side, WR_LATER, RDDP_WR_RDMA_READ, 0, &piece, 1, 9, 0), 0);
}

static void post_three(struct mr *mr)
{
    struct rddp_sge piece = piece_of(mr, 0, 64);

    assert_int_equal(post_remote(&h.side, WR_READ, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &piece, 1, 9, 0), 0);
    assert_int_equal(post_remote(&h.side, WR_WRITE, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &piece, 1, 9, 0), 0);
    assert_int_equal(post(&h.side, WR_SEND, RDDP_WR_SEND, 0, &piece, 1), 0);
}

/* RDMAP-5.4-01 RDMAP-6.2-01: a Terminate is not answered, and the request that it blames is found among those that have
 * left. */
static void peer_terminates(void **state)
{
    uint8_t octets[52];
    struct mr *mr;

    (void)state;
    for (size_t i = 0; i < sizeof(terminates) / sizeof(terminates[0]); i++) {
        print_message("           %s\n", terminates[i].name);
        next_connection();
        begin(true);
        mr = engine_region(&h.engine, 64, ALL_ACCESS);
        post_three(mr);
        post_later(mr);
        host_pump(&h);
        expect_seg(&h, SEG_READ_REQ);
        expect_seg(&h, SEG_WRITE);
        expect_seg(&h, SEG_SEND);
        expect_seg(&h, SEG_READ_REQ);
        memset(octets, 0, sizeof(octets));
        memcpy(octets, terminates[i].octets, sizeof(terminates[i].octets));
        peer_says(&h, terminate_of(octets, terminates[i].length));
        expect_silence(&h);
        assert_true(h.fin);
        expect_end(&h, FAULT_TERMINATED);
        assert_int_equal(h.conn.life.peer_term, terminates[i].code);
        assert_true(h.conn.life.note.got == terminates[i].code);
        assert_non_null(h.conn.life.peer_term_text);
        for (uint64_t wr = WR_READ; wr <= WR_LATER; wr++)
            expect_wc(&h.side.send_cq, wr, wr == terminates[i].culprit ? terminates[i].status : RDDP_WC_WR_FLUSH_ERR);
        expect_quiet(&h.side.send_cq);
        host_hear_end(&h);
        assert_int_equal(h.conn.life.state, CONN_OVER);
    }
}

/* A peer that sent a Terminate reads no more: the output that waits for the link is dropped, and our stream ends. */
static void nothing_follows_a_terminate(void **state)
{
    static const uint8_t octets[4];

    (void)state;
    begin(true);
    h.takes = 10;
    post_three(engine_region(&h.engine, 64, ALL_ACCESS));
    host_pump(&h);
    peer_says(&h, terminate_of(octets, 4));
    h.takes = SIZE_MAX;
    host_pump(&h);
    assert_int_equal(h.sent_octets - h.read_octets, 10);
    assert_true(h.fin);
    expect_end(&h, FAULT_TERMINATED);
}

/* Both sides terminate at once: input that arrives while our Terminate leaves is ignored (RDMAP-5.4-01). */
static void terminates_cross(void **state)
{
    static const uint8_t octets[4];

    (void)state;
    begin(false);
    h.takes = 0;
    peer_says(&h, a_write(0x666, 0, octets, 4, SEG_LAST));
    assert_int_equal(h.conn.life.state, CONN_TERMINATING);
    peer_says(&h, terminate_of(octets, 4));
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_TERMINATING);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_terminate(&h, 0x1100);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_KEY);
    assert_int_equal(h.conn.life.peer_term, 0);
}

/* --- a good end ---------------------------------------------------------------------------------------------- */

/* Everything that was posted leaves, our Read and the peer's are answered, and only then our stream ends. */
static void close_drains(void **state)
{
    struct seg_read read = {.sink_key = 7, .length = 8};
    struct mr *mr;

    (void)state;
    begin(true);
    mr = engine_region(&h.engine, 64, ALL_ACCESS);
    read.source_key = mr->key;
    read.source_offset = mr->start;
    h.takes = 30;
    post_three(mr);
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    peer_says(&h, a_read_request(1, &read));
    h.takes = SIZE_MAX;
    host_pump(&h);
    assert_int_equal(h.conn.life.state, CONN_DRAINING);
    assert_false(h.fin);
    expect_seg(&h, SEG_READ_REQ);
    expect_seg(&h, SEG_WRITE);
    expect_seg(&h, SEG_SEND);
    assert_int_equal(expect_seg(&h, SEG_READ_RESP).length, 8);
    assert_int_equal(h.told, 0);
    peer_says(&h, a_read_response(mr->key, mr->start, terminates, 64, SEG_LAST));
    expect_wc(&h.side.send_cq, WR_READ, RDDP_WC_SUCCESS);
    expect_wc(&h.side.send_cq, WR_WRITE, RDDP_WC_SUCCESS);
    expect_quiet(&h.side.send_cq);
    assert_true(h.fin);
    assert_int_equal(h.conn.life.state, CONN_ENDING);
    expect_silence(&h);
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_NONE);
    assert_int_equal(h.told, CONN_NEWS_DISCONNECTED);
}

/* A Read Request that arrived before we close is answered before our stream ends, even if we have nothing else to send.
 */
static void close_answers(void **state)
{
    struct mr *mr = engine_region(&h.engine, 64, ALL_ACCESS);
    struct seg_read read = {.sink_key = 7, .length = 8, .source_key = mr->key, .source_offset = mr->start};

    (void)state;
    begin(false);
    h.takes = 0;
    peer_says(&h, a_read_request(1, &read));
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    assert_false(h.fin);
    h.takes = SIZE_MAX;
    host_pump(&h);
    assert_int_equal(expect_seg(&h, SEG_READ_RESP).length, 8);
    expect_silence(&h);
    assert_true(h.fin);
}

/* DDP-6.2-02, MPA-8.2-01, MPA-8.2-02, MPA-5.2-12: the peer ends its stream, at a boundary or not; ours follows. */
static void peer_closes(void **state)
{
    uint8_t unit[WIRE_UNIT_MAX];

    (void)state;
    for (size_t rest = 0; rest < 20; rest++) {
        next_connection();
        begin(rest & 1);
        post_three(engine_region(&h.engine, 64, ALL_ACCESS));
        h.takes = rest;
        peer_frames(&h, a_write(1, 0, unit, 0, SEG_LAST), unit);
        host_hear(&h, unit, rest);
        host_hear_end(&h);
        assert_true(h.fin);
        assert_int_equal(h.conn.life.state, CONN_OVER);
        expect_end(&h, rest ? FAULT_CUT : FAULT_NONE);
        assert_int_equal(h.told, CONN_NEWS_DISCONNECTED);
        for (uint64_t wr = WR_READ; wr <= WR_SEND; wr++)
            expect_wc(&h.side.send_cq, wr, RDDP_WC_WR_FLUSH_ERR);
    }
}

/* Both sides close before they know of each other, and one that still drains learns that the other has ended. */
static void both_close(void **state)
{
    (void)state;
    begin(true);
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    assert_true(h.fin);
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_NONE);

    next_connection();
    begin(true);
    post_three(engine_region(&h.engine, 64, ALL_ACCESS));
    host_pump(&h);
    conn_close(&h.conn, h.now_us);
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_CUT); /* its Read was not answered */
    expect_wc(&h.side.send_cq, WR_READ, RDDP_WC_WR_FLUSH_ERR);
}

/* A second close, or a close after the end, has no effect. */
static void close_again(void **state)
{
    (void)state;
    begin(true);
    for (int i = 0; i < 3; i++) {
        conn_close(&h.conn, h.now_us);
        host_pump(&h);
        host_hear_end(&h);
        conn_detach(&h.conn, h.now_us);
        conn_lost(&h.conn, FAULT_LOST);
        conn_tick(&h.conn, h.now_us + 100000000);
    }
    h.conn.life.qp = &h.side.qp;
    expect_end(&h, FAULT_NONE);
}

/* --- time ---------------------------------------------------------------------------------------------------- */

/* A close does not wait without limit for the answer to a Read, although each octet that leaves restarts the timer ...
 */
static void close_is_not_answered(void **state)
{
    uint64_t at;

    (void)state;
    begin(true);
    post_three(engine_region(&h.engine, 64, ALL_ACCESS));
    h.takes = 10;
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    host_wait_until(&h, h.now_us + 1500000);
    h.takes = SIZE_MAX;
    host_pump(&h);
    at = h.now_us + 2000000;
    assert_true(conn_deadline(&h.conn, h.now_us) == at);
    host_wait_until(&h, at - 1);
    assert_int_equal(h.conn.life.state, CONN_DRAINING);
    host_wait_until(&h, at);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_STALLED);
    expect_wc(&h.side.send_cq, WR_READ, RDDP_WC_WR_FLUSH_ERR);
}

/* ... and it does not wait without limit for the peer's FIN. */
static void end_is_not_answered(void **state)
{
    (void)state;
    begin(true);
    conn_close(&h.conn, h.now_us);
    host_pump(&h);
    assert_int_equal(h.conn.life.state, CONN_ENDING);
    host_wait_until(&h, h.now_us + 1999999);
    assert_int_equal(h.conn.life.state, CONN_ENDING);
    host_wait_until(&h, h.now_us + 1);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_end(&h, FAULT_NONE);
}

/* One timer covers a whole FPDU, however slowly its octets arrive; a complete FPDU stops the timer. */
static void peer_stalls(void **state)
{
    uint8_t unit[WIRE_UNIT_MAX];
    uint64_t at;
    size_t n;

    (void)state;
    for (int late = 0; late < 2; late++) {
        next_connection();
        begin(false);
        n = peer_frames(&h, a_write(1, 0, unit, 0, SEG_LAST), unit);
        assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
        host_hear(&h, unit, 3);
        at = h.now_us + 1000000;
        for (size_t i = 3; i < n - 1; i++) {
            host_wait_until(&h, h.now_us + 30000);
            host_hear(&h, unit + i, 1);
            assert_true(conn_deadline(&h.conn, h.now_us) == at);
        }
        host_wait_until(&h, at - 1);
        assert_int_equal(h.conn.life.state, CONN_READY);
        if (late)
            host_wait_until(&h, at);
        host_hear(&h, unit + n - 1, 1);
        host_wait_until(&h, at + 1000);
        if (late) {
            expect_end(&h, FAULT_STALLED);
            expect_silence(&h);
            assert_true(h.fin);
        } else {
            assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
        }
    }
}

/* The timer starts again with an FPDU that begins in the same octets in which another ends. */
static void peer_does_not_stall(void **state)
{
    uint8_t unit[256];
    size_t n = 0;

    (void)state;
    begin(false);
    for (int i = 0; i < 10; i++)
        n += peer_frames(&h, a_write(1, 0, unit, 0, SEG_LAST), unit + n);
    for (size_t i = 0; i + 10 < n; i += 10) {
        host_hear(&h, unit + i, 10);
        host_wait_until(&h, h.now_us + 499999);
        assert_int_equal(h.conn.life.state, CONN_READY);
    }
}

static void stalling_is_allowed(void **state)
{
    struct conn_attr attr = host_attr();

    (void)state;
    attr.stall_us = 0;
    host_ready(&h, false, &attr);
    host_hear(&h, "", 1);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(peer_terminates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_follows_a_terminate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(terminates_cross, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_drains, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(both_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_is_not_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(end_is_not_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_stalls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_does_not_stall, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stalling_is_allowed, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_end", tests, NULL, NULL);
}
