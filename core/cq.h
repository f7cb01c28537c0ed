/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.h - a completion queue: the engine pushes, the application polls at its own pace. */
#ifndef RDDP_CORE_CQ_H
#define RDDP_CORE_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rddp/wr.h>

#include "base/spin.h"

enum cq_arm {
    CQ_QUIET,     /* no event is wanted */
    CQ_SOLICITED, /* the next solicited completion or error makes an event */
    CQ_NEXT,      /* the next completion makes an event */
};

/* A completion in the ring, and the counter of places taken in the queue of its request. As with a device, a request
 * keeps its place until the application has polled its completion, so a CQ as large as its queues never overflows. */
struct cq_entry {
    struct rddp_wc wc;
    _Atomic uint32_t *taken; /* decremented when the completion is polled; may be NULL */
};

/* Any thread may push, poll and arm. Writers exclude each other by `writing`, readers by `reading`; a writer and a
 * reader share the ring through head and tail alone. The ring itself is exchanged with both locks held. A writer that
 * finds it empty starts at its first entry again, which is still in the cache where a long ring is not. */
struct cq {
    struct cq_entry *ring;
    uint32_t first;                 /* the counter of ring[0]: a reader reads it after head, and before it sets tail */
    uint32_t size;                  /* a power of two: the entries of `ring`, which the creator owns */
    uint32_t cqe;                   /* the capacity requested, and the limit */
    _Atomic uint32_t head, tail;    /* head: written by the writer; tail: written by the reader */
    struct spin writing, reading;   /* lock order: reading, then writing */
    _Atomic enum cq_arm arm;        /* changed with `writing` held */
    _Atomic bool overflowed;        /* completions were lost; never reset */
    void (*notify)(struct cq *cq);  /* called once per arming, with no lock of the CQ held */
    uint64_t (*clock_ns)(void);     /* stamps completions; set by the creator, or NULL: they have no time */
    void (*overran)(struct cq *cq); /* called once, in the same way, when it overflows; set by the creator, or NULL */
    _Atomic uint32_t users;         /* queue pairs that use it */
};

/* Initialises a CQ. `ring` has `size` entries, a power of two not below `cqe`; it stays the caller's. */
void cq_init(struct cq *cq, struct cq_entry *ring, uint32_t size, uint32_t cqe, void (*notify)(struct cq *));

/* Adds a completion, and calls notify() if the CQ is armed for it. cq_poll() decrements *taken. Returns false, then and
 * ever after, if the ring is full: *taken is decremented at once, and a waiting thread is notified so that it finds
 * `overflowed`. */
bool cq_push(struct cq *cq, const struct rddp_wc *wc, bool solicited, _Atomic uint32_t *taken);

/* The same for several completions, which readers see together: {.cq = cq}, then cq_add() for each, and cq_show(). The
 * writer holds the lock from the first one on, so there are not many. */
struct cq_writer {
    struct cq *cq;
    uint32_t head; /* behind what was added */
    bool is_writing, wakes, overran;
};

/* Returns the place of the next completion, which the caller fills in; NULL as cq_push() returns false. `overflowed` is
 * set by cq_show(), when all that came before is there. */
struct rddp_wc *cq_add(struct cq_writer *w, bool solicited, _Atomic uint32_t *taken);
void cq_show(struct cq_writer *w);

/* Moves the completions, in their order, to `ring`, of `size` entries for a capacity of `cqe`, as of cq_init(). Others
 * may push, poll and arm. Returns the old ring; NULL: there are more completions than that, and nothing has changed. */
struct cq_entry *cq_resize(struct cq *cq, struct cq_entry *ring, uint32_t size, uint32_t cqe);

static inline bool cq_is_empty(const struct cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_acquire) ==
           atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

/* For cq_poll() alone: the CQ is probably not empty. */
uint32_t cq_take(struct cq *cq, struct rddp_wc *wc, uint32_t n);

/* Takes up to `n` completions, oldest first; returns their number. */
static inline uint32_t cq_poll(struct cq *cq, struct rddp_wc *wc, uint32_t n)
{
    return cq_is_empty(cq) ? 0 : cq_take(cq, wc, n);
}

static inline bool cq_is_armed(const struct cq *cq)
{
    return atomic_load_explicit(&cq->arm, memory_order_relaxed) != CQ_QUIET;
}

/* Arms for one event. CQ_NEXT is not weakened by a later CQ_SOLICITED (as with ibv_req_notify_cq()). Returns whether
 * the CQ was CQ_QUIET before. */
bool cq_arm(struct cq *cq, enum cq_arm arm);

/* In a child of fork(), where no other thread exists: opens the locks, and adds the completions in the ring to the
 * counters of taken places. qp_leave() and rq_leave() must have counted the rest before. */
void cq_leave(struct cq *cq);

/* Gives back the places of the successful completions of the queue pair `qp_num`, which is being destroyed and pushes
 * nothing more. They stay, and cq_forget() leaves them alone. */
void cq_orphan(struct cq *cq, uint32_t qp_num);

/* Drops the completions of the queue pair `qp_num`, which is being destroyed or reset and pushes nothing more. */
void cq_forget(struct cq *cq, uint32_t qp_num);

#endif
