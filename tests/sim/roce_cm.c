/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_cm.c - two connection managers of RoCE: every order of messages, losses, duplicates, time-outs and decisions up
 * to a depth; and long runs of many connections with a seed. At the end both sides agree, or both have ended, each
 * connection had its events once, and nothing is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rcm_pair.h"
#include "tests/lib/seeds.h"

/* --- every order -------------------------------------------------------------------------------------------------- */

enum { DEPTH_ONE = 7, DEPTH_BOTH = 5, DEPTH_MAX = 16, RUNS = 300, CALLS = 40 };

/* What may still happen on the way to a leaf. */
struct budget {
    uint32_t steps, lost, repeated, ticks, decisions;
};

static struct rcm_pair w;
static struct rcm_pair *saved[DEPTH_MAX + 1]; /* a copy of the world for each step */
static uint64_t leaves;

static void explore(struct budget left);

/* Each branch begins with the same world. */
static void branch(struct budget left, uint32_t depth)
{
    explore(left);
    memcpy(&w, saved[depth], sizeof(w));
}

static void explore_packets(struct budget left, uint32_t depth)
{
    for (uint32_t i = 0; i < FLYING; i++) {
        struct budget less = left;

        if (!w.flying[i].used)
            continue;
        rcm_pair_deliver(&w, &w.flying[i], false);
        branch(left, depth);
        if (left.repeated) {
            less.repeated--;
            rcm_pair_deliver(&w, &w.flying[i], true);
            branch(less, depth);
        }
        less = left;
        if (left.lost) {
            less.lost--;
            w.flying[i].used = false;
            branch(less, depth);
        }
    }
}

static void explore_decisions(struct budget left, uint32_t depth)
{
    for (uint32_t i = 0; i < 2 * PARTIES; i++) {
        uint32_t at = i % 2;
        struct party *p = &w.machine[at].party[i / 2];
        enum rcm_state state = p->conn.state;
        struct budget less = left;

        if (!p->used || state == RCM_CLOSED || state == RCM_TIMEWAIT)
            continue;
        if (state == RCM_REQ_RECEIVED) {
            rcm_pair_accept(&w, at, p);
            branch(left, depth);
        }
        if (state == RCM_REP_RECEIVED) {
            rcm_pair_confirm(&w, at, p);
            branch(left, depth);
        }
        if (!left.decisions)
            continue;
        less.decisions--;
        if (state == RCM_REQ_RECEIVED || state == RCM_REP_RECEIVED) {
            rcm_pair_reject(&w, at, p);
            branch(less, depth);
        } else if (state != RCM_DREQ_SENT) {
            rcm_pair_disconnect(&w, at, p);
            branch(less, depth);
        }
        if (rcm_pair_send_data(&w, at, p))
            branch(less, depth);
    }
}

static void explore(struct budget left)
{
    uint32_t depth = left.steps;

    if (!left.steps) {
        rcm_pair_settle(&w);
        leaves++;
        return;
    }
    left.steps--;
    memcpy(saved[depth], &w, sizeof(w));
    explore_packets(left, depth);
    explore_decisions(left, depth);
    if (left.ticks && rcm_pair_deadline(&w) != RCM_NEVER) {
        left.ticks--;
        w.now_us = rcm_pair_deadline(&w);
        rcm_pair_tick(&w);
        branch(left, depth);
    }
    left.steps = 0; /* or nothing more happens */
    explore(left);
    memcpy(&w, saved[depth], sizeof(w));
}

/* A step less where fewer runs than usual are asked for. */
static uint32_t depth_of(uint32_t usual)
{
    if (seeds_count(RUNS) < RUNS)
        return usual - 1;
    return getenv("RDDP_LONG") ? usual + 2 : usual;
}

static void explore_from(struct budget budget, uint32_t callers)
{
    const struct rcm_pair_attr attr = {
        .backlog = 4, .response_timeout = RCM_TIMEOUT_LEAST, .cm_retries = 1, .timewait_us = 100000};

    assert_true(budget.steps <= DEPTH_MAX);
    for (uint32_t i = 0; i <= budget.steps; i++) {
        saved[i] = malloc(sizeof(w));
        assert_non_null(saved[i]);
    }
    rcm_pair_open(&w, &attr, 1);
    for (uint32_t i = 0; i < callers; i++)
        assert_true(rcm_pair_call(&w, i));
    leaves = 0;
    explore(budget);
    printf("%llu orders\n", (unsigned long long)leaves);
    w.trail_length = 0;
    for (uint32_t i = 0; i <= budget.steps; i++)
        free(saved[i]);
}

/* ROCE-CM-03, ROCE-CM-04, ROCE-CM-07, ROCE-CM-08, ROCE-CM-11 */
static void one_calls(void **state)
{
    (void)state;
    explore_from((struct budget){.steps = depth_of(DEPTH_ONE), .lost = 2, .repeated = 1, .ticks = 3, .decisions = 2},
                 1);
    assert_true(leaves > 1000);
}

/* ROCE-CM-11: both call each other at once */
static void both_call(void **state)
{
    (void)state;
    explore_from((struct budget){.steps = depth_of(DEPTH_BOTH), .lost = 1, .repeated = 1, .ticks = 2, .decisions = 2},
                 2);
    assert_true(leaves > 1000);
}

/* --- long runs ---------------------------------------------------------------------------------------------------- */

static struct rng dice;
static uint32_t lose, repeat; /* of a million */
static uint64_t delay_us;

static bool happens(uint32_t chance)
{
    return rng_below(&dice, 1000000) < chance;
}

static bool leaves_at_random(struct rcm_pair *pair, struct flying *f)
{
    f->at_us = pair->now_us + rng_below(&dice, (uint32_t)delay_us + 1);
    return !happens(lose);
}

/* An application decides at once, or later. */
static void decides(struct rcm_pair *pair, uint32_t at, struct party *p)
{
    uint32_t choice = rng_below(&dice, 8);

    if (choice == 0)
        return;
    if (p->conn.state == RCM_REQ_RECEIVED || p->conn.state == RCM_REP_RECEIVED) {
        if (choice == 1)
            rcm_pair_reject(pair, at, p);
        else if (p->conn.state == RCM_REQ_RECEIVED)
            rcm_pair_accept(pair, at, p);
        else
            rcm_pair_confirm(pair, at, p);
    }
}

static void act_at_random(struct rcm_pair *pair)
{
    for (uint32_t i = 0; i < 2 * PARTIES; i++) {
        struct party *p = &pair->machine[i % 2].party[i / 2];

        if (!p->used || p->conn.state == RCM_CLOSED)
            continue;
        if (rng_one_in(&dice, 4))
            decides(pair, i % 2, p);
        if (rng_one_in(&dice, 12))
            rcm_pair_disconnect(pair, i % 2, p);
        if (rng_one_in(&dice, 4))
            rcm_pair_send_data(pair, i % 2, p);
        if (p->up && !rcm_pair_partner(pair, i % 2, p) && rng_one_in(&dice, 2))
            rcm_pair_disconnect(pair, i % 2, p); /* its data are not acknowledged */
    }
}

/* The next packet that arrives, or NULL. */
static struct flying *earliest(struct rcm_pair *pair)
{
    struct flying *first = NULL;

    for (uint32_t i = 0; i < FLYING; i++)
        if (pair->flying[i].used && (!first || pair->flying[i].at_us < first->at_us))
            first = &pair->flying[i];
    return first;
}

/* Until this time. */
static void pass(struct rcm_pair *pair, uint64_t until_us)
{
    for (;;) {
        struct flying *f = earliest(pair);
        uint64_t due_us = rcm_pair_deadline(pair);

        if (f && f->at_us <= due_us && f->at_us <= until_us) {
            pair->now_us = f->at_us > pair->now_us ? f->at_us : pair->now_us;
            f->at_us = pair->now_us + rng_below(&dice, 4 * (uint32_t)delay_us + 1);
            rcm_pair_deliver(pair, f, happens(repeat));
        } else if (due_us <= until_us) {
            pair->now_us = due_us > pair->now_us ? due_us : pair->now_us;
            rcm_pair_tick(pair);
        } else {
            pair->now_us = until_us;
            return;
        }
    }
}

static uint64_t established, restarts;

static void run(uint64_t seed)
{
    static const uint32_t chances[] = {0, 10000, 100000, 300000};
    struct rcm_pair_attr attr;

    dice = (struct rng){seed};
    attr = (struct rcm_pair_attr){.backlog = 1 + rng_below(&dice, 12),
                                  .response_timeout =
                                      (uint8_t)rng_between(&dice, RCM_TIMEOUT_LEAST - 2, RCM_TIMEOUT_DEFAULT),
                                  .cm_retries = (uint8_t)rng_below(&dice, RCM_RETRIES_MAX + 1),
                                  .timewait_us = rng_size(&dice, 5000000)};
    lose = chances[rng_below(&dice, 4)];
    repeat = chances[rng_below(&dice, 4)];
    delay_us = rng_size(&dice, 300000);
    rcm_pair_open(&w, &attr, seed);
    w.asked = w.answered = decides;
    w.leaves = leaves_at_random;
    for (uint32_t calls = CALLS; calls;) {
        if (rng_one_in(&dice, 3))
            calls -= rcm_pair_call(&w, rng_below(&dice, 2));
        act_at_random(&w);
        pass(&w, w.now_us + rng_size(&dice, 2000000));
        if (rng_one_in(&dice, 60)) {
            rcm_pair_restart(&w, rng_below(&dice, 2),
                             rng_one_in(&dice, 2) ? 0x100 : 0x10000 + (uint32_t)(seed & 0xff) * 16);
            restarts++;
        }
    }
    rcm_pair_settle(&w);
    w.trail_length = 0;
    established += w.machine[0].established + w.machine[1].established;
}

/* ROCE-CM-03, ROCE-CM-04, ROCE-CM-07, ROCE-CM-08, ROCE-CM-11, ROCE-CM-12 */
static void everything(void **state)
{
    (void)state;
    seeds_each(RUNS, run);
    assert_true(seeds_count(RUNS) < 100 || (established && restarts));
}

/* What was done before the world stood as it stands now: after a failure, what led to it. */
static int tell_trail(void **state)
{
    (void)state;
    if (w.trail_length)
        fprintf(stderr, "trail:%s\n", w.trail);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_calls, tell_trail),
        cmocka_unit_test_teardown(both_call, tell_trail),
        cmocka_unit_test_teardown(everything, tell_trail),
    };

    return cmocka_run_group_tests_name("roce_cm", tests, NULL, NULL);
}
