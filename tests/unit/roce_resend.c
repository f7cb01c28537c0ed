/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_resend.c - what a queue pair of RoCE sends again by its own timer, and what an acknowledgement says about it. */
#include "tests/lib/rc_world.h"

#include <string.h>

#include "roce/psn.h"

enum { TRIP_US = 100, PACKETS = 8, WINDOW = RC_WINDOW_FIRST };

/* A pair whose round trip is known, so that the early timer has its least interval, with PACKETS packets under way. */
static void open_under_way(void)
{
    struct rc_pair_attr attr = rc_net_attr();

    attr.requester.timeout_us = 500000;
    open_world(&attr);
    request_send(1, 8);
    hear_message(FIRST, BTH_SEND, ONLY, 8);
    waits(TRIP_US);
    acknowledges(FIRST, ACK);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    request_send(2, PACKETS * MTU);
    for (uint32_t i = 0; i < PACKETS; i++)
        hear();
    hear_nothing();
}

static const struct rc_requester *requester(void)
{
    return &w.pair->requester;
}

/* What is acknowledged beyond the packets sent again had arrived before: the time-out was wrong, and is undone. */
static void needless(void **state)
{
    uint32_t window;

    (void)state;
    open_under_way();
    window = requester()->congestion.window;
    waits(RC_RTO_MIN_US);
    hear_message(FIRST + 1, BTH_SEND, BTH_FIRST, MTU);
    hear_message(FIRST + 2, BTH_SEND, 0, MTU);
    hear_nothing(); /* the window is the least one */
    acknowledges(FIRST + PACKETS - 1, ACK);
    hear_nothing(); /* the last packet is under way still */
    assert_int_equal(requester()->congestion.window, window);
    assert_int_equal(requester()->counters.resent, 2);
    assert_int_equal(requester()->counters.undone, 1);
    acknowledges(FIRST + PACKETS, ACK);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    close_world();
}

/* Several requests behind the one that was waited for: the next packet is the one that had not left yet. */
static void needless_over_requests(void **state)
{
    (void)state;
    open_under_way();
    for (uint64_t i = 3; i < 6; i++) {
        request_send(i, 8);
        hear();
    }
    request_read(6, 600);
    hear_message(FIRST + PACKETS + 4, BTH_READ_REQUEST, ONLY, 0);
    waits(RC_RTO_MIN_US);
    hear();
    hear();
    acknowledges(FIRST + PACKETS + 1, ACK);
    hear_nothing();
    request_send(7, 8);
    hear_message(FIRST + PACKETS + 7, BTH_SEND, ONLY, 8);
    close_world();
}

/* An acknowledgement of no more than what was sent again says nothing: the rest is sent again, too. */
static void needed(void **state)
{
    (void)state;
    open_under_way();
    waits(RC_RTO_MIN_US);
    hear_message(FIRST + 1, BTH_SEND, BTH_FIRST, MTU);
    hear_message(FIRST + 2, BTH_SEND, 0, MTU);
    acknowledges(FIRST + 2, ACK);
    for (uint32_t i = 3; i <= 5; i++)
        hear_message(FIRST + i, BTH_SEND, 0, MTU);
    assert_int_equal(requester()->counters.undone, 0);
    assert_true(requester()->congestion.window < WINDOW);
    acknowledges(FIRST + 5, ACK);
    for (uint32_t i = 6; i <= PACKETS; i++)
        hear();
    assert_true(requester()->before.max);
    acknowledges(FIRST + PACKETS, ACK); /* it was right */
    assert_false(requester()->before.max);
    close_world();
}

/* After a NAK the packets are known to be lost. */
static void naked(void **state)
{
    (void)state;
    open_under_way();
    waits(RC_RTO_MIN_US);
    hear();
    hear();
    acknowledges(FIRST + 1, aeth_nak(NAK_SEQUENCE));
    hear_message(FIRST + 1, BTH_SEND, BTH_FIRST, MTU);
    acknowledges(FIRST + 3, ACK);
    hear_message(FIRST + 4, BTH_SEND, 0, MTU);
    assert_int_equal(requester()->counters.undone, 0);
    close_world();
}

/* Whoever comes late to the timer has not seen either what arrived meanwhile. */
static void late(void **state)
{
    (void)state;
    open_under_way();
    waits(RC_RTO_MIN_US + RC_LATE_US);
    hear_nothing();
    assert_int_equal(rc_pair_deadline(w.pair), w.net.now_us + RC_LATE_US);
    acknowledges(FIRST + PACKETS, ACK);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    assert_int_equal(requester()->counters.resent, 0);
    close_world();

    open_under_way();
    waits(RC_RTO_MIN_US + RC_LATE_US);
    waits(2 * RC_LATE_US); /* late again: once is enough */
    hear_message(FIRST + 1, BTH_SEND, BTH_FIRST, MTU);
    close_world();

    open_under_way();
    waits(RC_RTO_MIN_US + RC_LATE_US - 1);
    hear_message(FIRST + 1, BTH_SEND, BTH_FIRST, MTU);
    close_world();
}

/* A window that is not used up does not grow. */
static void unused(void **state)
{
    (void)state;
    open_usual();
    for (uint32_t i = 0; i < 4 * WINDOW; i++) {
        request_send(i, 8);
        hear();
        acknowledges(FIRST + i, ACK);
        expect_wc(&w.side->send_cq, i, RDDP_WC_SUCCESS);
    }
    assert_int_equal(requester()->congestion.window, WINDOW);
    close_world();
}

/* Sends all that may leave, acknowledges it, and so on until the window stays. Returns the packets of the last round.
 */
static uint32_t grown_window(uint32_t limit)
{
    static struct rc_request ring[1];
    const struct rc_requester_attr attr = {.mtu = MTU, .timeout_us = 1000000, .retries = 7, .window = limit};
    struct rc_requester q;
    struct rc_outgoing out;
    uint32_t sent = 0, before;

    rc_requester_init(&q, &attr, ring, 1);
    rc_requester_add(&q, RC_MESSAGE, UINT32_C(8) * RC_WINDOW_MAX * MTU, 0, RC_ASK_ALWAYS);
    do {
        before = sent;
        sent = 0;
        while (rc_requester_next(&q, &out, 1))
            sent++;
        rc_requester_acknowledged(&q, psn_wire(out.position), ACK, 1);
    } while (sent != before);
    return sent;
}

/* ROCE-REQ-02: the limit, one less, one more, and what a caller has that names none */
static void largest_window(void **state)
{
    (void)state;
    assert_int_equal(grown_window(RC_WINDOW_MAX - 1), RC_WINDOW_MAX - 1);
    assert_int_equal(grown_window(RC_WINDOW_MAX), RC_WINDOW_MAX);
    assert_int_equal(grown_window(RC_WINDOW_MAX + 1), RC_WINDOW_MAX);
    assert_int_equal(grown_window(0), RC_WINDOW_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needless),       cmocka_unit_test(needless_over_requests),
        cmocka_unit_test(needed),         cmocka_unit_test(naked),
        cmocka_unit_test(late),           cmocka_unit_test(unused),
        cmocka_unit_test(largest_window),
    };

    return cmocka_run_group_tests_name("roce_resend", tests, NULL, NULL);
}
