/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start_rtr.c - which side may send first: the responder waits (RFC 5044 7.1.2), the initiator sends a
 * ready-to-receive message (RFC 6581). */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/conn_host.h"

/* A and B are the flags of the IRD word. The same bits of the ORD word are C and D of RFC 6581. */
enum { C = 0x40, S = 0x10, A = 0x8000, B = 0x4000 };

enum { RTR_ALL = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ };

/* The three ready-to-receive messages on the wire. */
static const uint8_t rtr_send[18] = {0x41, 0x43, [13] = 1};
static const uint8_t rtr_write[14] = {0xc1, 0x40, [5] = 1};
static const uint8_t rtr_read[46] = {0x41, 0x41, [9] = 1, [13] = 1, [21] = 1, [37] = 1};

static struct conn_attr peer_attr(unsigned rtr)
{
    struct conn_attr attr = host_attr();

    attr.peer_to_peer = true;
    attr.rtr = rtr;
    return attr;
}

static size_t frame_with(uint8_t *frame, bool reply, uint16_t ird, uint16_t ord, unsigned rtr)
{
    return start_frame_enhanced(frame, reply, C | S, (uint16_t)(A | (rtr & MPA_RTR_SEND ? B : 0) | ird),
                                (uint16_t)((rtr & MPA_RTR_WRITE ? A : 0) | (rtr & MPA_RTR_READ ? B : 0) | ord), NULL,
                                0);
}

/* Connect an initiator with these attributes and deliver the reply; the clock does not move. */
static void initiate(const struct conn_attr *attr, uint16_t ird, uint16_t ord, unsigned rtr)
{
    uint8_t frame[MPA_FRAME_MAX];

    next_connection();
    host_active(&h, attr, NULL, 0);
    h.read_octets = h.sent_octets;
    h.peer = (struct wire_state){.crc = true, .version = 1};
    host_hear(&h, frame, frame_with(frame, true, ird, ord, rtr));
}

/* Connect a responder that accepts a request for the ready-to-receive messages `asked`, with IRD 4 and ORD 4. */
static void respond(unsigned own, unsigned asked)
{
    struct conn_attr attr = peer_attr(own);
    uint8_t frame[MPA_FRAME_MAX];

    next_connection();
    host_passive(&h, &attr);
    host_hear(&h, frame, frame_with(frame, false, 4, 4, asked));
    assert_int_equal(conn_accept(&h.conn, &h.side.qp, 4, 4, NULL, 0, h.now_us), 0);
    h.peer = (struct wire_state){.crc = true, .version = 1};
}

static void expect_reply(uint16_t ird, uint16_t ord, unsigned rtr)
{
    uint8_t want[MPA_FRAME_MAX];
    size_t n = frame_with(want, true, ird, ord, rtr);

    assert_true(h.sent_octets - h.read_octets >= n);
    assert_memory_equal(h.sent + h.read_octets, want, n);
    h.read_octets += n;
}

static void expect_rtr(unsigned rtr)
{
    if (rtr == MPA_RTR_SEND)
        expect_ulpdu(&h, rtr_send, sizeof(rtr_send));
    else if (rtr == MPA_RTR_WRITE)
        expect_ulpdu(&h, rtr_write, sizeof(rtr_write));
    else
        expect_ulpdu(&h, rtr_read, sizeof(rtr_read));
}

/* Deliver the ready-to-receive message of the peer. */
static void hear_rtr(unsigned rtr)
{
    struct seg seg = {.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = 1, .read = {.sink_key = 1, .source_key = 1}};
    static const uint8_t nothing;

    seg.data = &nothing;
    if (rtr != MPA_RTR_READ)
        seg.op = rtr == MPA_RTR_SEND ? SEG_SEND : SEG_WRITE;
    peer_says(&h, seg);
}

/* --- the initiator ------------------------------------------------------------------------------------------- */

/* M65-01 M65-09 M65-10: every pair of offers. The initiator sends the ready-to-receive message first_delay_us after
 * the reply and not a microsecond earlier. A Send posted before follows with the next message number. If the offers
 * have nothing in common, the initiator sends Terminate 0x2007 at once. */
static void initiator_says_ready(void **state)
{
    static const uint8_t term[22] = {0x41, 0x47, [9] = 2, [13] = 1, [18] = 0x20, [19] = 0x07};
    struct conn_attr attr;

    (void)state;
    for (unsigned pair = 0; pair < 64; pair++) {
        unsigned own = pair & 7, peer = pair >> 3, common = own & peer;
        unsigned chosen = common & MPA_RTR_WRITE ? MPA_RTR_WRITE : common & MPA_RTR_SEND ? MPA_RTR_SEND : common;

        attr = peer_attr(own);
        initiate(&attr, 4, 4, peer);
        assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
        host_pump(&h);
        if (!common) {
            expect_ulpdu(&h, term, sizeof(term));
            expect_silence(&h);
            assert_true(h.fin);
            assert_int_equal(h.told, CONN_NEWS_FAILED);
            expect_end(&h, FAULT_RTR);
            continue;
        }
        assert_int_equal(h.told, CONN_NEWS_ESTABLISHED);
        host_wait_until(&h, HOST_START_US + attr.first_delay_us - 1);
        expect_silence(&h);
        host_wait_until(&h, HOST_START_US + attr.first_delay_us);
        expect_rtr(chosen);
        if (chosen == MPA_RTR_READ)
            peer_says(&h, a_read_response(1, 0, term, 0, SEG_LAST));
        assert_int_equal(expect_seg(&h, SEG_SEND).msg, chosen == MPA_RTR_SEND ? 2 : 1);
        expect_silence(&h);
    }
}

/* M65-09: the initiator asked for peer-to-peer mode (A), and the reply lacks A. */
static void responder_knows_no_peers(void **state)
{
    struct conn_attr attr = peer_attr(RTR_ALL);
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    host_active(&h, &attr, NULL, 0);
    h.read_octets = h.sent_octets;
    h.peer = (struct wire_state){.crc = true, .version = 1};
    host_hear(&h, frame, start_frame_enhanced(frame, true, C | S, B | 4, A | B | 4, NULL, 0));
    expect_terminate(&h, 0x2007);
    expect_end(&h, FAULT_RTR);
}

/* If the initiator did not ask for peer-to-peer mode, it ignores A in the reply and sends no ready-to-receive
 * message. */
static void not_asked_for(void **state)
{
    struct conn_attr attr = peer_attr(RTR_ALL);

    (void)state;
    attr.peer_to_peer = false;
    initiate(&attr, 4, 4, RTR_ALL);
    host_wait_until(&h, h.now_us + attr.first_delay_us);
    expect_silence(&h);
    assert_int_equal(h.told, CONN_NEWS_ESTABLISHED);
}

/* Every initiator delays its first FPDU, because siw does not process an FPDU that directly follows the reply. */
static void first_fpdu_waits(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    attr.revision = 1;
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
    host_active(&h, &attr, NULL, 0);
    h.read_octets = h.sent_octets;
    h.peer = (struct wire_state){.crc = true, .version = 1};
    host_wait_until(&h, h.now_us + 700);
    host_hear(&h, frame, start_frame(frame, true, C, 1, NULL, 0));
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + attr.first_delay_us);
    host_wait_until(&h, HOST_START_US + 700 + attr.first_delay_us - 1);
    expect_silence(&h);
    host_wait_until(&h, HOST_START_US + 700 + attr.first_delay_us);
    expect_seg(&h, SEG_SEND);
    assert_true(conn_deadline(&h.conn, h.now_us) == HOST_START_US + 700 + 10 * attr.first_delay_us); /* start_nudge.c */
}

/* The zero-length Read counts as a Read: with an ORD of 1 the Read of the application waits until it is answered
 * (M65-10 RDMAP-6.1-01). The response to the zero-length Read causes no completion. */
static void read_takes_its_place(void **state)
{
    struct conn_attr attr = peer_attr(MPA_RTR_READ);
    struct rddp_sge sink;
    struct seg seg;

    (void)state;
    attr.ord = 1;
    initiate(&attr, 4, 4, RTR_ALL);
    sink = piece_of(engine_region(&h.engine, 64, ALL_ACCESS), 0, 4);
    assert_int_equal(post_remote(&h.side, 1, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sink, 1, 9, 0), 0);
    host_wait_until(&h, h.now_us + attr.first_delay_us);
    expect_rtr(MPA_RTR_READ);
    expect_silence(&h);
    peer_says(&h, a_read_response(1, 0, "", 0, SEG_LAST));
    seg = expect_seg(&h, SEG_READ_REQ);
    assert_int_equal(seg.msg, 2);
    expect_silence(&h);
    peer_says(&h, a_read_response(sink.lkey, sink.addr, "data", 4, SEG_LAST));
    expect_wc(&h.side.send_cq, 1, RDDP_WC_SUCCESS);
    expect_quiet(&h.side.send_cq);
}

/* An initiator with an ORD of 0 cannot use a Read as its ready-to-receive message (RFC 6581 9.1). */
static void no_read_without_ord(void **state)
{
    struct conn_attr attr = peer_attr(MPA_RTR_READ);

    (void)state;
    initiate(&attr, 0, 4, RTR_ALL);
    expect_terminate(&h, 0x2007);
    expect_end(&h, FAULT_RTR);
    attr.rtr = MPA_RTR_READ | MPA_RTR_SEND;
    attr.ord = 0;
    initiate(&attr, 4, 4, MPA_RTR_READ | MPA_RTR_SEND);
    host_wait_until(&h, h.now_us + attr.first_delay_us);
    expect_rtr(MPA_RTR_SEND);
}

/* If the connection is closed, detached or fails early, the initiator still sends the ready-to-receive message
 * first. A kernel peer that does not receive this message hangs (siw 6.1, iwcm.c). */
static void ready_is_said_before_the_end(void **state)
{
    struct conn_attr attr = peer_attr(RTR_ALL);
    const struct fault_note full = {.fault = FAULT_CQ_FULL};

    (void)state;
    for (int how = 0; how < 3; how++) {
        initiate(&attr, 4, 4, RTR_ALL);
        assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
        if (how == 0)
            conn_close(&h.conn, h.now_us);
        else if (how == 1)
            conn_detach(&h.conn, h.now_us);
        else
            qp_fail(&h.side.qp, &full);
        host_pump(&h);
        expect_silence(&h);
        assert_false(h.fin);
        host_wait_until(&h, h.now_us + attr.first_delay_us);
        expect_rtr(MPA_RTR_WRITE);
        if (how == 0)
            expect_seg(&h, SEG_SEND);
        if (how == 2)
            expect_terminate(&h, 0x0000);
        expect_silence(&h);
        assert_true(h.fin);
        host_hear_end(&h);
        assert_int_equal(h.conn.life.state, CONN_OVER);
    }
}

/* The link takes one octet at a time: the ready-to-receive message and the Send keep their order. */
static void link_is_narrow(void **state)
{
    struct conn_attr attr = peer_attr(RTR_ALL);

    (void)state;
    initiate(&attr, 4, 4, RTR_ALL);
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, NULL, 0), 0);
    h.takes = 0;
    host_wait_until(&h, h.now_us + attr.first_delay_us);
    for (int i = 0; i < 20 + 24; i++) {
        expect_quiet(&h.side.send_cq);
        h.takes = 1;
        host_pump(&h);
    }
    expect_rtr(MPA_RTR_WRITE);
    expect_seg(&h, SEG_SEND);
    expect_wc(&h.side.send_cq, 1, RDDP_WC_SUCCESS);
    expect_silence(&h);
}

/* --- the responder ------------------------------------------------------------------------------------------- */

/* M44-16 M65-09 M65-10 M65-13: the responder replies with the message that both sides support and waits for it. Only
 * then is the connection established and does the responder send. A ready-to-receive Send uses up no receive. */
static void responder_waits(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 56; pair++) {
        unsigned own = pair % 7 + 1, asked = pair / 7, common = own & asked;
        unsigned chosen = common & MPA_RTR_WRITE ? MPA_RTR_WRITE : common & MPA_RTR_SEND ? MPA_RTR_SEND : common;

        respond(own, asked);
        assert_int_equal(post_recv(&h.side, 1, NULL, 0), 0);
        assert_int_equal(post(&h.side, 2, RDDP_WR_SEND, RDDP_SEND_SIGNALED, NULL, 0), 0);
        host_pump(&h);
        expect_reply(4, 4, common ? chosen : own);
        host_wait_until(&h, h.now_us + 4999999);
        expect_silence(&h);
        assert_int_equal(h.told, CONN_NEWS_REQUEST);
        if (!common)
            continue;
        hear_rtr(chosen);
        assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_ESTABLISHED);
        expect_seg(&h, SEG_SEND);
        if (chosen == MPA_RTR_READ)
            assert_int_equal(expect_seg(&h, SEG_READ_RESP).length, 0);
        expect_silence(&h);
        expect_wc(&h.side.send_cq, 2, RDDP_WC_SUCCESS);
        expect_quiet(&h.side.recv_cq);
        peer_says(&h, a_send(chosen == MPA_RTR_SEND ? 2 : 1, 0, "", 0, SEG_LAST));
        expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
        host_wait_until(&h, h.now_us + 10000000);
        assert_int_equal(h.conn.life.state, CONN_READY);
    }
}

/* M44-16 without a ready-to-receive message: the responder sends nothing before it has received one whole valid FPDU
 * of any kind. */
static void responder_waits_for_any_fpdu(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX], unit[WIRE_UNIT_MAX];
    size_t n;

    (void)state;
    attr.stall_us = 0;
    assert_int_equal(post(&h.side, 2, RDDP_WR_SEND, RDDP_SEND_SIGNALED, NULL, 0), 0);
    host_passive(&h, &attr);
    host_hear(&h, frame, start_frame(frame, false, C, 1, NULL, 0));
    assert_int_equal(conn_accept(&h.conn, &h.side.qp, 4, 4, NULL, 0, h.now_us), 0);
    host_pump(&h);
    h.read_octets = h.sent_octets;
    h.peer = (struct wire_state){.crc = true, .version = 1};
    assert_true(h.told & CONN_NEWS_ESTABLISHED);
    host_wait_until(&h, h.now_us + 100000000);
    n = peer_frames(&h, a_write(1, 0, unit, 0, SEG_LAST), unit);
    host_hear_slowly(&h, unit, n - 1);
    expect_silence(&h);
    host_hear(&h, unit + n - 1, 1);
    expect_seg(&h, SEG_SEND);
    expect_wc(&h.side.send_cq, 2, RDDP_WC_SUCCESS);
}

/* M44-16: a responder that fails while it waits sends no Terminate. */
static void responder_fails_in_silence(void **state)
{
    const struct fault_note full = {.fault = FAULT_CQ_FULL};

    (void)state;
    respond(RTR_ALL, RTR_ALL);
    host_pump(&h);
    h.read_octets = h.sent_octets;
    qp_fail(&h.side.qp, &full);
    host_pump(&h);
    expect_silence(&h);
    assert_true(h.fin);
    expect_end(&h, FAULT_CQ_FULL);
}

/* M44-17: one timer covers the whole start-up including the ready-to-receive message. */
static void ready_never_comes(void **state)
{
    (void)state;
    respond(RTR_ALL, RTR_ALL);
    host_pump(&h);
    h.read_octets = h.sent_octets;
    host_wait_until(&h, HOST_START_US + 4999999);
    assert_int_equal(h.conn.life.state, CONN_READY);
    host_wait_until(&h, HOST_START_US + 5000000);
    expect_silence(&h);
    assert_true(h.fin);
    expect_end(&h, FAULT_STALLED);
    assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_FAILED);
}

/* An initiator that supports none of the messages sends a Terminate. The responder then reports a failed connection
 * that was never established (M65-07 M65-10), for the octets of the RFC and those of siw. */
static void terminate_instead(void **state)
{
    static const uint8_t words[][4] = {{0x20, 0x07}, {0x20, 0x06}, {0x02, 0x07}, {0x02, 0x06}};
    struct seg seg = {.op = SEG_TERMINATE, .flags = SEG_LAST, .msg = 1, .length = 4};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        respond(RTR_ALL, RTR_ALL);
        host_pump(&h);
        h.read_octets = h.sent_octets;
        seg.data = words[i];
        peer_says(&h, seg);
        expect_silence(&h);
        assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_FAILED);
        expect_end(&h, FAULT_TERMINATED);
        assert_int_equal(h.conn.life.peer_term, 0x2000 | words[i][1]);
    }
}

/* The initiator ends its stream in place of the ready-to-receive message, because its process is over. If our reply has
 * left, the connection was established and is over; before, it failed, and says why. */
static void end_instead(void **state)
{
    (void)state;
    respond(RTR_ALL, RTR_ALL);
    host_pump(&h);
    h.read_octets = h.sent_octets;
    host_hear_end(&h);
    expect_silence(&h);
    assert_true(h.fin);
    assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_ESTABLISHED | CONN_NEWS_DISCONNECTED);
    expect_end(&h, FAULT_NONE);

    for (size_t takes = 0; takes <= 10; takes += 10) {
        respond(RTR_ALL, RTR_ALL);
        h.takes = takes;
        if (takes)
            host_pump(&h);
        host_hear_end(&h);
        assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_FAILED);
        expect_end(&h, FAULT_CUT);
    }
}

/* It ends its stream in the middle of the message. */
static void cut_instead(void **state)
{
    (void)state;
    respond(RTR_ALL, RTR_ALL);
    host_pump(&h);
    host_hear(&h, rtr_write, 5);
    host_hear_end(&h);
    assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_FAILED);
    expect_end(&h, FAULT_CUT);
}

/* Sends that are no ready-to-receive message: one with a later MSN (RFC 5041 4.3) and one with an offset above 0. */
static void not_quite_ready(void **state)
{
    struct seg rows[] = {a_send(2, 0, "", 0, SEG_LAST), a_send(1, 4, "", 0, SEG_LAST)};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        respond(MPA_RTR_SEND, MPA_RTR_SEND);
        host_pump(&h);
        h.read_octets = h.sent_octets;
        peer_says(&h, rows[i]);
        expect_terminate(&h, i == 0 ? 0x1203 : 0x1202);
        assert_false(h.told & CONN_NEWS_ESTABLISHED);
        expect_end(&h, i == 0 ? FAULT_MSN : FAULT_NO_RECEIVE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(initiator_says_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(responder_knows_no_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_fpdu_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(read_takes_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_read_without_ord, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ready_is_said_before_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(link_is_narrow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(responder_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(responder_waits_for_any_fpdu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(responder_fails_in_silence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ready_never_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(terminate_instead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(end_instead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_instead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_quite_ready, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("start_rtr", tests, NULL, NULL);
}
