/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.h - reports the asynchronous events of an object to the channel that watches it, if any. */
#ifndef RDDP_API_ASYNC_H
#define RDDP_API_ASYNC_H

#include "endpoint/objects.h"

/* Called by the engine, with no spinlock held: what a queue pair tells, the CQ was full, the SRQ is below its limit. */
void async_qp_happened(struct qp *qp, enum qp_happening what);
void async_cq_overran(struct cq *cq);
void async_srq_is_low(struct rq *rq);

/* Drops the events that were not taken. */
void async_drop(struct async_source *source);

/* The object is being destroyed and reports nothing more: waits until its events are acknowledged, and leaves the
 * channel. */
void async_leave(struct async_source *source);

#endif
