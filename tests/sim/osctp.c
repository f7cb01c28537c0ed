/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp.c - two ends of osctp over a path that does everything to packets: each message is taken once, unchanged, and
 * both ends shut down. Over good paths, they are fast.
 *
 * SIM_RUNS=10000 sets the number of runs; SIM_SEED=0x1234 sets the first seed. A failed run prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/sctpnet.h"
#include "tests/lib/seeds.h"

enum { RUNS = 300 };

static const uint64_t hour_us = 3600 * UINT64_C(1000000);

static void draw_path(struct sctpnet_path *p, struct rng *r)
{
    static const uint32_t chances[] = {0, 0, 100, 1000, 10000};

    p->lose = chances[rng_below(r, 5)];
    p->repeat = chances[rng_below(r, 5)] / 2;
    p->hold_back = chances[rng_below(r, 5)];
    p->delay_us = 100 + rng_size(r, 100000);
    p->held_back_us = rng_size(r, 50000);
    if (rng_one_in(r, 3)) {
        p->rate = 100000 + rng_size(r, 100000000);
        p->queue = 70000 + rng_size(r, 1000000);
    }
}

static void draw_end(struct sctpnet_end *e, struct rng *r, uint64_t now_us)
{
    static const uint32_t packets[] = {576, 1284, 1484, 1484, 8948, 65520};

    draw_path(&e->path, r);
    e->attr.packet_max = packets[rng_below(r, 6)] & ~3U;
    e->attr.window = 2000 + rng_size(r, 1 << 21);
    e->attr.store = 4 * e->attr.packet_max + rng_size(r, 1 << 21); /* a quarter is enough for any message */
    if (rng_one_in(r, 3))
        e->attr.tsn = 0U - rng_size(r, 1000);
    e->message_max = 1 + rng_size(r, e->attr.packet_max - 28 - 1);
    e->to_send = rng_one_in(r, 5) ? 0 : rng_size(r, 1 << 21) / e->message_max;
    if (e->to_send > 4000)
        e->to_send = 4000;
    e->same = rng_one_in(r, 3);
    e->burst = 1 + rng_size(r, 2000);
    e->pause_us = rng_one_in(r, 2) ? 0 : rng_size(r, 20000);
    e->batch = 1 + rng_size(r, 40);
    e->shuts = rng_one_in(r, 2);
    if (rng_one_in(r, 3))
        e->refuse = rng_size(r, 20000);
    if (rng_one_in(r, 3))
        e->scarce = rng_size(r, 20000);
    if (rng_one_in(r, 4)) {
        e->window.every_us = 1 + rng_size(r, 1000000);
        e->window.until_us = now_us + rng_size(r, 60000000);
    }
}

/* Each message was taken, and both ends know it. */
static void check(const struct sctpnet *n)
{
    for (int i = 0; i < 2; i++) {
        const struct sctpnet_end *e = &n->end[i];

        if (!e->begun || e->o.state != OSCTP_CLOSED || e->o.end != OSCTP_SHUT || e->submitted != e->to_send ||
            e->taken != e->peer->to_send)
            fail_msg("seed %llu, end %d, %llu us: state %d, end %d, submitted %u of %u, taken %u of %u",
                     (unsigned long long)n->seed, i, (unsigned long long)(n->now_us - n->began_us), (int)e->o.state,
                     (int)e->o.end, e->submitted, e->to_send, e->taken, e->peer->to_send);
    }
}

static void one(uint64_t seed)
{
    struct sctpnet *n = calloc(1, sizeof(*n));
    struct rng r;

    assert_non_null(n);
    sctpnet_init(n, seed);
    r = rng_fork(&n->rng);
    for (int i = 0; i < 2; i++)
        draw_end(&n->end[i], &r, n->now_us);
    n->end[0].shuts |= !n->end[1].shuts;
    n->batches = rng_one_in(&r, 2);
    sctpnet_run(n, n->now_us + 20 * hour_us);
    check(n);
    sctpnet_fini(n);
    free(n);
}

static void runs(void **state)
{
    (void)state;
    seeds_each(RUNS, one);
}

/* --- speed --------------------------------------------------------------------------------------------------- */

struct speed {
    uint64_t delay_us, rate;
    uint32_t queue, lose, octets; /* messages of `octets` */
    bool batches;
    uint32_t least; /* octets per millisecond that must arrive; three quarters of what was measured */
};

/* Sends 16 megabytes one way. */
static void measure(const struct speed *s)
{
    struct sctpnet *n = calloc(1, sizeof(*n));
    uint64_t us;

    assert_non_null(n);
    sctpnet_init(n, 7);
    for (int i = 0; i < 2; i++) {
        n->end[i].path = (struct sctpnet_path){.delay_us = s->delay_us, .lose = s->lose};
        n->end[i].attr.window = n->end[i].attr.store = 4 << 20;
    }
    n->end[0].path.rate = s->rate;
    n->end[0].path.queue = s->queue;
    n->end[0].message_max = s->octets;
    n->end[0].same = true;
    n->end[0].to_send = (16 << 20) / s->octets;
    n->end[1].shuts = false;
    n->batches = s->batches;
    n->end[0].batch = n->end[1].batch = s->batches ? 64 : 1;
    sctpnet_run(n, n->now_us + hour_us);
    check(n);
    us = n->now_us - n->began_us;
    print_message(
        "delay %llu us, loss %u in 100000, messages of %u: %llu octets per ms, %llu sent again, %llu time-outs\n",
        (unsigned long long)s->delay_us, s->lose, s->octets, (unsigned long long)(n->end[1].octets * 1000 / us),
        (unsigned long long)n->end[0].o.count.sent_again, (unsigned long long)n->end[0].o.count.timeouts);
    assert_true(n->end[1].octets * 1000 / us >= s->least);
    sctpnet_fini(n);
    free(n);
}

static void speeds(void **state)
{
    static const struct speed list[] = {
        {500, 12500000, 100000, 0, 1456, false, 9000},
        {5000, 12500000, 200000, 0, 1456, false, 8500},
        {5000, 12500000, 200000, 0, 64, false, 7000},
        {50000, 12500000, 1500000, 0, 1456, false, 4200},
        {10000, 12500000, 200000, 1000, 1456, false, 700},
        {10000, 0, 0, 1000, 1456, false, 680},
        {10000, 0, 0, 100, 1456, false, 2200},
        {500, 12500000, 100000, 0, 1456, true, 9000},
        {5000, 12500000, 200000, 0, 1456, true, 8700},
        {10000, 12500000, 200000, 1000, 1456, true, 5000},
        {10000, 0, 0, 1000, 1456, true, 5400},
        {100, 0, 0, 0, 1456, true, 800000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        measure(&list[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
        cmocka_unit_test(speeds),
    };

    return cmocka_run_group_tests_name("sim osctp", tests, NULL, NULL);
}
