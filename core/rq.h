/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.h - a receive queue: receives are posted, taken in that order, and waited for. */
#ifndef RDDP_CORE_RQ_H
#define RDDP_CORE_RQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rddp/wr.h>

#include "base/spin.h"
#include "core/mr.h"

/* A posted receive. `sge` points into the room of its queue. */
struct recv {
    uint64_t wr_id;
    struct rddp_sge *sge;
    uint32_t sges;
    uint32_t capacity; /* octets, at most QP_MESSAGE_MAX */
    uint8_t *control;  /* where the message's control data go */
    uint32_t control_size;
};

/* A receive queue: a queue pair's own, or shared by many (SRQ). */
struct rq {
    struct recv *ring;
    struct pd *pd;
    uint32_t depth, sge_max;
    uint32_t mask;       /* the ring has a power of two of places, so that free-running counters may wrap */
    struct spin spin;    /* guards the ring, depth, mask, head, tail: for a post, a take, and a change of size */
    uint32_t head, tail; /* free-running; head - tail are posted */
    /* Who waits until a receive is posted: bits of the host's. Set under spin, when the queue is empty. */
    _Atomic uint64_t waiters;
    _Atomic uint32_t taken;     /* places in use: posted, arriving, or complete and not polled yet */
    _Atomic uint32_t users;     /* queue pairs, if shared */
    uint32_t limit;             /* guarded by spin: with fewer receives posted, low() is called once; 0: never */
    void (*low)(struct rq *rq); /* set by the creator of a shared queue, called without a lock */
};

/* Octets that rq_init() wants, aligned for any type. A user of `pd` that its creator counts, as for a region. */
size_t rq_size(uint32_t depth, uint32_t sge_max);
void rq_init(struct rq *rq, struct pd *pd, uint32_t depth, uint32_t sge_max, void *buffer);

/* 0; -ENOMEM if full (with what is not polled yet), -EINVAL for too many sges or too long a sum. Nothing is looked at
 * behind the sge list. From any thread. */
int rq_post(struct rq *rq, const struct rddp_recv_wr *wr);

/* Notes that `waiter` waits, unless a receive is posted. Returns whether it waits. rq_take_waiters() returns all that
 * wait and forgets them; to be called after each post, by any thread: who was not served notes itself again. */
bool rq_await(struct rq *rq, uint64_t waiter);
static inline uint64_t rq_take_waiters(struct rq *rq)
{
    /* The post has held spin since they were noted. */
    return atomic_load_explicit(&rq->waiters, memory_order_relaxed) ? atomic_exchange(&rq->waiters, 0) : 0;
}

/* Arms the limit, or disarms it with 0. With fewer receives posted than that already, low() is called at once. Returns
 * false if the queue can never have as many. From any thread. */
bool rq_set_limit(struct rq *rq, uint32_t limit);

/* How many receives there may be, how many are posted and not taken, and the limit. From any thread. */
struct rq_state {
    uint32_t depth, posted, limit;
};
struct rq_state rq_state(struct rq *rq);

/* Changes the depth of a shared queue, whose receives move to `buffer`, which is as rq_init()'s. Returns the old
 * buffer; NULL: more places are in use, or the limit is higher, and nothing has changed. From any thread. */
void *rq_resize(struct rq *rq, uint32_t depth, void *buffer);

/* In a child of fork(), where no thread is inside any more: opens the lock and counts the places of what is posted. */
void rq_leave(struct rq *rq);

#endif
