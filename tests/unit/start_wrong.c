/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start_wrong.c - start-up frames that are malformed, too early, too late, or cut off by the end of the stream. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/conn_host.h"

enum { M = 0x80, C = 0x40, R = 0x20, S = 0x10 };

/* Start a connection that waits for the first frame of the peer. An initiator has a Send posted, which it never
 * sends. */
static void begin(bool active, uint8_t revision)
{
    struct conn_attr attr = host_attr();

    attr.revision = revision;
    next_connection();
    if (!active) {
        host_passive(&h, &attr);
        return;
    }
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
    host_active(&h, &attr, NULL, 0);
    h.read_octets = h.sent_octets;
}

/* Expect that the connection is over, has sent nothing (RFC 5044 8, error 4), and has told the application the
 * fault. */
static void expect_closed(enum fault fault)
{
    expect_end(&h, fault);
    assert_int_equal(h.told, CONN_NEWS_FAILED);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    assert_int_equal(conn_wants(&h.conn, h.now_us), 0);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    expect_silence(&h);
    assert_false(h.fin);
    if (h.conn.life.active)
        expect_wc(&h.side.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
}

/* --- wrong --------------------------------------------------------------------------------------------------- */

/* M44-10 M44-13: the connection fails at the first wrong octet of the key. The key of the other role is wrong, too. */
static void key_is_wrong(void **state)
{
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (int active = 0; active < 2; active++) {
        for (size_t at = 0; at < 16; at++) {
            begin(active, 1);
            start_frame(frame, active, C, 1, NULL, 0);
            frame[at] ^= 0x20;
            host_hear_slowly(&h, frame, at);
            assert_int_equal(h.told, 0);
            host_hear(&h, frame + at, 1);
            expect_closed(FAULT_START_KEY);
        }
        begin(active, 1);
        host_hear(&h, frame, start_frame(frame, !active, C, 1, NULL, 0));
        expect_closed(FAULT_START_KEY);
    }
}

/* M44-11 M44-12 M65-01: wrong numbers, in a whole frame and octet by octet. */
static void numbers_are_wrong(void **state)
{
    static const struct {
        uint8_t flags, revision;
        uint16_t length, sent;
        enum fault fault;
    } rows[] = {
        {C, 3, 0, 0, FAULT_START_REVISION},      {C | S, 255, 4, 4, FAULT_START_REVISION},
        {C, 1, 513, 512, FAULT_START_LENGTH},    {C | S, 2, 513, 512, FAULT_START_LENGTH},
        {C, 1, 0xffff, 512, FAULT_START_LENGTH}, {C | S, 2, 0, 0, FAULT_START_ENHANCED},
        {C | S, 2, 3, 3, FAULT_START_ENHANCED},
    };
    static const uint8_t data[MPA_PRIVATE_MAX];
    uint8_t frame[2 * MPA_FRAME_MAX];

    (void)state;
    for (size_t i = 0; i < 4 * sizeof(rows) / sizeof(rows[0]); i++) {
        size_t row = i / 4, n;
        bool active = i & 1, slowly = i & 2;

        begin(active, 2);
        n = start_frame(frame, active, rows[row].flags, rows[row].revision, data, rows[row].sent);
        put16(frame + 18, rows[row].length);
        if (slowly)
            host_hear_slowly(&h, frame, n);
        else
            host_hear(&h, frame, n);
        expect_closed(rows[row].fault);
    }
}

/* M65-12: a reply must have the revision and the form of the request (M44-11 M65-03). */
static void reply_does_not_fit(void **state)
{
    static const struct {
        uint8_t asked, flags, revision;
        uint16_t length;
    } rows[] = {{1, C, 2, 0}, {1, C, 0, 0}, {1, C | S, 2, 4}, {2, C, 1, 0}, {2, C, 2, 0}, {2, C | S, 1, 4}};
    static const uint8_t data[4];
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(true, rows[i].asked);
        host_hear(&h, frame, start_frame(frame, true, rows[i].flags, rows[i].revision, data, rows[i].length));
        expect_closed(FAULT_START_REVISION);
    }
}

/* The receiver ignores R in a request, the reserved flags, and S in revision 1, where S is reserved. */
static void reserved_bits(void **state)
{
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    begin(false, 1);
    host_hear(&h, frame, start_frame(frame, false, C | R | 0x0f, 1, NULL, 0));
    assert_int_equal(h.told, CONN_NEWS_REQUEST);
    begin(true, 1);
    host_hear(&h, frame, start_frame(frame, true, C | S | 0x0f, 1, NULL, 0));
    assert_int_equal(h.told, CONN_NEWS_ESTABLISHED);
    assert_int_equal(h.conn.start.peer.private_length, 0);
}

/* An initiator must send nothing between its request and the reply (RFC 5044 7.1.2 rule 6); siw resets, too. */
static void early_octets(void **state)
{
    uint8_t frame[MPA_FRAME_MAX + 1];

    (void)state;
    for (uint8_t revision = 1; revision <= 2; revision++) {
        size_t n = revision == 1 ? start_frame(frame, false, C, 1, "12", 2)
                                 : start_frame_enhanced(frame, false, C | S, 1, 1, "12", 2);

        begin(false, 1);
        frame[n] = 0;
        host_hear(&h, frame, n + 1);
        expect_closed(FAULT_EARLY);
    }
}

/* --- late ---------------------------------------------------------------------------------------------------- */

/* M44-17: single octets do not extend the start-up timeout, which is exact to the microsecond. */
static void peer_is_slow(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (int active = 0; active < 2; active++) {
        size_t n = start_frame(frame, active, C, 1, NULL, 0);

        begin(active, 1);
        for (size_t i = 0; i < n - 1; i++) {
            host_hear(&h, frame + i, 1);
            host_wait_until(&h, h.now_us + 200000);
            assert_true(conn_deadline(&h.conn, h.now_us) == HOST_START_US + attr.startup_us);
        }
        host_wait_until(&h, HOST_START_US + attr.startup_us - 1);
        assert_int_equal(h.told, 0);
        host_wait_until(&h, HOST_START_US + attr.startup_us);
        expect_closed(FAULT_STALLED);
    }
}

/* A frame in the last microsecond is in time; after that no timeout applies. */
static void peer_is_just_in_time(void **state)
{
    struct conn_attr attr = host_attr();
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (int active = 0; active < 2; active++) {
        begin(active, 1);
        host_wait_until(&h, HOST_START_US + attr.startup_us - 1);
        host_hear(&h, frame, start_frame(frame, active, C, 1, NULL, 0));
        host_wait_until(&h, HOST_START_US + attr.startup_us);
        host_wait_until(&h, HOST_START_US + 10 * attr.startup_us);
        assert_int_equal(h.told, active ? CONN_NEWS_ESTABLISHED : CONN_NEWS_REQUEST);
        assert_int_equal(h.conn.life.state, active ? CONN_READY : CONN_WAIT_ANSWER);
    }
}

/* --- cut off ------------------------------------------------------------------------------------------------- */

/* MPA-9-03 MPA-5.1-10: the peer ends its stream before or within its frame. */
static void stream_ends(void **state)
{
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (int active = 0; active < 2; active++) {
        size_t n = start_frame(frame, active, C, 1, "data", 4);

        for (size_t cut = 0; cut < n; cut++) {
            begin(active, 1);
            host_hear(&h, frame, cut);
            host_hear_end(&h);
            expect_closed(FAULT_CUT);
        }
    }
}

static void stream_ends_before_the_answer(void **state)
{
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    begin(false, 1);
    host_hear(&h, frame, start_frame(frame, false, C, 1, NULL, 0));
    h.told = 0;
    host_hear_end(&h);
    expect_closed(FAULT_CUT);
}

/* The connection is lost in each state of the start-up. */
static void stream_is_lost(void **state)
{
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (int when = 0; when < 3; when++) {
        begin(when == 2, 1);
        if (when == 1)
            host_hear(&h, frame, start_frame(frame, false, C, 1, NULL, 0));
        h.told = 0;
        conn_lost(&h.conn, FAULT_LOST);
        host_pump(&h);
        expect_closed(FAULT_LOST);
    }
}

/* The application closes or detaches the connection in each state of the start-up. */
static void application_gives_up(void **state)
{
    uint8_t frame[MPA_FRAME_MAX];

    (void)state;
    for (int when = 0; when < 6; when++) {
        begin(when % 3 == 2, 1);
        if (when % 3 == 1)
            host_hear(&h, frame, start_frame(frame, false, C, 1, NULL, 0));
        h.told = 0;
        if (when < 3)
            conn_close(&h.conn, h.now_us);
        else
            conn_detach(&h.conn, h.now_us);
        host_pump(&h);
        expect_closed(FAULT_LOST);
    }
}

/* A queue pair that fails before the reply ends the connection. */
static void queue_pair_fails(void **state)
{
    const struct fault_note note = {.fault = FAULT_CQ_FULL};

    (void)state;
    begin(true, 1);
    qp_fail(&h.side.qp, &note);
    host_pump(&h);
    assert_true(h.fin);
    host_hear_end(&h);
    expect_end(&h, FAULT_CQ_FULL);
    assert_int_equal(h.told, CONN_NEWS_FAILED);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    expect_silence(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(key_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_are_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reply_does_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reserved_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(early_octets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_is_slow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peer_is_just_in_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stream_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stream_ends_before_the_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stream_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(application_gives_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queue_pair_fails, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("start_wrong", tests, NULL, NULL);
}
