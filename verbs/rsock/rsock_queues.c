/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsock_queues.c - the queue pair of an rsocket, and its memory: what the peer writes lies in regions of a domain of
 * its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "verbs/rsock/rsocket.h"

static unsigned receives_of(const struct rsocket *rs)
{
    return rs->sizes.recv_queue + RS_SPARE_RECEIVES;
}

/* An announced number of iomaps is what the peer may write, so there is memory for all. */
static size_t shared_size(const struct rsocket *rs)
{
    return RS_SGL_ENTRIES * sizeof(struct rs_sge) + rs->sizes.iomaps * sizeof(struct rs_iomap);
}

static int queue_pair_make(struct rsocket *rs)
{
    struct rs_queues *q = &rs->queues;
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = rs->sizes.send_queue,
                .max_recv_wr = receives_of(rs),
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = rs->sizes.inline_data},
        .qp_type = IBV_QPT_RC,
    };

    q->pd = ibv_alloc_pd(rs->id->verbs);
    q->comp = ibv_create_comp_channel(rs->id->verbs);
    if (!q->pd || !q->comp)
        return errno;
    fcntl(q->comp->fd, F_SETFL, fcntl(q->comp->fd, F_GETFL) | O_NONBLOCK);
    q->cq = ibv_create_cq(rs->id->verbs, (int)(rs->sizes.send_queue + receives_of(rs)), rs, q->comp, 0);
    if (!q->cq)
        return errno;
    init.send_cq = init.recv_cq = q->cq;
    return rdma_create_qp(rs->id, q->pd, &init) ? errno : 0;
}

struct ibv_mr *rs_region(const struct rsocket *rs, void *buffer, size_t length, unsigned access)
{
    return ibv_reg_mr_iova2(rs->queues.pd, buffer, length, (uintptr_t)buffer, access);
}

static struct ibv_mr *next_region(const struct rsocket *rs, uint8_t **at, size_t length, unsigned access)
{
    struct ibv_mr *mr = rs_region(rs, *at, length, access);

    *at += length;
    return mr;
}

/* The parts have lengths that keep each aligned. */
static int memory_make(struct rsocket *rs)
{
    enum { PEER_WRITES = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
    const size_t shared = shared_size(rs), messages = receives_of(rs) * sizeof(uint32_t);
    struct rs_queues *q = &rs->queues;
    uint8_t *at;

    rs->in.size = rs->sizes.recv_buffer & ~15u;
    rs->out.size = rs->sizes.send_buffer & ~15u;
    q->memory = at = calloc(1, shared + rs->in.size + rs->out.size + messages);
    rs->targets = calloc(rs->sizes.iomaps ? rs->sizes.iomaps : 1, sizeof(*rs->targets));
    if (!q->memory || !rs->targets)
        return ENOMEM;
    q->sgl = (void *)at;
    q->iomaps = (void *)(q->sgl + RS_SGL_ENTRIES);
    q->shared = next_region(rs, &at, shared, PEER_WRITES);
    rs->in.buffer = at;
    q->in = next_region(rs, &at, rs->in.size, PEER_WRITES);
    rs->out.buffer = at;
    q->out = next_region(rs, &at, rs->out.size, 0);
    rs->in.messages = (void *)at;
    q->messages = next_region(rs, &at, messages, IBV_ACCESS_LOCAL_WRITE);
    return q->shared && q->in && q->out && q->messages ? 0 : errno;
}

int rs_receive(struct rsocket *rs, unsigned slot)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)&rs->in.messages[slot], .length = sizeof(uint32_t), .lkey = rs->queues.messages->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(rs->id->qp, &wr, &bad);
}

int rs_queues_make(struct rsocket *rs)
{
    int error;

    rs->sizes.iomaps = rs_iomaps_announced(rs->sizes.iomaps);
    error = queue_pair_make(rs);
    if (!error)
        error = memory_make(rs);
    for (unsigned slot = 0; !error && slot < receives_of(rs); slot++)
        error = rs_receive(rs, slot);
    return error;
}

static void region_drop(struct ibv_mr *mr)
{
    if (mr)
        ibv_dereg_mr(mr);
}

void rs_queues_free(struct rsocket *rs)
{
    struct rs_queues *q = &rs->queues;

    if (rs->id && rs->id->qp)
        rdma_destroy_qp(rs->id);
    rs_maps_free(rs);
    region_drop(q->shared);
    region_drop(q->in);
    region_drop(q->out);
    region_drop(q->messages);
    if (q->cq)
        ibv_destroy_cq(q->cq);
    if (q->comp)
        ibv_destroy_comp_channel(q->comp);
    if (q->pd)
        ibv_dealloc_pd(q->pd);
    free(q->memory);
    free(rs->targets);
}
