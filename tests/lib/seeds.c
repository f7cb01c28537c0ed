/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* seeds.c - reads the environment. */
#include "tests/lib/seeds.h"

#include <stdio.h>
#include <stdlib.h>

enum { LONGER = 10 };

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}

uint64_t seeds_count(uint64_t usual)
{
    return from_environment("SIM_RUNS", getenv("RDDP_LONG") ? LONGER * usual : usual);
}

uint64_t seeds_first(void)
{
    return from_environment("SIM_SEED", 1);
}

void seeds_each(uint64_t usual, void (*run)(uint64_t seed))
{
    uint64_t seed = seeds_first();

    for (uint64_t end = seed + seeds_count(usual); seed < end; seed++) {
        if (getenv("SIM_VERBOSE"))
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        run(seed);
    }
}
