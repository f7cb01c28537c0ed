/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_losses.c - what random losses cost a bulk transfer, in virtual time: CUBIC's share, no more copies than losses,
 * and next to no time-outs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/tcpnet.h"

enum { SEEDS = 8, OCTETS = 4000000, RATE = 60000000, CHANCES = 100000 };

struct totals {
    uint64_t us, lost, again, timeouts;
};

static bool is_whole(const struct tcpnet *n)
{
    return n->end[1].open && utcp_received(&n->end[1].tcp) == n->end[0].to_send;
}

static void transfer(struct totals *sum, uint64_t seed, uint32_t trip_us, uint32_t lose)
{
    struct tcpnet *n = calloc(1, sizeof(*n));
    struct utcp_attr attr;
    uint64_t begun_us;

    assert_non_null(n);
    tcpnet_init(n, seed);
    utcp_attr_default(&attr);
    attr.window = 1 << 24;
    n->end[0].to_send = OCTETS;
    for (int i = 0; i < 2; i++)
        n->end[i].path = (struct tcpnet_path){.delay_us = trip_us / 2, .lose = lose, .rate = RATE};
    begun_us = n->now_us;
    tcpnet_connect(n, &attr, &attr, false);
    tcpnet_run(n, begun_us + 1000000000, is_whole);
    assert_true(is_whole(n));
    sum->us += n->now_us - begun_us;
    sum->lost += n->end[0].lost;
    sum->again += n->end[0].tcp.count.sent_again;
    sum->timeouts += n->end[0].tcp.count.timeouts;
    tcpnet_fini(n);
    free(n);
}

/* RFC 9438 figure 5: with Reno's share a window is the root of 3 / (2 p) segments on average, which CUBIC has at least
 * (4.3). Slow start adds to that, so a tenth less is a fault. */
static void check_losses(uint32_t trip_us, uint32_t lose)
{
    struct totals sum = {0};
    uint64_t segments, squared = 3ULL * CHANCES / (2 * lose), share;

    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        transfer(&sum, seed, trip_us, lose);
    for (segments = 1; (segments + 1) * (segments + 1) <= squared;)
        segments++;
    share = segments * 1448 * 1000000 / trip_us;
    assert_in_range((uint64_t)SEEDS * OCTETS * 1000000 / sum.us, share * 9 / 10, RATE);
    assert_in_range(sum.again, sum.lost, sum.lost + sum.lost / 10);
    assert_in_range(sum.timeouts, 0, 1);
}

static void losses(void **state)
{
    (void)state;
    check_losses(20000, 100);
    check_losses(20000, 1000);
    check_losses(100000, 100);
    check_losses(100000, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
