/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdmatcp.c - simulates whole connections over RDMA/TCP segments, on a link that also delivers segments behind missing
 * ones: whole or cut, aligned or not.
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

enum { RUNS = 400 };

/* SEG-1-01 SEG-1-04 SEG-2-05 SEG-3.4-12 SEG-3.4-24 SEG-3.4-25 SEG-4-04 SEG-4-05 SEG-5-03 SEG-5-04 SEG-5-05 SEG-5-07 */
static void runs(void **state)
{
    struct tally t = {0};
    bool all = sim_runs(&wire_rdmatcp, RUNS, &t);

    (void)state;
    printf("sim: %llu MB came early, %llu shared queues, %llu Writes and Reads with control data\n",
           (unsigned long long)t.early / 1000000, (unsigned long long)t.shared, (unsigned long long)t.told);
    if (all)
        assert_true(t.early > 1000000 && t.told > 1500);
    if (all)
        ending_tally(&wire_rdmatcp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
    };

    return cmocka_run_group_tests_name("sim rdmatcp", tests, NULL, NULL);
}
