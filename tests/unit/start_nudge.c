/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* start_nudge.c - an initiator that hears nothing after its first FPDU: siw's responder may have overlooked it. */
#include "tests/unit/conn_host.h"

enum { C = 0x40, S = 0x10, A = 0x8000 };

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

/* Any FPDU of the peer shows that it listens. */
static void answered(void **state)
{
    struct conn_attr attr = of_peers();
    uint64_t at_us = is_ready(&attr);

    (void)state;
    peer_says(&h, (struct seg){.op = SEG_WRITE, .flags = SEG_LAST, .key = 1, .data = (const uint8_t *)""});
    host_wait_until(&h, at_us + 10 * attr.first_delay_us);
    expect_silence(&h);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
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
        cmocka_unit_test_setup_teardown(not_at_the_end, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("start_nudge", tests, NULL, NULL);
}
