/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim.h - two stacks, two links, two applications and one clock: a run that is determined by one seed. */
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
    uint32_t idle[2];   /* turns since it last found something to do: it sleeps longer each time */
    uint32_t app_turns, think_us;
    const struct ending *ending;
    int struck_side;    /* the side to which the ending happens */
    uint32_t strike_at; /* requests before it happens */
    uint32_t tries;
    bool struck, closing; /* struck: it has happened; closing: both were told to close */
    bool was_established; /* both were, when it happened */
    uint64_t other_close_us;
    unsigned finale; /* bit N: the last Send of side N is posted */
};

/* Totals of a number of runs. */
struct tally {
    uint64_t runs, requests, receives, octets, flushed, crc, markers, shared, peer_to_peer, immediate, early, apart,
        straight, told;
};

/* Runs the simulation to its end. Does not return after a failure. */
void sim_run(uint64_t seed, const struct wire *wire, struct tally *tally);

/* Runs SIM_RUNS times, `usual` by default and ten times that with RDDP_LONG, starting with seed SIM_SEED; prints the
 * totals. Returns false if there were fewer runs than usual, so that not everything may have occurred. */
bool sim_runs(const struct wire *wire, unsigned long long usual, struct tally *tally);

/* Draws everything about the run. */
void sim_draw(struct sim *s, uint64_t seed, const struct wire *wire);

#endif
