/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start.c - the MPA start-up: what each pair of frames agrees on, IRD and ORD, rejects, and limits of private data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/conn_host.h"

enum { M = 0x80, C = 0x40, R = 0x20, S = 0x10 };

static int accept_it(uint16_t ird, uint16_t ord, const void *data, uint16_t length)
{
    int error = conn_accept(&h.conn, &h.side.qp, ird, ord, data, length, h.now_us);

    host_pump(&h);
    return error;
}

static int reject_it(const void *data, uint16_t length)
{
    int error = conn_reject(&h.conn, data, length, h.now_us);

    host_pump(&h);
    return error;
}

/* Expect that the connection has sent exactly this start-up frame. */
static void expect_frame(const void *frame, size_t n)
{
    assert_int_equal(h.sent_octets - h.read_octets, n);
    assert_memory_equal(h.sent + h.read_octets, frame, n);
    h.read_octets += n;
}

static void expect_in_force(bool crc, bool tx_markers, bool rx_markers, uint8_t version)
{
    assert_int_equal(h.conn.agreed.crc, crc);
    assert_int_equal(h.conn.agreed.tx_markers, tx_markers);
    assert_int_equal(h.conn.agreed.rx_markers, rx_markers);
    assert_int_equal(h.conn.agreed.version, version);
    h.peer = (struct wire_state){.crc = crc, .tx_markers = rx_markers, .rx_markers = tx_markers, .version = version};
}

/* A Send in each direction arrives, framed as agreed. */
static void expect_talk(void)
{
    static const uint8_t word[] = "a word";
    struct mr *mr = engine_region(&h.engine, 64, LOCAL);
    struct rddp_sge half[2] = {piece_of(mr, 0, sizeof(word)), piece_of(mr, 32, 32)};
    struct seg seg;

    memcpy(mr->base, word, sizeof(word));
    assert_int_equal(post_recv(&h.side, 1, &half[1], 1), 0);
    assert_int_equal(post(&h.side, 2, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &half[0], 1), 0);
    host_wait_until(&h, h.now_us + h.conn.attr.first_delay_us);
    peer_says(&h, a_send(1, 0, word, sizeof(word), SEG_LAST));
    expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_memory_equal(mr->base + 32, word, sizeof(word));
    seg = expect_seg(&h, SEG_SEND);
    assert_int_equal(seg.length, sizeof(word));
    assert_memory_equal(seg.data, word, sizeof(word));
    expect_wc(&h.side.send_cq, 2, RDDP_WC_SUCCESS);
    expect_silence(&h);
}

/* --- what is in force ---------------------------------------------------------------------------------------- */

/* One of 32 combinations: bits 0 and 1 are the C and M of the peer, bits 2 and 3 our own, bit 4 selects the
 * revision. */
struct mix {
    bool peer_crc, peer_markers, crc, markers;
    uint8_t revision;
};

static struct mix mix_of(unsigned i)
{
    return (struct mix){i & 1, i & 2, i & 4, i & 8, (uint8_t)(i / 16 + 1)};
}

/* MPA-3.2-01, MPA-8.1-04, M44-04, DDP-6.1-01, M44-02, M44-03, M44-05, M44-09, M44-14, M65-02, M65-03, M65-04,
 * MPA-8.1-01: what the responder replies and agrees on. */
static void responder_agrees(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        struct mix mix = mix_of(i);
        struct conn_attr attr = host_attr();
        uint8_t flags = (uint8_t)((mix.peer_markers ? M : 0) | (mix.peer_crc ? C : 0));
        uint8_t answer = (uint8_t)((mix.markers ? M : 0) | (mix.crc || mix.peer_crc ? C : 0));
        uint8_t frame[MPA_FRAME_MAX], want[MPA_FRAME_MAX];
        size_t n, m;

        attr.crc = mix.crc;
        attr.markers = mix.markers;
        n = mix.revision == 1 ? start_frame(frame, false, flags, 1, "hello", 5)
                              : start_frame_enhanced(frame, false, flags | S, 3, 2, "hello", 5);
        m = mix.revision == 1 ? start_frame(want, true, answer, 1, "you", 3)
                              : start_frame_enhanced(want, true, answer | S, 4, 3, "you", 3);
        next_connection();
        host_passive(&h, &attr);
        assert_int_equal(h.told, 0);
        expect_silence(&h);
        host_hear(&h, frame, n);
        assert_int_equal(h.told, CONN_NEWS_REQUEST);
        assert_int_equal(h.conn.start.peer.private_length, 5);
        assert_memory_equal(h.conn.start.peer.private_data, "hello", 5);
        expect_silence(&h);
        assert_int_equal(accept_it(4, 4, "you", 3), 0);
        expect_frame(want, m);
        assert_int_equal(h.told, CONN_NEWS_REQUEST | CONN_NEWS_ESTABLISHED);
        assert_int_equal(h.conn.start.revision, mix.revision);
        expect_in_force(mix.crc || mix.peer_crc, mix.peer_markers, mix.markers, 1);
        expect_talk();
    }
}

/* M44-02 M44-03 M44-05 M44-09 M44-20 M65-01: what the initiator requests and agrees on. */
static void initiator_agrees(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        struct mix mix = mix_of(i);
        struct conn_attr attr = host_attr();
        uint8_t flags = (uint8_t)((mix.markers ? M : 0) | (mix.crc ? C : 0));
        uint8_t answer = (uint8_t)((mix.peer_markers ? M : 0) | (mix.peer_crc ? C : 0));
        uint8_t frame[MPA_FRAME_MAX], want[MPA_FRAME_MAX];
        size_t n, m;

        attr.crc = mix.crc;
        attr.markers = mix.markers;
        attr.revision = mix.revision;
        m = mix.revision == 1 ? start_frame(want, false, flags, 1, "hello", 5)
                              : start_frame_enhanced(want, false, flags | S, 4, 4, "hello", 5);
        n = mix.revision == 1 ? start_frame(frame, true, answer, 1, "you", 3)
                              : start_frame_enhanced(frame, true, answer | S, 4, 4, "you", 3);
        next_connection();
        host_active(&h, &attr, "hello", 5);
        expect_frame(want, m);
        assert_int_equal(h.told, 0);
        host_hear_slowly(&h, frame, n);
        assert_int_equal(h.told, CONN_NEWS_ESTABLISHED);
        assert_int_equal(h.conn.start.peer.private_length, 3);
        assert_memory_equal(h.conn.start.peer.private_data, "you", 3);
        expect_in_force(mix.crc || mix.peer_crc, mix.peer_markers, mix.markers, 1);
        expect_talk();
    }
}

/* M44-21: a peer of revision 0 (RDMA Consortium) gets markers and CRC both ways, and DDP and RDMAP version 0. */
static void revision_0(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];
    size_t n = start_frame(frame, false, M | C, 0, NULL, 0);

    (void)state;
    attr.crc = false;
    host_passive(&h, &attr);
    host_hear(&h, frame, n);
    assert_int_equal(accept_it(4, 4, NULL, 0), 0);
    n = start_frame(frame, true, M | C, 0, NULL, 0);
    expect_frame(frame, n);
    expect_in_force(true, true, true, 0);
    expect_talk();
}

/* MPA-8.1-02, MPA-8.1-03, MPA-7.1-09: without start-up frames the stream is framed from its first octet, which
 * begins the zero marker, and neither side waits for the other. */
static void immediate(void **state)
{
    static const uint8_t zero_marker[4];
    struct conn_attr attr = host_attr();

    (void)state;
    attr.immediate = true;
    attr.crc = false;
    for (int active = 0; active < 2; active++) {
        next_connection();
        if (active) {
            host_active(&h, &attr, NULL, 0);
        } else {
            host_passive(&h, &attr);
            assert_int_equal(h.told, CONN_NEWS_REQUEST);
            assert_int_equal(conn_wants(&h.conn, h.now_us), 0);
            assert_int_equal(accept_it(4, 4, NULL, 0), 0);
        }
        assert_true(h.told & CONN_NEWS_ESTABLISHED);
        expect_silence(&h);
        expect_in_force(true, true, true, 0);
        expect_talk();
        assert_memory_equal(h.sent, zero_marker, sizeof(zero_marker));
    }
}

static void immediate_reject(void **state)
{
    struct conn_attr attr = host_attr();

    (void)state;
    attr.immediate = true;
    host_passive(&h, &attr);
    assert_int_equal(reject_it(NULL, 0), 0);
    expect_silence(&h);
    assert_true(h.fin);
}

/* --- IRD and ORD --------------------------------------------------------------------------------------------- */

/* M65-05 M65-06 M65-08: the responder accepts with IRD 4 and ORD 4. */
static void responder_reads(void **state)
{
    static const struct {
        uint16_t ird, ord;           /* in the request */
        uint16_t says_ird, says_ord; /* in the reply */
        uint16_t has_ird, has_ord;   /* used by the queue pair */
    } rows[] = {
        {16, 8, 4, 4, 4, 4},          {2, 2, 4, 2, 4, 2},
        {0, 0, 4, 0, 4, 0},           {4, 200, 4, 4, 4, 4},
        {0x3fff, 1, 4, 0x3fff, 4, 4}, {1, 0x3fff, 0x3fff, 1, 4, 1},
        {0x3ffe, 0x3ffe, 4, 4, 4, 4}, {0x3fff, 0x3fff, 0x3fff, 0x3fff, 4, 4},
    };
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        next_connection();
        host_passive(&h, &attr);
        n = start_frame_enhanced(frame, false, C | S, rows[i].ird, rows[i].ord, NULL, 0);
        host_hear(&h, frame, n);
        assert_int_equal(h.conn.start.peer.ird, rows[i].ird);
        assert_int_equal(h.conn.start.peer.ord, rows[i].ord);
        assert_int_equal(accept_it(4, 4, NULL, 0), 0);
        n = start_frame_enhanced(frame, true, C | S, rows[i].says_ird, rows[i].says_ord, NULL, 0);
        expect_frame(frame, n);
        assert_int_equal(h.conn.start.ird, rows[i].has_ird);
        assert_int_equal(h.conn.start.ord, rows[i].has_ord);
        assert_int_equal(h.side.qp.attr.ird, rows[i].has_ird);
        assert_int_equal(h.side.qp.attr.ord, rows[i].has_ord);
    }
}

/* M65-05 M65-07 M65-08: the initiator requests IRD 4 and ORD 4. It answers an ORD above its IRD with the Terminate
 * of RFC 6581 9.1 as its first FPDU. */
static void initiator_reads(void **state)
{
    static const struct {
        uint16_t ird, ord; /* in the reply */
        uint16_t has_ord;
        bool ends;
    } rows[] = {
        {16, 4, 4, false}, {2, 2, 2, false},  {0, 0, 0, false},     {0x3fff, 0x3fff, 4, false},
        {4, 5, 4, true},   {0, 200, 0, true}, {4, 0x3ffe, 4, true},
    };
    static const uint8_t terminate[22] = {0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x06, 0, 0};
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        next_connection();
        host_active(&h, &attr, NULL, 0);
        h.read_octets = h.sent_octets;
        n = start_frame_enhanced(frame, true, C | S, rows[i].ird, rows[i].ord, NULL, 0);
        host_hear(&h, frame, n);
        assert_int_equal(h.conn.start.peer.ird, rows[i].ird);
        assert_int_equal(h.conn.start.peer.ord, rows[i].ord);
        assert_int_equal(h.conn.start.ird, 4);
        assert_int_equal(h.conn.start.ord, rows[i].has_ord);
        h.peer = (struct wire_state){.crc = true, .version = 1};
        if (rows[i].ends) {
            expect_ulpdu(&h, terminate, sizeof(terminate));
            assert_true(h.fin);
            assert_int_equal(h.told, CONN_NEWS_FAILED);
            expect_end(&h, FAULT_IRD);
        } else {
            assert_int_equal(h.told, CONN_NEWS_ESTABLISHED);
        }
        expect_silence(&h);
    }
}

/* --- a reject ------------------------------------------------------------------------------------------------ */

/* M44-14 M44-15 M65-06: after a reject the responder ends its stream, waits for the end of the stream of the peer,
 * and sends no FPDU. */
static void responder_rejects(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];
    size_t n;

    (void)state;
    for (uint8_t revision = 1; revision <= 2; revision++) {
        next_connection();
        host_passive(&h, &attr);
        n = revision == 1 ? start_frame(frame, false, 0, 1, NULL, 0)
                          : start_frame_enhanced(frame, false, S, 1, 1, NULL, 0);
        host_hear(&h, frame, n);
        assert_int_equal(reject_it("no room", 7), 0);
        n = revision == 1 ? start_frame(frame, true, C | R, 1, "no room", 7)
                          : start_frame_enhanced(frame, true, C | R | S, 4, 4, "no room", 7);
        expect_frame(frame, n);
        assert_true(h.fin);
        assert_int_equal(h.conn.life.state, CONN_ENDING);
        host_hear(&h, "whatever", 8);
        expect_silence(&h);
        host_hear_end(&h);
        assert_int_equal(h.conn.life.state, CONN_OVER);
    }
}

static void initiator_is_rejected(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];
    size_t n;

    (void)state;
    for (uint8_t revision = 1; revision <= 2; revision++) {
        next_connection();
        attr.revision = revision;
        assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
        host_active(&h, &attr, NULL, 0);
        h.read_octets = h.sent_octets;
        n = revision == 1 ? start_frame(frame, true, R | C, 1, "no room", 7)
                          : start_frame_enhanced(frame, true, R | C | S, 9, 10, "no room", 7);
        host_hear_slowly(&h, frame, n);
        assert_int_equal(h.told, CONN_NEWS_REJECTED);
        assert_int_equal(h.conn.start.peer.private_length, 7);
        assert_memory_equal(h.conn.start.peer.private_data, "no room", 7);
        assert_int_equal(h.conn.start.peer.ord, revision == 1 ? 0 : 10);
        expect_wc(&h.side.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
        host_wait_until(&h, h.now_us + attr.first_delay_us);
        expect_silence(&h);
        assert_true(h.fin);
        host_hear_end(&h);
        assert_int_equal(h.conn.life.state, CONN_OVER);
        expect_end(&h, FAULT_REJECTED);
    }
}

/* --- private data -------------------------------------------------------------------------------------------- */

/* M44-12 M44-18 */
static void private_data_limits(void **state)
{
    static const uint8_t data[MPA_PRIVATE_MAX + 1];
    struct conn_attr attr = host_attr();
    struct conn c;
    uint8_t frame[MPA_FRAME_MAX + 1];

    (void)state;
    for (uint8_t revision = 1; revision <= 2; revision++) {
        uint16_t most = revision == 1 ? 512 : 508;

        attr.revision = revision;
        assert_int_equal(conn_init_active(&c, &wire_iwarp, &attr, &h.side.qp, data, most, h.now_us), 0);
        assert_int_equal(conn_init_active(&c, &wire_iwarp, &attr, &h.side.qp, data, most + 1, h.now_us), -EINVAL);
        next_connection();
        host_passive(&h, &attr);
        host_hear(&h, frame,
                  revision == 1 ? start_frame(frame, false, 0, 1, data, most)
                                : start_frame_enhanced(frame, false, S, 1, 1, data, most));
        assert_int_equal(h.conn.start.peer.private_length, most);
        assert_int_equal(reject_it(data, most + 1), -EINVAL);
        assert_int_equal(accept_it(4, 4, data, most + 1), -EINVAL);
        assert_int_equal(h.conn.life.state, CONN_WAIT_ANSWER);
        expect_silence(&h);
        assert_int_equal(accept_it(4, 4, data, most), 0);
        assert_int_equal(h.sent_octets, MPA_FRAME_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(responder_agrees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(initiator_agrees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(revision_0, set_up, tear_down),
        cmocka_unit_test_setup_teardown(immediate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(immediate_reject, set_up, tear_down),
        cmocka_unit_test_setup_teardown(responder_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(initiator_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(responder_rejects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(initiator_is_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(private_data_limits, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
