/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.h - who does the work of a loop: its thread, or an application that polls. */
#ifndef RDDP_DRIVE_THREAD_H
#define RDDP_DRIVE_THREAD_H

#include "endpoint/loop.h"

/* Starts the thread: 0 or -EAGAIN. Set the context's `stopping` before loop_stop(), which joins it. */
int loop_start(struct loop *loop);
void loop_stop(struct loop *loop);

/* Do one round of work without waiting, by the driver. loop_poll() is for a poller: most of the time it
 * asks only the link that spoke last. loop_work_woken() is for who has slept at the loop, and was woken: it asks that
 * link first, and all others if it has nothing, or every sixteenth time. */
void loop_work(struct loop *loop);
void loop_work_woken(struct loop *loop);
void loop_poll(struct loop *loop);

/* By the driver, who holds no endpoint: a link that rests is reported again. Before a thread sleeps at the loop, which
 * `batch.sleepers` says already, and in each round that does not ask the hot link. */
void loop_rouse(struct loop *loop);
void loop_lock_and_rouse(struct loop *loop);

#endif
