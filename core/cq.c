/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - a ring of completions: one writer and one reader at a time, which do not exclude each other. */
#include "core/cq.h"

#include <assert.h>
#include <string.h>

/* Counts the places of completions whose queue pair is gone: any number, because all of them were given back. */
static _Atomic uint32_t cq_nobodys;

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
}

static struct cq_entry *cq_at(const struct cq *cq, uint32_t i)
{
    return &cq->ring[(i - cq->first) & (cq->size - 1)];
}

static void cq_give_back(_Atomic uint32_t *taken, uint32_t places)
{
    if (taken)
        atomic_fetch_sub_explicit(taken, places, memory_order_release);
}

/* Is there a place for one more? After a lost completion none may follow: a reader would not notice the gap.
 * If the ring is empty, the next one goes to its front. */
static inline bool cq_has_place(struct cq_writer *w)
{
    struct cq *cq = w->cq;
    uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);

    if (w->overran || atomic_load_explicit(&cq->overflowed, memory_order_relaxed))
        return false;
    w->overran = w->head - tail >= cq->cqe;
    if (w->head == tail)
        cq->first = tail;
    return !w->overran;
}

static inline __attribute__((always_inline)) struct rddp_wc *writer_add(struct cq_writer *w, bool solicited,
                                                                        _Atomic uint32_t *taken)
{
    struct cq *cq = w->cq;
    struct cq_entry *entry;

    if (!w->is_writing) {
        spin_lock(&cq->writing);
        w->is_writing = true;
        w->head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    }
    if (!cq_has_place(w)) {
        w->wakes = true; /* also who waits for a solicited one: it is to find `overflowed` */
        cq_give_back(taken, 1);
        return NULL;
    }
    w->wakes |= solicited;
    entry = cq_at(cq, w->head++);
    __builtin_prefetch(cq_at(cq, w->head + 1), 1); /* last used a whole ring ago */
    entry->taken = taken;
    return &entry->wc;
}

/* Must an event be made now? Disarms the CQ if so. Called with `writing` held. */
static bool disarm(struct cq *cq, bool solicited)
{
    enum cq_arm arm = atomic_load_explicit(&cq->arm, memory_order_relaxed);

    if (arm == CQ_QUIET || (arm == CQ_SOLICITED && !solicited))
        return false;
    atomic_store_explicit(&cq->arm, CQ_QUIET, memory_order_relaxed);
    return cq->notify != NULL;
}

static void stamp(struct cq *cq, uint32_t from, uint32_t to)
{
    uint64_t now_ns = cq->clock_ns();

    for (; from != to; from++)
        cq_at(cq, from)->wc.timestamp_ns = now_ns;
}

static inline __attribute__((always_inline)) void writer_show(struct cq_writer *w)
{
    struct cq *cq = w->cq;
    bool wake;

    if (!w->is_writing)
        return;
    if (cq->clock_ns)
        stamp(cq, atomic_load_explicit(&cq->head, memory_order_relaxed), w->head);
    atomic_store_explicit(&cq->head, w->head, memory_order_release);
    if (w->overran) /* behind what came before the loss */
        atomic_store_explicit(&cq->overflowed, true, memory_order_release);
    wake = disarm(cq, w->wakes);
    w->is_writing = false;
    spin_unlock(&cq->writing);
    if (wake)
        cq->notify(cq);
    if (w->overran && cq->overran)
        cq->overran(cq);
}

struct rddp_wc *cq_add(struct cq_writer *w, bool solicited, _Atomic uint32_t *taken)
{
    return writer_add(w, solicited, taken);
}

void cq_show(struct cq_writer *w)
{
    writer_show(w);
}

bool cq_push(struct cq *cq, const struct rddp_wc *wc, bool solicited, _Atomic uint32_t *taken)
{
    struct cq_writer w = {.cq = cq};
    struct rddp_wc *place = writer_add(&w, solicited || wc->status != RDDP_WC_SUCCESS, taken);

    if (place)
        *place = *wc;
    writer_show(&w);
    return place;
}

/* Takes entries, at most `n`, as long as they are of the same queue. Gives their places back only after the ring has
 * room: a request posted to such a place must find room for its completion. Called with `reading` held. */
static uint32_t take_run(struct cq *cq, uint32_t tail, struct rddp_wc *wc, uint32_t n)
{
    _Atomic uint32_t *taken = cq_at(cq, tail)->taken;
    uint32_t run = 0;

    do
        wc[run] = cq_at(cq, tail + run)->wc;
    while (++run < n && cq_at(cq, tail + run)->taken == taken);
    atomic_store_explicit(&cq->tail, tail + run, memory_order_release);
    cq_give_back(taken, run);
    return run;
}

uint32_t cq_take(struct cq *cq, struct rddp_wc *wc, uint32_t n)
{
    uint32_t tail, there;

    spin_lock(&cq->reading);
    tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    there = atomic_load_explicit(&cq->head, memory_order_acquire) - tail;
    if (n > there)
        n = there;
    for (uint32_t i = 0; i < n;)
        i += take_run(cq, tail + i, wc + i, n - i);
    spin_unlock(&cq->reading);
    return n;
}

struct cq_entry *cq_resize(struct cq *cq, struct cq_entry *ring, uint32_t size, uint32_t cqe)
{
    struct cq_entry *old = NULL;
    uint32_t tail, head;

    assert(cqe && cqe <= size && (size & (size - 1)) == 0);
    spin_lock(&cq->reading);
    spin_lock(&cq->writing);
    tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    if (head - tail <= cqe) {
        for (uint32_t i = tail; i != head; i++)
            ring[i - tail] = *cq_at(cq, i);
        old = cq->ring;
        cq->ring = ring;
        cq->first = tail;
        cq->size = size;
        cq->cqe = cqe;
    }
    spin_unlock(&cq->writing);
    spin_unlock(&cq->reading);
    return old;
}

bool cq_arm(struct cq *cq, enum cq_arm arm)
{
    bool was_quiet;

    spin_lock(&cq->writing);
    was_quiet = !cq_is_armed(cq);
    if (arm > cq->arm)
        cq->arm = arm;
    spin_unlock(&cq->writing);
    return was_quiet;
}

void cq_orphan(struct cq *cq, uint32_t qp_num)
{
    spin_lock(&cq->reading);
    spin_lock(&cq->writing);
    for (uint32_t i = cq->tail; i != cq->head; i++) {
        struct cq_entry *entry = cq_at(cq, i);

        if (entry->wc.qp_num != qp_num || entry->wc.status != RDDP_WC_SUCCESS || entry->taken == &cq_nobodys)
            continue;
        cq_give_back(entry->taken, 1);
        entry->taken = &cq_nobodys;
    }
    spin_unlock(&cq->writing);
    spin_unlock(&cq->reading);
}

void cq_forget(struct cq *cq, uint32_t qp_num)
{
    uint32_t tail, head, kept;

    spin_lock(&cq->reading);
    spin_lock(&cq->writing);
    tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    kept = tail;
    for (uint32_t i = tail; i != head; i++) {
        const struct cq_entry *entry = cq_at(cq, i);

        if (entry->wc.qp_num == qp_num && entry->taken != &cq_nobodys)
            cq_give_back(entry->taken, 1);
        else
            *cq_at(cq, kept++) = *entry;
    }
    atomic_store_explicit(&cq->head, kept, memory_order_release);
    spin_unlock(&cq->writing);
    spin_unlock(&cq->reading);
}

void cq_leave(struct cq *cq)
{
    cq->reading = cq->writing = (struct spin){false};
    for (uint32_t i = cq->tail; i != cq->head; i++)
        if (cq_at(cq, i)->taken)
            ++*cq_at(cq, i)->taken;
}
