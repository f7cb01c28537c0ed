/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell_batch.c - doorbell batching: a burst of single posts rings once and leaves in one system call.
 *
 * A thread that rings never waits for another one: it may have displaced that thread from its processor, and would get
 * it back a scheduler's slice later. Every deferred doorbell is in one of two lists that all threads see, `waiting` and
 * `taken`, until it is rung. */
#include "drive/doorbell_batch.h"

#include <sched.h>

enum {
    BUSY = 8,       /* a burst has at least this many requests posted without a poll, or not polled, ... */
    RECENT_US = 20, /* ... and a connection that sent something no longer ago than this */
    MOST = 256,     /* a doorbell is deferred for less than this many requests, ... */
    LARGE = 32768,  /* ... and for none of this many octets or more, which is worth a system call of its own */
    TIMED = 8,      /* a poster that goes on looks at the clock after this many requests; a power of two */
    LATEST_US = 50, /* the thread rings a doorbell after this time at the latest, its poster if it goes on, ... */
    EARLY_US = 5,   /* ... or this much earlier, if it happens to look then */
    LOOKS = 8,      /* looks in a row that find nothing deferred: the thread sleeps until it is woken */
};

/* --- deferring ------------------------------------------------------------------------------------------------- */

/* Puts a queue pair in front of the others. Its spinlock is held, or it was taken from a list. Pushing and then looking
 * at `watch` or `sleepers` is sequentially consistent, as is the reverse of those who stop watching or go to sleep: one
 * of both sees the other. */
static void batch_push(struct doorbell_batch *batch, struct rddp_qp *qp)
{
    struct rddp_qp *first = atomic_load_explicit(&batch->waiting, memory_order_relaxed);

    do
        atomic_store_explicit(&qp->next_in_batch, first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&batch->waiting, &first, qp));
}

/* After a push: does nothing look at the batch, although a sleeper could? Then the caller has to wake it. */
static bool batch_is_unwatched(struct doorbell_batch *batch)
{
    uint32_t none = BATCH_UNWATCHED;

    return atomic_load(&batch->sleepers) && atomic_load(&batch->watch) == none &&
           atomic_compare_exchange_strong(&batch->watch, &none, BATCH_WOKEN);
}

/* Counts the requests that were posted since one of its CQs was last polled, in a burst and in the one before. Who
 * waits for an answer polls the receive CQ alone. */
static void count_burst(struct rddp_qp *qp, uint32_t requests)
{
    uint32_t polls = qp_polls(qp);

    if (polls != qp->polls) {
        qp->last_burst = qp->burst;
        qp->burst = 0;
        qp->polls = polls;
    }
    qp->burst += requests;
}

/* Places in use, but for those of requests that the peer was not asked about. */
static bool has_many_under_way(const struct rddp_qp *qp)
{
    const struct send_queue *sq = &qp->qp.sq;
    uint32_t unasked = atomic_load_explicit(&sq->unasked, memory_order_relaxed);

    return atomic_load_explicit(&sq->taken, memory_order_relaxed) >= BUSY + unasked;
}

/* Requests without a completion give their places back when they leave, so places alone do not show a burst. Without a
 * thread nothing is deferred for an application that was not seen to poll: it might never call again. */
static bool is_burst(const struct rddp_qp *qp)
{
    if (qp->last_burst >= BUSY)
        return true;
    if (qp->context->manual && !qp->last_burst)
        return false;
    return qp->burst > BUSY || has_many_under_way(qp);
}

/* For its pollers, who compare. Posters of several queue pairs may lose a count, which only rings earlier. */
static void note_post(struct rddp_cq *cq)
{
    atomic_store_explicit(&cq->posts, atomic_load_explicit(&cq->posts, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Of the list that it is in: does no other queue pair wait there? One that rings may be adding it again meanwhile. */
static bool is_alone(struct doorbell_batch *batch, const struct rddp_qp *qp)
{
    const struct rddp_qp *first = atomic_load_explicit(&batch->waiting, memory_order_acquire);

    return !first || (first == qp && !atomic_load_explicit(&qp->next_in_batch, memory_order_relaxed));
}

/* While the poster goes on the thread need not ring: each time that it does costs it, or its peer, many microseconds.
 * Returns false if what it posted first has waited long enough. */
static bool goes_on(struct doorbell_batch *batch, struct rddp_qp *qp, uint32_t requests)
{
    uint64_t now_us;

    if ((qp->deferred ^ (qp->deferred + requests)) < TIMED)
        return true;
    now_us = reactor_now_us();
    if (now_us - qp->deferred_us >= LATEST_US)
        return false;
    if (is_alone(batch, qp))
        atomic_store_explicit(&batch->since_us, now_us, memory_order_relaxed);
    return true;
}

enum batch_verdict batch_defer(struct rddp_qp *qp, const struct endpoint *endpoint, uint32_t requests)
{
    struct rddp_cq *cq = container_of(qp->qp.attr.send_cq, struct rddp_cq, cq);
    struct doorbell_batch *batch = &endpoint->loop->batch;
    uint64_t now_us;

    count_burst(qp, requests);
    if (!is_burst(qp) || qp->deferred + requests >= MOST || qp_longest_of(&qp->qp, requests) >= LARGE)
        return BATCH_RING;
    if (qp->deferred) {
        note_post(cq);
        return goes_on(batch, qp, requests) ? BATCH_DEFER : BATCH_RING;
    }
    now_us = reactor_now_us();
    if (now_us - atomic_load_explicit(&endpoint->sent_us, memory_order_relaxed) > RECENT_US)
        return BATCH_RING;
    note_post(cq);
    qp->deferred_us = now_us;
    if (is_alone(batch, qp)) /* otherwise others may have waited longer */
        atomic_store_explicit(&batch->since_us, now_us, memory_order_relaxed);
    if (!qp->is_in_batch)
        batch_push(batch, qp);
    qp->is_in_batch = true;
    return batch_is_unwatched(batch) ? BATCH_WAKE : BATCH_DEFER;
}

/* --- ringing --------------------------------------------------------------------------------------------------- */

/* Rings for a queue pair that was taken: *endpoint is then to be answered, or NULL. Returns false if its poster is
 * posting: it stays deferred. The queue pair cannot go while its spinlock is held, nor the endpoint while its bell is.
 */
static bool ring_one(struct rddp_qp *qp, struct endpoint **endpoint)
{
    bool is_wanted;

    if (!spin_try(&qp->spin))
        return false;
    qp->is_in_batch = false;
    is_wanted = qp->deferred && qp->endpoint;
    *endpoint = is_wanted && doorbell_ring(&qp->endpoint->bell) ? qp->endpoint : NULL;
    qp->deferred = 0;
    spin_unlock(&qp->spin);
    return true;
}

/* Rings for the first of those that were taken; one whose poster is posting waits again. *endpoint is then to be
 * answered, or NULL. Returns false if there is none, or if another thread is doing this. */
static bool ring_first(struct doorbell_batch *batch, struct endpoint **endpoint)
{
    struct rddp_qp *qp;

    *endpoint = NULL;
    if (!spin_try(&batch->lock))
        return false;
    qp = batch->taken;
    if (qp) {
        batch->taken = atomic_load_explicit(&qp->next_in_batch, memory_order_relaxed);
        if (!ring_one(qp, endpoint))
            batch_push(batch, qp);
    }
    spin_unlock(&batch->lock);
    return qp;
}

/* Takes those that wait, unless some that were taken have not been rung for. */
static void batch_take(struct doorbell_batch *batch)
{
    if (!spin_try(&batch->lock))
        return;
    if (!batch->taken)
        batch->taken = atomic_exchange_explicit(&batch->waiting, NULL, memory_order_acquire);
    spin_unlock(&batch->lock);
}

/* What is deferred meanwhile waits for the next call: others may go on posting. */
bool batch_ring(struct loop *loop)
{
    struct doorbell_batch *batch = &loop->batch;
    struct endpoint *endpoint;
    bool was_empty = batch_is_empty(batch);

    for (unsigned round = 0; round < 2; round++) { /* one for what another thread has taken */
        if (batch_is_empty(batch))
            return !was_empty;
        batch_take(batch);
        while (ring_first(batch, &endpoint))
            if (endpoint)
                endpoint_answer(endpoint);
    }
    if (!batch_is_empty(batch) && batch_is_unwatched(batch))
        loop_wake(loop);
    return !was_empty;
}

static bool is_deferred(struct rddp_qp *qp)
{
    bool is_in_batch;

    spin_lock(&qp->spin);
    is_in_batch = qp->is_in_batch;
    spin_unlock(&qp->spin);
    return is_in_batch;
}

void batch_forget(struct rddp_qp *qp)
{
    while (is_deferred(qp)) {
        batch_ring(qp->loop);
        sched_yield(); /* to a thread that was displaced while it rang */
    }
}

/* --- who looks at it -------------------------------------------------------------------------------------------- */

/* Ends watching: who defers after this wakes a sleeper. Returns whether nothing is deferred. */
static bool batch_unwatch(struct doorbell_batch *batch)
{
    atomic_store(&batch->watch, BATCH_UNWATCHED);
    return batch_is_empty(batch);
}

/* The thread goes on looking for a while when a burst is over: a poster that has to wake it again loses more. */
static uint64_t look_at_nothing(struct doorbell_batch *batch)
{
    if (++batch->idle_looks < LOOKS)
        return LATEST_US;
    batch->idle_looks = 0;
    if (batch_unwatch(batch))
        return UINT64_MAX;
    atomic_store(&batch->watch, BATCH_WATCHED);
    return LATEST_US;
}

uint64_t batch_serve(struct loop *loop)
{
    struct doorbell_batch *batch = &loop->batch;
    uint64_t since_us, age_us;

    if (atomic_load(&batch->watch) == BATCH_UNWATCHED)
        return UINT64_MAX;
    atomic_store(&batch->watch, BATCH_WATCHED);
    if (batch_is_empty(batch))
        return look_at_nothing(batch);
    batch->idle_looks = 0;
    since_us = atomic_load_explicit(&batch->since_us, memory_order_relaxed);
    age_us = reactor_now_us() - since_us;
    if (age_us + EARLY_US < LATEST_US)
        return LATEST_US - age_us;
    batch_ring(loop);
    return LATEST_US;
}

bool batch_sleep(struct loop *loop)
{
    atomic_fetch_add(&loop->batch.sleepers, 1);
    return batch_ring(loop);
}

void batch_wake_up(struct loop *loop)
{
    atomic_fetch_sub(&loop->batch.sleepers, 1);
}

void batch_answer(struct loop *loop)
{
    struct doorbell_batch *batch = &loop->batch;

    if (loop->context->manual && atomic_load(&batch->watch) != BATCH_UNWATCHED && !batch_unwatch(batch))
        batch_ring(loop);
}

void batch_init(struct loop *loop)
{
    struct rddp_context *context = loop->context;

    loop->batch = (struct doorbell_batch){.sleepers = !context->manual + context->is_fd_known};
}
