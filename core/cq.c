/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - a ring between one writer, under the engine's lock, and one reader at a time without it. */
#include "core/cq.h"

#include <assert.h>
#include <string.h>

void cq_init(struct cq *cq, struct cq_entry *ring, uint32_t size, uint32_t cqe, void (*notify)(struct cq *))
{
    assert(cqe && cqe <= size && (size & (size - 1)) == 0);
    memset(cq, 0, sizeof(*cq));
    cq->ring = ring;
    cq->size = size;
    cq->cqe = cqe;
    cq->notify = notify;
    atomic_init(&cq->head, 0);
    atomic_init(&cq->tail, 0);
    atomic_init(&cq->overflowed, false);
    atomic_flag_clear(&cq->reading);
}

/* Makes the event if the arming asks for it: once, until the next cq_arm(). */
static void wake(struct cq *cq, bool solicited)
{
    if (cq->arm == CQ_QUIET || (cq->arm == CQ_SOLICITED && !solicited))
        return;
    cq->arm = CQ_QUIET;
    if (cq->notify)
        cq->notify(cq);
}

bool cq_push(struct cq *cq, const struct rddp_wc *wc, bool solicited, _Atomic uint32_t *unpolled)
{
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

    /* Once something is missing nothing may follow: a reader who saw a gap would count wrong. */
    if (atomic_load_explicit(&cq->overflowed, memory_order_relaxed))
        return false;
    if (head - atomic_load_explicit(&cq->tail, memory_order_acquire) >= cq->cqe) {
        atomic_store_explicit(&cq->overflowed, true, memory_order_release);
        wake(cq, true);
        return false;
    }
    cq->ring[head & (cq->size - 1)] = (struct cq_entry){*wc, unpolled};
    if (unpolled)
        atomic_fetch_add_explicit(unpolled, 1, memory_order_relaxed);
    atomic_store_explicit(&cq->head, head + 1, memory_order_release);
    wake(cq, solicited || wc->status != RDDP_WC_SUCCESS);
    return true;
}

static void take_turn(struct cq *cq)
{
    while (atomic_flag_test_and_set_explicit(&cq->reading, memory_order_acquire)) {
    }
}

static void give_turn(struct cq *cq)
{
    atomic_flag_clear_explicit(&cq->reading, memory_order_release);
}

static void take(const struct cq_entry *entry, struct rddp_wc *wc)
{
    *wc = entry->wc;
    if (entry->unpolled)
        atomic_fetch_sub_explicit(entry->unpolled, 1, memory_order_relaxed);
}

uint32_t cq_poll(struct cq *cq, struct rddp_wc *wc, uint32_t n)
{
    uint32_t tail, there;

    if (cq_is_empty(cq))
        return 0;
    take_turn(cq);
    tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    there = atomic_load_explicit(&cq->head, memory_order_acquire) - tail;
    if (n > there)
        n = there;
    for (uint32_t i = 0; i < n; i++)
        take(&cq->ring[(tail + i) & (cq->size - 1)], &wc[i]);
    atomic_store_explicit(&cq->tail, tail + n, memory_order_release);
    give_turn(cq);
    return n;
}

bool cq_is_empty(const struct cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_acquire) ==
           atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

void cq_arm(struct cq *cq, enum cq_arm arm)
{
    if (arm > cq->arm)
        cq->arm = arm;
}

void cq_forget(struct cq *cq, uint32_t qp_num)
{
    uint32_t tail, head, kept;
    struct rddp_wc gone;

    take_turn(cq);
    tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    kept = tail;
    for (uint32_t i = tail; i != head; i++) {
        const struct cq_entry *entry = &cq->ring[i & (cq->size - 1)];

        if (entry->wc.qp_num == qp_num)
            take(entry, &gone);
        else
            cq->ring[kept++ & (cq->size - 1)] = *entry;
    }
    atomic_store_explicit(&cq->head, kept, memory_order_release);
    give_turn(cq);
}
