/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bells.h - doorbells that are rung a little later, so that a burst of single posts leaves in one call. */
#ifndef RDDP_DRIVE_DOORBELL_BATCH_H
#define RDDP_DRIVE_DOORBELL_BATCH_H

#include "endpoint/objects.h"

enum bells_verdict {
    BELLS_RING,
    BELLS_WAIT,      /* rung by the next poll that finds its CQ empty, by further posts, or after 50 us */
    BELLS_SET_TIMER, /* the same, and bells_set_timer() follows when the spinlock has been given back */
};

/* May the bell wait? Under the spinlock of the queue pair, after a post to a connection. Never for a message that is
 * alone. */
enum bells_verdict bells_put_off(struct rddp_qp *qp, const struct endpoint *endpoint);
void bells_set_timer(struct progress *progress);

/* Rings what waits at this loop; from any thread. */
void bells_ring(struct progress *progress);

/* The queue pair goes away, or to another loop: rings for it and for the others. */
void bells_forget(struct rddp_qp *qp);

/* The timer of a loop. 0 or -EMFILE; bells_fini() is called once in either case. */
int bells_init(struct progress *progress);
void bells_fini(struct progress *progress);

#endif
