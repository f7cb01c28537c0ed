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
    pthread_mutex_lock(&verbs_lock);
    qp_part_all();
    qp_count_all();
    pthread_mutex_unlock(&verbs_lock);
    rddp_drain(context, PARTING_MS);
    stats_print();
}
