/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* seeds.h - how many runs a simulation makes, and from which seed on, as the environment says: SIM_RUNS, SIM_SEED, and
 * RDDP_LONG for ten times the usual. */
#ifndef TESTS_LIB_SEEDS_H
#define TESTS_LIB_SEEDS_H

#include <stdint.h>

uint64_t seeds_count(uint64_t usual);
uint64_t seeds_first(void);

/* Calls `run` with each seed in turn; SIM_VERBOSE prints it before. */
void seeds_each(uint64_t usual, void (*run)(uint64_t seed));

#endif
