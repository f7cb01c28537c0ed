/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* runs.c - a number of runs, as the environment says. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/lib/sim.h"

enum { LONGER = 10 };

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}

bool sim_runs(const struct wire *wire, unsigned long long usual, struct tally *t)
{
    unsigned long long most = getenv("RDDP_LONG") ? LONGER * usual : usual;
    unsigned long long count = number("SIM_RUNS", most), seed = number("SIM_SEED", 1);
    struct rng seeds = {seed};

    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* each run needs the same memory again */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (unsigned long long i = 0; i < count; i++)
        sim_run(i ? rng_next(&seeds) : seed, wire, t);
    printf("sim: %llu runs: %llu requests, %llu receives, %llu MB completed, %llu flushed\n",
           (unsigned long long)t->runs, (unsigned long long)t->requests, (unsigned long long)t->receives,
           (unsigned long long)t->octets / 1000000, (unsigned long long)t->flushed);
    return count >= usual;
}
