/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim.h - two stacks, two links, two applications and one clock: a run, all of it from one seed. */
#ifndef TESTS_SIM_LIB_SIM_H
#define TESTS_SIM_LIB_SIM_H

#include "tests/sim/lib/link.h"
#include "tests/sim/lib/model.h"
#include "tests/sim/lib/stack.h"
#include "tests/sim/lib/work.h"

struct ending;

struct sim {
    struct rng rng;
    uint64_t now_us;
    struct link link[2]; /* the first carries what the first stack, the initiator, sends */
    struct stack stack[2];
    struct party party[2];
    struct work_attr work;
    uint64_t app_us[2]; /* when each application wakes up */
    uint32_t idle[2];   /* turns since it last found something to do: it sleeps longer and longer */
    uint32_t app_turns, think_us;
    const struct ending *ending;
    int struck_side;    /* whom it happens to */
    uint32_t strike_at; /* requests before it happens */
    uint32_t tries;
    bool struck, closing; /* it has happened; both were told to close */
    bool was_established; /* both were, when it happened */
    uint64_t other_close_us;
    unsigned finale; /* bits: the last Send of that side is posted */
};

/* What a number of runs have seen. */
struct tally {
    uint64_t runs, requests, receives, octets, flushed, crc, markers, shared, peer_to_peer, immediate, early, apart,
        told;
};

/* Runs it to its end. Does not return if anything is wrong. */
void sim_run(uint64_t seed, const struct wire *wire, struct tally *tally);

/* SIM_RUNS runs, or else `usual`, from the seed SIM_SEED on; prints how much was done. False: fewer than usual, so that
 * not everything may have been seen. */
bool sim_runs(const struct wire *wire, unsigned long long usual, struct tally *tally);

/* Everything about the run that chance decides. */
void sim_draw(struct sim *s, uint64_t seed, const struct wire *wire);

#endif
