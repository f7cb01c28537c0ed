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

void rq_init(struct rq *rq, struct pd *pd, uint32_t depth, uint32_t sge_max, void *buffer)
{
    uint32_t slots = ring_slots(depth);

    *rq = (struct rq){
        .ring = buffer,
        .sges = (struct rddp_sge *)((uint8_t *)buffer + size_align(slots * sizeof(struct recv))),
        .pd = pd,
        .depth = depth,
        .sge_max = sge_max,
        .mask = slots - 1,
    };
    for (uint32_t i = 0; i < slots; i++)
        rq->ring[i].sge = rq->sges + (size_t)i * sge_max;
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

void rq_leave(struct rq *rq)
{
    rq->spin = (struct spin){false};
    rq->taken = rq->head - rq->tail;
}

uint32_t rq_posted(struct rq *rq)
{
    uint32_t posted;

    spin_lock(&rq->spin);
    posted = rq->head - rq->tail;
    spin_unlock(&rq->spin);
    return posted;
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

bool rq_take(struct rq *rq, struct recv *to)
{
    bool is_posted;

    spin_lock(&rq->spin);
    is_posted = rq->head != rq->tail;
    if (is_posted)
        rq_copy(to, &rq->ring[rq->tail++ & rq->mask]);
    spin_unlock(&rq->spin);
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
