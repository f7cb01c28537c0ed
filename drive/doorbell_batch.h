/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell_batch.h - doorbell batching: a burst of single posts rings once and leaves in one system call.
 *
 * A deferred doorbell is rung by further posts, by a poll that finds its CQ empty twice without a post in between, by
 * rddp_progress(), or by the loop's thread: at the latest 50 us after the last post that deferred it. By then a poster
 * that goes on posting has rung it itself, 50 us after the first post that waits. A context without a thread relies on
 * its application to poll; while that sleeps in rddp_progress(), or has the descriptor of rddp_progress_fd(), the first
 * post that defers wakes it. */
#ifndef RDDP_DRIVE_DOORBELL_BATCH_H
#define RDDP_DRIVE_DOORBELL_BATCH_H

#include "endpoint/objects.h"

enum batch_verdict {
    BATCH_RING,
    BATCH_DEFER,
    BATCH_WAKE, /* the same, and loop_wake() follows when the spinlock has been released */
};

/* May the doorbell be deferred? Under the spinlock of the queue pair, after a post of `requests` to a connection. Never
 * for a message that is alone, or large. */
enum batch_verdict batch_defer(struct rddp_qp *qp, const struct endpoint *endpoint, uint32_t requests);

/* Is no doorbell deferred? */
static inline bool batch_is_empty(const struct doorbell_batch *batch)
{
    return !atomic_load(&batch->waiting) && !atomic_load_explicit(&batch->taken, memory_order_relaxed);
}

/* Rings the deferred doorbells of a loop, but for those whose poster is posting right now; from any thread. Waits for
 * no other thread. Returns whether a doorbell was deferred: what has left since may be complete. */
bool batch_ring(struct loop *loop);

/* By the loop's thread before it sleeps: rings what has waited long enough. Returns for how many microseconds the
 * thread may sleep; UINT64_MAX: until it is woken. */
uint64_t batch_serve(struct loop *loop);

/* Without a thread. Between batch_sleep() and batch_wake_up() the caller sleeps until the loop is woken; also for good,
 * on behalf of an application that has the loop's descriptor. batch_answer(), by the driver, follows each round, which
 * may have reset the eventfd. batch_sleep() rings first, and returns as batch_ring(). */
bool batch_sleep(struct loop *loop);
void batch_wake_up(struct loop *loop);
void batch_answer(struct loop *loop);

/* The queue pair goes away, or to another loop: rings for it and for the others. */
void batch_forget(struct rddp_qp *qp);

/* Also in a child of fork(), where no thread is inside. */
void batch_init(struct loop *loop);

#endif
