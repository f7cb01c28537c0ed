/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_link.c - one connection for both roles: buffers and a queue pair. */
#include "rpc/rpc_link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The low bits of a wr_id hold the kind of the request. The other bits hold tag and buffer index, or a pointer, which
 * is aligned to more than these bits. */
enum { KIND_BITS = 2, KIND_MASK = 3, TAG_SHIFT = 32 };

static uint8_t *receive_buffer(const struct rpc_link *link, uint32_t index)
{
    return link->buffer + (size_t)index * link->attr.receive_size;
}

static uint8_t *send_buffer(const struct rpc_link *link, uint32_t index)
{
    return link->buffer + (size_t)link->attr.receives * link->attr.receive_size + (size_t)index * link->attr.send_size;
}

static int open_memory(struct rpc_link *link)
{
    const struct link_attr *attr = &link->attr;
    size_t octets = (size_t)attr->receives * attr->receive_size + (size_t)attr->sends * attr->send_size;

    link->buffer = malloc(octets);
    link->idle = malloc(attr->sends * sizeof(*link->idle));
    if (!link->buffer || !link->idle)
        return -ENOMEM;
    for (uint32_t i = 0; i < attr->sends; i++)
        link->idle[i] = i;
    link->idle_count = attr->sends;
    link->queue_left = attr->queue;
    link->mr = rddp_reg_mr(link->pd, link->buffer, octets, RDDP_ACCESS_LOCAL_WRITE);
    return link->mr ? 0 : -errno;
}

static int open_queue(struct rpc_link *link)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = link->attr.cq;
    attr.max_send_wr = link->attr.queue;
    attr.max_recv_wr = link->attr.receives;
    attr.max_send_sge = attr.max_recv_sge = 1;
    attr.max_inline_data = 0;
    attr.sq_sig_all = true;
    attr.user = link->attr.user;
    link->qp = rddp_create_qp(link->pd, &attr);
    return link->qp ? 0 : -errno;
}

/* Sets the fields of a receive request that never change. */
static void open_batch(struct rpc_link *link)
{
    uint32_t key = rddp_mr_key(link->mr);

    for (unsigned i = 0; i < LINK_BATCH; i++) {
        link->receive[i] = (struct rddp_recv_wr){.sg_list = &link->receive_sge[i], .num_sge = 1};
        link->receive_sge[i] = (struct rddp_sge){.length = link->attr.receive_size, .lkey = key};
    }
}

int rpc_link_open(struct rpc_link *link, struct rddp_pd *pd, const struct link_attr *attr)
{
    int error;

    *link = (struct rpc_link){.pd = pd, .attr = *attr};
    link->send_max = link->receive_max = PRIVATE_SIZE_MIN;
    error = open_memory(link);
    if (error == 0)
        error = open_queue(link);
    if (error == 0)
        open_batch(link);
    for (uint32_t i = 0; error == 0 && i < attr->receives; i++)
        error = rpc_link_repost(link, i);
    if (error == 0)
        error = rpc_link_flush(link);
    if (error)
        rpc_link_close(link);
    return error;
}

void rpc_link_close(struct rpc_link *link)
{
    if (link->qp)
        rddp_destroy_qp(link->qp);
    if (link->mr)
        rddp_dereg_mr(link->mr);
    free(link->buffer);
    free(link->idle);
    *link = (struct rpc_link){0};
}

bool rpc_link_has_private_data(const struct rddp_wire_attr *wire)
{
    return wire->wire == RDDP_WIRE_ROCE || (wire->wire == RDDP_WIRE_IWARP && !wire->immediate);
}

void rpc_link_agree(struct rpc_link *link, const struct private *mine, const void *private_data, size_t length)
{
    struct private peer;

    private_decode(&peer, private_data, length);
    link->send_max = mine->send_size < peer.receive_size ? mine->send_size : peer.receive_size;
    link->receive_max = mine->receive_size < peer.send_size ? mine->receive_size : peer.send_size;
    link->remote_invalidation = peer.remote_invalidation;
}

void rpc_link_identify(struct link_done *done)
{
    uint64_t id = done->wc.wr_id;

    done->kind = (enum rpc_link_kind)(id & KIND_MASK);
    done->cookie = done->kind == LINK_RDMA ? (void *)(uintptr_t)(id & ~(uint64_t)KIND_MASK) : NULL;
    done->tag = (uint32_t)(id >> TAG_SHIFT);
    done->index = (uint32_t)id >> KIND_BITS;
}

int rpc_link_take(struct rpc_link *link, struct link_done *done)
{
    if (done->kind == LINK_RECEIVE) {
        done->data = receive_buffer(link, done->index);
        done->length = done->wc.byte_len;
    } else {
        link->queue_left++;
        if (done->kind == LINK_SEND)
            link->idle[link->idle_count++] = done->index;
    }
    return done->wc.status == RDDP_WC_SUCCESS ? 0 : -EIO;
}

static uint64_t link_id_of(const struct rpc_link *link, uint32_t index, enum rpc_link_kind kind)
{
    return (uint64_t)link->attr.tag << TAG_SHIFT | index << KIND_BITS | kind;
}

/* --- what waits for a flush ------------------------------------------------------------------------------------ */

static int link_flush_receives(struct rpc_link *link)
{
    unsigned n = link->receives;

    link->receives = 0;
    for (unsigned i = 0; i < n; i++)
        link->receive[i].next = i + 1 < n ? &link->receive[i + 1] : NULL;
    return n ? rddp_post_recv(link->qp, link->receive, NULL) : 0;
}

int rpc_link_flush(struct rpc_link *link)
{
    int error = link_flush_receives(link);
    unsigned n = link->sends;

    link->sends = 0;
    for (unsigned i = 0; i < n; i++)
        link->send[i].next = i + 1 < n ? &link->send[i + 1] : NULL;
    return error || !n ? error : rddp_post_send(link->qp, link->send, NULL);
}

int rpc_link_repost(struct rpc_link *link, uint32_t index)
{
    unsigned i = link->receives++;

    link->receive[i].wr_id = link_id_of(link, index, LINK_RECEIVE);
    link->receive_sge[i].addr = (uintptr_t)receive_buffer(link, index);
    return link->receives == LINK_BATCH ? link_flush_receives(link) : 0;
}

bool rpc_link_has_space(const struct rpc_link *link, uint32_t requests)
{
    return link->idle_count && link->queue_left > requests;
}

static int stage(struct rpc_link *link, const struct rddp_send_wr *wr, const struct rddp_sge *sge)
{
    unsigned i = link->sends++;

    link->queue_left--;
    link->send_sge[i] = *sge;
    link->send[i] = *wr;
    link->send[i].sg_list = &link->send_sge[i];
    link->send[i].num_sge = 1;
    return link->sends == LINK_BATCH ? rpc_link_flush(link) : 0;
}

uint8_t *rpc_link_message(struct rpc_link *link)
{
    assert(rpc_link_has_space(link, 0));
    return send_buffer(link, link->idle[link->idle_count - 1]);
}

int rpc_link_send_here(struct rpc_link *link, size_t length, uint32_t invalidate)
{
    uint32_t index = link->idle[--link->idle_count];
    struct rddp_sge sge = {(uintptr_t)send_buffer(link, index), (uint32_t)length, rddp_mr_key(link->mr)};
    struct rddp_send_wr wr = {.wr_id = link_id_of(link, index, LINK_SEND), .opcode = RDDP_WR_SEND};

    assert(length <= link->attr.send_size);
    if (invalidate) {
        wr.opcode = RDDP_WR_SEND_WITH_INV;
        wr.invalidate_rkey = invalidate;
    }
    return stage(link, &wr, &sge);
}

int rpc_link_send(struct rpc_link *link, const struct link_message *message, uint32_t invalidate)
{
    uint8_t *to = rpc_link_message(link);

    assert(message->head_length + message->body_length <= link->attr.send_size);
    memcpy(to, message->head, message->head_length);
    if (message->body_length)
        memcpy(to + message->head_length, message->body, message->body_length);
    return rpc_link_send_here(link, message->head_length + message->body_length, invalidate);
}

int rpc_link_rdma(struct rpc_link *link, enum rddp_wr_opcode opcode, const struct rddp_sge *local, uint32_t handle,
                  uint64_t offset, void *cookie)
{
    struct rddp_send_wr wr = {.wr_id = (uintptr_t)cookie | LINK_RDMA, .opcode = opcode};

    wr.rkey = handle;
    wr.remote_addr = offset;
    return stage(link, &wr, local);
}

int rpc_link_nudge(struct rpc_link *link)
{
    struct rddp_sge nothing = {0};
    int error;

    if (!link->queue_left)
        return 0;
    nothing.lkey = rddp_mr_key(link->mr);
    error = rpc_link_rdma(link, RDDP_WR_RDMA_WRITE, &nothing, 0, 0, NULL);
    return error ? error : rpc_link_flush(link);
}
