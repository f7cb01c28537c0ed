/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.c - posted receives, of one queue pair or shared (SRQ): taken in posting order. `spin` guards the ring. */
#include "core/qp_inner.h"

#include <errno.h>
#include <string.h>

size_t rq_size(uint32_t depth, uint32_t sge_max)
{
    size_t slots = ring_slots(depth);

    return size_align(slots * sizeof(struct recv)) + size_align(slots * sge_max * sizeof(struct rddp_sge));
}

/* Gives each place of a ring its part of the room for sges behind it. */
static void rq_lay_out(struct recv *ring, uint32_t slots, uint32_t sge_max)
{
    struct rddp_sge *sges = (struct rddp_sge *)((uint8_t *)ring + size_align(slots * sizeof(struct recv)));

    for (uint32_t i = 0; i < slots; i++)
        ring[i].sge = sges + (size_t)i * sge_max;
}

void rq_init(struct rq *rq, struct pd *pd, uint32_t depth, uint32_t sge_max, void *buffer)
{
    *rq = (struct rq){
        .ring = buffer,
        .pd = pd,
        .depth = depth,
        .sge_max = sge_max,
        .mask = ring_slots(depth) - 1,
    };
    rq_lay_out(buffer, ring_slots(depth), sge_max);
}

int sges_check(const struct rddp_sge *sge, int count, uint32_t max, uint32_t *length)
{
    uint64_t sum = 0;

    if (count < 0 || (uint32_t)count > max)
        return -EINVAL;
    for (int i = 0; i < count; i++)
        sum += sge[i].length;
    if (sum > QP_MESSAGE_MAX)
        return -EINVAL;
    *length = (uint32_t)sum;
    return 0;
}

static void rq_fill(struct recv *recv, const struct rddp_recv_wr *wr, uint32_t capacity)
{
    recv->wr_id = wr->wr_id;
    recv->capacity = capacity;
    recv->sges = (uint32_t)wr->num_sge;
    recv->control = wr->control;
    recv->control_size = wr->control ? wr->control_size : 0;
    for (uint32_t i = 0; i < recv->sges; i++)
        recv->sge[i] = wr->sg_list[i];
}

int rq_post(struct rq *rq, const struct rddp_recv_wr *wr)
{
    uint32_t capacity;
    bool full;

    if (sges_check(wr->sg_list, wr->num_sge, rq->sge_max, &capacity))
        return -EINVAL;
    spin_lock(&rq->spin);
    full = atomic_load_explicit(&rq->taken, memory_order_acquire) >= rq->depth;
    if (!full) {
        atomic_fetch_add_explicit(&rq->taken, 1, memory_order_relaxed);
        rq_fill(&rq->ring[rq->head & rq->mask], wr, capacity);
        rq->head++;
    }
    spin_unlock(&rq->spin);
    return full ? -ENOMEM : 0;
}

bool rq_await(struct rq *rq, uint64_t waiter)
{
    bool is_empty;

    spin_lock(&rq->spin);
    is_empty = rq->head == rq->tail;
    if (is_empty)
        atomic_fetch_or_explicit(&rq->waiters, waiter, memory_order_relaxed);
    spin_unlock(&rq->spin);
    return is_empty;
}

void rq_leave(struct rq *rq)
{
    rq->spin = (struct spin){false};
    rq->waiters = 0;
    rq->taken = rq->head - rq->tail;
}

struct rq_state rq_state(struct rq *rq)
{
    struct rq_state state;

    spin_lock(&rq->spin);
    state = (struct rq_state){.depth = rq->depth, .posted = rq->head - rq->tail, .limit = rq->limit};
    spin_unlock(&rq->spin);
    return state;
}

/* Has the number of posted receives fallen below the limit? If so it is said once. Called with `spin` held. */
static bool rq_is_low(struct rq *rq)
{
    if (rq->head - rq->tail >= rq->limit)
        return false;
    rq->limit = 0;
    return true;
}

bool rq_set_limit(struct rq *rq, uint32_t limit)
{
    bool is_low, fits;

    spin_lock(&rq->spin);
    fits = limit <= rq->depth;
    if (fits)
        rq->limit = limit;
    is_low = fits && rq_is_low(rq);
    spin_unlock(&rq->spin);
    if (is_low && rq->low)
        rq->low(rq);
    return fits;
}

/* Copies the sges too, because the slot may be reused while the message is still arriving. */
static void rq_copy(struct recv *to, const struct recv *recv)
{
    to->wr_id = recv->wr_id;
    to->capacity = recv->capacity;
    to->sges = recv->sges;
    to->control = recv->control;
    to->control_size = recv->control_size;
    for (uint32_t i = 0; i < recv->sges; i++)
        to->sge[i] = recv->sge[i];
}

void *rq_resize(struct rq *rq, uint32_t depth, void *buffer)
{
    struct recv *ring = buffer, *old;
    uint32_t mask = ring_slots(depth) - 1;

    rq_lay_out(ring, mask + 1, rq->sge_max);
    spin_lock(&rq->spin);
    old = rq->ring;
    if (depth < atomic_load_explicit(&rq->taken, memory_order_acquire) || depth < rq->limit) {
        spin_unlock(&rq->spin);
        return NULL;
    }
    for (uint32_t i = rq->tail; i != rq->head; i++)
        rq_copy(&ring[i & mask], &old[i & rq->mask]);
    rq->ring = ring;
    rq->mask = mask;
    rq->depth = depth;
    spin_unlock(&rq->spin);
    return old;
}

bool rq_take(struct rq *rq, struct recv *to)
{
    bool is_posted, is_low;

    spin_lock(&rq->spin);
    is_posted = rq->head != rq->tail;
    if (is_posted)
        rq_copy(to, &rq->ring[rq->tail++ & rq->mask]);
    is_low = rq_is_low(rq);
    spin_unlock(&rq->spin);
    if (is_low && rq->low)
        rq->low(rq);
    return is_posted;
}

bool rq_drop(struct rq *rq, uint64_t *wr_id)
{
    bool is_posted;

    spin_lock(&rq->spin);
    is_posted = rq->head != rq->tail;
    if (is_posted)
        *wr_id = rq->ring[rq->tail++ & rq->mask].wr_id;
    spin_unlock(&rq->spin);
    return is_posted;
}
