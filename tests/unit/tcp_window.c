/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_window.c - the formulas behind a connection: CUBIC, RACK and the retransmission time-out, with their figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tcp/inner.h"
#include "tcp/rack.h"
#include "tcp/rtt.h"

enum { MSS = 1000, SECOND_US = 1000000 };

/* RFC 9438 4.2: time counts from the last reduction. However long there was none, the window then grows slowly, and is
 * as large as before after K = cbrt(30 / 0.4) seconds, 4.2. */
static void cubic_after_a_loss(void **state)
{
    uint64_t now_us = 100 * (uint64_t)SECOND_US;
    struct utcp_cubic c;

    (void)state;
    utcp_cubic_init(&c, MSS);
    c.cwnd = c.ssthresh = 100 * MSS;
    utcp_cubic_acked(&c, MSS, 50000, SECOND_US);
    c.cwnd = 100 * MSS;
    utcp_cubic_congested(&c, c.cwnd);
    assert_int_equal(c.ssthresh, 70 * MSS);
    c.cwnd = c.ssthresh;
    for (int i = 0; i < 70; i++)
        utcp_cubic_acked(&c, MSS, 50000, now_us);
    assert_in_range(c.cwnd, 70 * MSS, 72 * MSS);
    for (int i = 1; i <= 21; i++)
        for (int ack = 0; ack < 100; ack++)
            utcp_cubic_acked(&c, MSS, 200000, now_us + (uint64_t)i * 200000);
    assert_in_range(c.cwnd, 98 * MSS, 103 * MSS);
}

/* RFC 8985 6.2: however often the peer got something twice, the reordering window is not longer than a round trip. */
static void rack_waits_a_round_trip(void **state)
{
    struct utcp_sent slots[4];
    struct utcp_scoreboard scoreboard;
    struct utcp_rack rack;
    struct utcp_rtt rtt;

    (void)state;
    utcp_rtt_init(&rtt);
    utcp_rtt_sample(&rtt, 12000, 1);
    rtt.min_us = 10000;
    utcp_rack_init(&rack);
    rack.reordering_seen = true;
    rack.reo_wnd_mult = UTCP_REO_WND_MULT_MAX;
    utcp_scoreboard_init(&scoreboard, slots, 4);
    utcp_scoreboard_add(&scoreboard, 1, MSS, 0, 100000);
    utcp_scoreboard_add(&scoreboard, 1 + MSS, MSS, 0, 100001);
    utcp_rack_delivered(&rack, utcp_scoreboard_at(&scoreboard, 1), &rtt, 0, 110001);
    utcp_scoreboard_mark_sacked(&scoreboard, utcp_scoreboard_at(&scoreboard, 1));
    assert_int_equal(utcp_rack_detect(&rack, &scoreboard, &rtt, false, 110001), 11999);
    assert_int_equal(utcp_rack_detect(&rack, &scoreboard, &rtt, false, 121999), 1);
    assert_int_equal(scoreboard.lost, 0);
    assert_int_equal(utcp_rack_detect(&rack, &scoreboard, &rtt, false, 122000), 0);
    assert_int_equal(scoreboard.lost, 1);
}

/* RFC 6298 2.2 and 2.3: alpha is 1/8, beta 1/4, and K 4. */
static void time_out(void **state)
{
    struct utcp_rtt rtt;

    (void)state;
    utcp_rtt_init(&rtt);
    utcp_rtt_sample(&rtt, 100000, 1);
    assert_true(rtt.srtt_us == 100000 && rtt.variation_us == 50000 && rtt.rto_us == 300000);
    utcp_rtt_sample(&rtt, 140000, 2);
    assert_true(rtt.srtt_us == 105000 && rtt.variation_us == 47500);
    assert_int_equal(rtt.rto_us, 105000 + UTCP_RTO_MIN_US);
    utcp_rtt_sample(&rtt, 500000, 3);
    assert_true(rtt.srtt_us == 154375 && rtt.variation_us == 134375);
    assert_int_equal(rtt.rto_us, 154375 + 4 * 134375);
}

/* `octets` arrive within `us`; the user keeps `kept` of all. Returns the window then. */
static uint32_t window_after(struct utcp *t, uint64_t *now_us, uint64_t octets, uint64_t us, uint64_t kept)
{
    *now_us += us;
    t->rx.next += octets;
    t->rx.kept = kept;
    utcp_window_grow(t, *now_us);
    return t->attr.window;
}

/* A window holds four times what is taken in the shortest round trip, from what it began with to its maximum. */
static void window_follows_the_reader(void **state)
{
    struct utcp t = {.attr = {.window = 1 << 16, .window_max = 1 << 20}, .rx.next = 1};
    uint64_t now_us = 1000000;

    (void)state;
    assert_int_equal(window_after(&t, &now_us, 1 << 20, 10000, 0), 1 << 16); /* no round trip was measured */
    t.rtt.min_us = 10000;
    assert_int_equal(window_after(&t, &now_us, 1 << 20, 10000, 0), 1 << 16); /* the measurement begins */
    assert_int_equal(window_after(&t, &now_us, 1 << 14, 10000, 0), 1 << 16);
    assert_int_equal(window_after(&t, &now_us, 1 << 15, 20000, 0), 1 << 16); /* in two round trips */
    assert_int_equal(window_after(&t, &now_us, 1 << 14, 9999, 0), 1 << 16);  /* not in a whole one yet */
    assert_int_equal(window_after(&t, &now_us, 0, 10001, 0), 1 << 16);
    assert_int_equal(window_after(&t, &now_us, 1 << 15, 10000, 1 << 15), 1 << 16); /* nothing is taken */
    assert_int_equal(window_after(&t, &now_us, 0, 10000, 1 << 15), 1 << 16);
    assert_int_equal(window_after(&t, &now_us, 0, 10000, (1 << 14) - 1), (1 << 16) + 4); /* taken of what was kept */
    assert_int_equal(window_after(&t, &now_us, 1 << 14, 10000, (1 << 14) - 1), (1 << 16) + 4); /* never smaller */
    assert_int_equal(window_after(&t, &now_us, (1 << 18) - 1, 10000, (1 << 14) - 1), (1 << 20) - 4);
    assert_int_equal(window_after(&t, &now_us, (1 << 18) + 1, 10000, (1 << 14) - 1), 1 << 20);
    assert_int_equal(window_after(&t, &now_us, 1 << 22, 10000, (1 << 14) - 1), 1 << 20);
    t.attr = (struct utcp_attr){.window = 1 << 16};
    assert_int_equal(window_after(&t, &now_us, 1 << 22, 10000, 0), 1 << 16); /* it is to stay as it is */
}

/* RFC 7323 2.3: the scale has to suffice for the largest window to come. */
static void scale_of_the_largest(void **state)
{
    (void)state;
    assert_int_equal(utcp_scale_for(&(struct utcp_attr){.window = 65535}), 0);
    assert_int_equal(utcp_scale_for(&(struct utcp_attr){.window = 65536}), 1);
    assert_int_equal(utcp_scale_for(&(struct utcp_attr){.window = 65535, .window_max = 131072}), 2);
    assert_int_equal(utcp_scale_for(&(struct utcp_attr){.window = 65536, .window_max = 1}), 1);
    assert_int_equal(utcp_scale_for(&(struct utcp_attr){.window = UTCP_WINDOW_MAX}), 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubic_after_a_loss),
        cmocka_unit_test(rack_waits_a_round_trip),
        cmocka_unit_test(window_follows_the_reader),
        cmocka_unit_test(scale_of_the_largest),
        cmocka_unit_test(time_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
