/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stats.c - what the process's connections did, on standard error when it ends: `rddp run --stats` asks for it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs/verbs_object.h"

static struct {
    uint64_t connections, failed, tx_octets, rx_octets;
} stats; /* under verbs_lock */

void stats_count(struct rddp_qp *qp)
{
    struct rddp_qp_info info;

    rddp_query_qp(qp, &info);
    stats.connections += info.emss != 0;
    stats.failed += info.state == RDDP_QP_ERROR && info.fault;
    stats.tx_octets += info.tx_octets;
    stats.rx_octets += info.rx_octets;
}

void stats_print(void)
{
    if (getenv("RDDP_VERBS_STATS") && stats.connections)
        fprintf(stderr,
                "rddp: %" PRIu64 " connections, %" PRIu64 " failed; %" PRIu64 " octets sent, %" PRIu64 " received\n",
                stats.connections, stats.failed, stats.tx_octets, stats.rx_octets);
}
