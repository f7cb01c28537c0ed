/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exit.c - the end of a program. */
#include "verbs/verbs_object.h"

/* What was sent leaves, and connections that were closed end, although the program ends at once; an adapter would do
 * the same by itself. Of others the peer is informed, as a kernel does it: over TCP by what closes the socket. */
__attribute__((destructor)) static void drain_at_exit(void)
{
    enum { AT_MOST_MS = 2000, PARTING_MS = 200 };
    struct rddp_context *context = process_context_here();

    if (!context)
        return;
    rddp_drain(context, AT_MOST_MS);
    verbs_enter();
    qp_part_all();
    qp_count_all();
    verbs_leave();
    rddp_drain(context, PARTING_MS);
    verbs_enter();
    stats_print();
    verbs_leave();
}
