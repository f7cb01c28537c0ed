/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.c - two ends of our TCP over a path that does everything to packets: no octet is lost, duplicated or changed.
 *
 * SIM_RUNS=10000 sets the number of runs; SIM_SEED=0x1234 sets the first seed. A failed run prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/seeds.h"
#include "tests/lib/tcpnet.h"

enum { RUNS = 400, HOUR_S = 3600 };

static bool over(const struct tcpnet *n)
{
    return n->end[0].open && n->end[1].open && n->end[0].tcp.state == UTCP_CLOSED && n->end[1].tcp.state == UTCP_CLOSED;
}

static void draw_path(struct tcpnet_path *p, struct rng *r)
{
    static const uint32_t chances[] = {0, 0, 100, 1000, 10000};

    p->lose = chances[rng_below(r, 5)];
    p->repeat = chances[rng_below(r, 5)] / 2;
    p->spoil = chances[rng_below(r, 5)] / 2;
    p->hold_back = chances[rng_below(r, 5)];
    p->delay_us = rng_size(r, 100000);
    p->held_back_us = rng_size(r, 20000);
    if (rng_one_in(r, 3)) {
        p->rate = 100000 + rng_size(r, 100000000);
        p->queue = 70000 + rng_size(r, 1000000);
    }
}

static void draw_attr(struct utcp_attr *a, struct rng *r)
{
    static const uint32_t mtus[] = {1280, 1500, 1500, 9000, 65000};

    utcp_attr_default(a);
    a->mtu = mtus[rng_below(r, 5)];
    a->window = 4000 + rng_size(r, 1 << 21);
    a->no_sack = rng_one_in(r, 8);
    a->no_stamps = rng_one_in(r, 8);
    a->no_scale = rng_one_in(r, 8);
    a->option_kind = rng_one_in(r, 2) ? 25 : 0;
    a->give_up_us = 100ULL * HOUR_S * 1000000; /* the path is bad, not dead */
    a->syn_retries = 100;
    if (rng_one_in(r, 4))
        a->keep_idle_us = 1000000;
}

/* Every octet arrived once, and both ends know it. */
static void check_end(const struct tcpnet *n)
{
    for (int i = 0; i < 2; i++) {
        const struct tcpnet_end *e = &n->end[i];

        assert_true(e->open);
        if (e->tcp.state != UTCP_CLOSED || e->tcp.error || utcp_received(&e->tcp) != e->expected ||
            utcp_acked(&e->tcp) != e->to_send)
            fail_msg("end %d: state %d, error %d, received %llu of %llu, acked %llu of %llu", i, e->tcp.state,
                     e->tcp.error, (unsigned long long)utcp_received(&e->tcp), (unsigned long long)e->expected,
                     (unsigned long long)utcp_acked(&e->tcp), (unsigned long long)e->to_send);
        for (uint64_t p = 0; p < e->expected; p++)
            assert_true(e->seen[p / 8] & 1 << p % 8);
    }
}

static void one(uint64_t seed)
{
    struct tcpnet *n = calloc(1, sizeof(*n));
    struct utcp_attr attr[2];
    struct rng r;
    bool narrow, v6;

    assert_non_null(n);
    tcpnet_init(n, seed);
    r = rng_fork(&n->rng);
    v6 = rng_one_in(&r, 2);
    for (int i = 0; i < 2; i++) {
        struct tcpnet_end *e = &n->end[i];

        draw_path(&e->path, &r);
        draw_attr(&attr[i], &r);
        e->to_send = rng_one_in(&r, 4) ? 0 : rng_size(&r, 3 << 20);
        e->taking = rng_below(&r, 3);
        e->unit = rng_one_in(&r, 3) ? 200 + rng_size(&r, 4000) : 0;
        e->option = 0;
        if (rng_one_in(&r, 4)) {
            e->read_every_us = 1 + rng_size(&r, 100000);
            e->read_most = 1000 + rng_size(&r, 1 << 20);
        }
    }
    /* The path is narrower than the ends assume, and may not say so. */
    narrow = rng_one_in(&r, 5);
    for (int i = 0; narrow && i < 2; i++) {
        n->end[i].path.mtu = rng_between(&r, 1280, attr[i].mtu);
        n->end[i].path.tells = rng_one_in(&r, 2);
    }
    for (int i = 0; i < 2; i++)
        n->end[i].path.mark = rng_one_in(&r, 3) ? rng_size(&r, 20000) : 0;
    tcpnet_connect(n, &attr[0], &attr[1], v6);
    for (int i = 0; i < 2; i++)
        n->end[i].option = attr[0].option_kind && attr[1].option_kind ? 20 : 0;
    tcpnet_run(n, n->now_us + 30ULL * HOUR_S * 1000000, over);
    check_end(n);
    tcpnet_fini(n);
    free(n);
}

static void runs(void **state)
{
    (void)state;
    seeds_each(RUNS, one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
    };

    return cmocka_run_group_tests_name("sim tcp", tests, NULL, NULL);
}
