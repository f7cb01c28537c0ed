/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.h - a completion queue: the engine pushes, the application takes at its own pace. */
#ifndef RDDP_CORE_CQ_H
#define RDDP_CORE_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rddp/wr.h>

enum cq_arm {
    CQ_QUIET,     /* nobody waits for an event */
    CQ_SOLICITED, /* the next solicited completion or error makes one */
    CQ_NEXT,      /* any completion does */
};

/* A completion in the ring, and whose place in a queue it still takes: like a device, a request is out of its queue
 * only when the application has seen it completed, so that a CQ as large as its queues never overflows. */
struct cq_entry {
    struct rddp_wc wc;
    _Atomic uint32_t *unpolled; /* counted up by cq_push(), down when it is polled; or NULL */
};

/* One writer (under the engine's lock) and one reader at a time (cq_poll takes turns) share the ring without a lock. */
struct cq {
    struct cq_entry *ring;
    uint32_t size; /* a power of two: the room the creator gave */
    uint32_t cqe;  /* what was asked for and is kept to */
    _Atomic uint32_t head, tail;
    atomic_flag reading;
    enum cq_arm arm;
    _Atomic bool overflowed;       /* for good: completions are missing */
    void (*notify)(struct cq *cq); /* called once per arming, under the lock; may not call back into the engine */
    uint32_t users;                /* queue pairs */
};

/* `ring` has `size` entries, a power of two not below `cqe`. */
void cq_init(struct cq *cq, struct cq_entry *ring, uint32_t size, uint32_t cqe, void (*notify)(struct cq *));

/* Adds a completion and makes the event if the arming asks for it. False, for good, if there is no room: then whoever
 * is armed is woken too, to find `overflowed`. */
bool cq_push(struct cq *cq, const struct rddp_wc *wc, bool solicited, _Atomic uint32_t *unpolled);

/* Takes up to `n` completions, oldest first; safe from any thread, without the engine's lock. */
uint32_t cq_poll(struct cq *cq, struct rddp_wc *wc, uint32_t n);

bool cq_is_empty(const struct cq *cq);

/* Arms for one event; CQ_NEXT is not weakened by a later CQ_SOLICITED (as ibv_req_notify_cq). Under the lock. */
void cq_arm(struct cq *cq, enum cq_arm arm);

/* Drops what the queue pair `qp_num` left in the ring (it is being destroyed). Under the engine's lock. */
void cq_forget(struct cq *cq, uint32_t qp_num);

#endif
