/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* runs.c - a number of runs, as the environment says. */
#include <malloc.h>
#include <stdio.h>

#include "tests/lib/seeds.h"
#include "tests/sim/lib/sim.h"

bool sim_runs(const struct wire *wire, unsigned long long usual, struct tally *t)
{
    uint64_t count = seeds_count(usual), seed = seeds_first();
    struct rng seeds = {seed};

    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* each run needs the same memory again */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (uint64_t i = 0; i < count; i++)
        sim_run(i ? rng_next(&seeds) : seed, wire, t);
    printf("sim: %llu runs: %llu requests, %llu receives, %llu MB completed, %llu flushed\n",
           (unsigned long long)t->runs, (unsigned long long)t->requests, (unsigned long long)t->receives,
           (unsigned long long)t->octets / 1000000, (unsigned long long)t->flushed);
    return count >= usual;
}
