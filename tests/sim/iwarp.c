/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.c - simulates whole connections over iWARP: any requests, any options, any end, on a stream or in packets of
 * any order; memory must be as requested.
 *
 * Shown for every mix of options: MPA-2-01 MPA-2-02 MPA-7.1-15 MPA-7.4.1-01 MPA-9-09 DDP-3-01 DDP-4.1-03 DDP-5.3-02
 * DDP-7.1-03 DDP-8-03 RDMAP-5.5-01 to 05 RDMAP-6.1-01 RDMAP-6.2-01 RDMAP-7.2-01 RDMAP-8-01 M44-05 M44-16 M65-05 M65-10.
 *
 * SIM_RUNS=100000 sets the number of runs, RDDP_LONG=1 ten times the usual; SIM_SEED=0x1234 sets the first seed. A
 * failed run prints its seed. SIM_VERBOSE=1 describes each run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/sim/lib/ending.h"
#include "tests/sim/lib/sim.h"

enum { RUNS = 500 };

static void runs(void **state)
{
    struct tally t = {0};
    bool all = sim_runs(&wire_iwarp, RUNS, &t);

    (void)state;
    printf("sim: %llu with CRC, %llu with markers, %llu peer-to-peer, %llu immediate, %llu shared queues\n",
           (unsigned long long)t.crc, (unsigned long long)t.markers, (unsigned long long)t.peer_to_peer,
           (unsigned long long)t.immediate, (unsigned long long)t.shared);
    printf("sim: %llu MB came early\n", (unsigned long long)t.early / 1000000);
    printf("sim: %llu MB were read to where they belong\n", (unsigned long long)t.apart / 1000000);
    if (all) {
        assert_true(t.apart > 100000 && t.early > 1000000 && t.straight > 1000);
        ending_tally(&wire_iwarp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
    };

    return cmocka_run_group_tests_name("sim iwarp", tests, NULL, NULL);
}
