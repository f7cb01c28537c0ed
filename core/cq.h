/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.h - a completion queue: the engine pushes, the application takes at its own pace. */
#ifndef RDDP_CORE_CQ_H
#define RDDP_CORE_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rddp/wr.h>

#include "base/spin.h"

enum cq_arm {
    CQ_QUIET,     /* nobody waits for an event */
    CQ_SOLICITED, /* the next solicited completion or error makes one */
    CQ_NEXT,      /* any completion does */
};

/* A completion in the ring, and the count of places taken in the queue of its request. As with a device, a request
 * leaves its queue only when the application has seen it completed, so a CQ as large as its queues never overflows. */
struct cq_entry {
    struct rddp_wc wc;
    _Atomic uint32_t *taken; /* counted down when the completion is polled; or NULL */
};

/* Any thread may push, poll and arm. Writers exclude each other, and so do readers; a writer and a reader share the
 * ring through head and tail alone. */
struct cq {
    struct cq_entry *ring;
    uint32_t size;                 /* a power of two: the room the creator gave */
    uint32_t cqe;                  /* the capacity that was asked for, and the limit */
    _Atomic uint32_t head, tail;   /* head: writers'; tail: readers' */
    struct spin writing, reading;  /* taken in this order: reading, writing */
    enum cq_arm arm;               /* guarded by `writing` */
    _Atomic bool overflowed;       /* for good: completions are missing */
    void (*notify)(struct cq *cq); /* called once per arming, with no lock of the CQ held */
    _Atomic uint32_t users;        /* queue pairs */
};

/* `ring` has `size` entries, a power of two not below `cqe`. */
void cq_init(struct cq *cq, struct cq_entry *ring, uint32_t size, uint32_t cqe, void (*notify)(struct cq *));

/* Adds a completion and makes the event if the arming asks for it. The poll of this completion counts *taken down.
 * False, for good, if there is no room: *taken is counted down at once, and whoever is armed is woken, to find
 * `overflowed`. */
bool cq_push(struct cq *cq, const struct rddp_wc *wc, bool solicited, _Atomic uint32_t *taken);

/* Takes up to `n` completions, oldest first. */
uint32_t cq_poll(struct cq *cq, struct rddp_wc *wc, uint32_t n);

bool cq_is_empty(const struct cq *cq);

/* Arms for one event; CQ_NEXT is not weakened by a later CQ_SOLICITED (as ibv_req_notify_cq). True if it was quiet. */
bool cq_arm(struct cq *cq, enum cq_arm arm);

/* In a child of fork(), where nobody is inside any more: opens the locks, and counts each completion into the places of
 * its queue, of which all others were counted before (qp_leave(), rq_leave()). */
void cq_leave(struct cq *cq);

/* Drops what the queue pair `qp_num` left in the ring. It is being destroyed and pushes nothing more. */
void cq_forget(struct cq *cq, uint32_t qp_num);

#endif
