/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bells.h - doorbells that are rung a little later, so that a burst of single posts leaves in one call. */
#ifndef RDDP_API_BELLS_H
#define RDDP_API_BELLS_H

#include "api/api.h"

/* May the bell wait? Under the spinlock of the queue pair, after a post to a connection. Then bells_remember() follows
 * when the spinlock has been given back. Never for a message that is alone. */
bool bells_may_wait(struct rddp_qp *qp, const struct endpoint *endpoint);

/* The bell is rung by the next poll that finds its CQ empty, by further posts, or after 50 us. */
void bells_remember(struct rddp_qp *qp);

/* Rings what waits at this loop; from any thread. */
void bells_ring(struct progress *progress);

/* The queue pair goes away. */
void bells_forget(struct rddp_qp *qp);

/* The timer of a loop. 0 or -EMFILE; bells_fini() is called once in either case. */
int bells_init(struct progress *progress);
void bells_fini(struct progress *progress);

#endif
