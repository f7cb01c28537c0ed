/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - one connection as both roles see it: buffers and a queue pair. */
#include "rpc/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The kind of a request stands in the low bits of its wr_id: pointers are aligned to more than that. */
enum { KIND_BITS = 2, KIND_MASK = 3 };

static uint8_t *receive_buffer(const struct link *link, uint32_t index)
{
    return link->room + (size_t)index * link->attr.receive_size;
}

static uint8_t *send_buffer(const struct link *link, uint32_t index)
{
    return link->room + (size_t)link->attr.receives * link->attr.receive_size + (size_t)index * link->attr.send_size;
}

static int open_memory(struct link *link)
{
    const struct link_attr *attr = &link->attr;
    size_t octets = (size_t)attr->receives * attr->receive_size + (size_t)attr->sends * attr->send_size;

    link->room = malloc(octets);
    link->idle = malloc(attr->sends * sizeof(*link->idle));
    if (!link->room || !link->idle)
        return -ENOMEM;
    for (uint32_t i = 0; i < attr->sends; i++)
        link->idle[i] = i;
    link->idle_count = attr->sends;
    link->queue_left = attr->queue;
    link->mr = rddp_reg_mr(link->pd, link->room, octets, RDDP_ACCESS_LOCAL_WRITE);
    return link->mr ? 0 : -errno;
}

static int open_queues(struct link *link, struct rddp_context *context, struct rddp_comp_channel *channel)
{
    struct rddp_qp_attr attr;

    link->cq = rddp_create_cq(context, (int)(link->attr.queue + link->attr.receives), link->attr.user, channel);
    if (!link->cq)
        return -errno;
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = link->cq;
    attr.max_send_wr = link->attr.queue;
    attr.max_recv_wr = link->attr.receives;
    attr.max_send_sge = attr.max_recv_sge = 1;
    attr.max_inline_data = 0;
    attr.sq_sig_all = true;
    attr.user = link->attr.user;
    link->qp = rddp_create_qp(link->pd, &attr);
    return link->qp ? 0 : -errno;
}

int link_open(struct link *link, struct rddp_context *context, struct rddp_pd *pd, struct rddp_comp_channel *channel,
              const struct link_attr *attr)
{
    int rc;

    *link = (struct link){.pd = pd, .attr = *attr};
    link->send_max = link->receive_max = PRIVATE_SIZE_MIN;
    rc = open_memory(link);
    if (rc == 0)
        rc = open_queues(link, context, channel);
    for (uint32_t i = 0; rc == 0 && i < attr->receives; i++)
        rc = link_repost(link, i);
    if (rc == 0)
        rc = rddp_req_notify_cq(link->cq, false);
    if (rc)
        link_close(link);
    return rc;
}

void link_close(struct link *link)
{
    if (link->qp)
        rddp_destroy_qp(link->qp);
    if (link->cq)
        rddp_destroy_cq(link->cq);
    if (link->mr)
        rddp_dereg_mr(link->mr);
    free(link->room);
    free(link->idle);
    *link = (struct link){0};
}

void link_agree(struct link *link, const struct private *mine, const void *private_data, size_t length)
{
    struct private peer;

    private_decode(&peer, private_data, length);
    link->send_max = mine->send_size < peer.receive_size ? mine->send_size : peer.receive_size;
    link->receive_max = mine->receive_size < peer.send_size ? mine->receive_size : peer.send_size;
    link->remote_invalidation = peer.remote_invalidation;
}

int link_poll(struct link *link, struct link_done *done)
{
    int n = link->cq ? rddp_poll_cq(link->cq, 1, &done->wc) : 0;
    uint64_t id;

    done->kind = LINK_SEND;
    if (n <= 0)
        return n < 0 ? -EIO : 0;
    id = done->wc.wr_id;
    done->kind = (enum link_kind)(id & KIND_MASK);
    done->cookie = NULL;
    if (done->kind == LINK_RDMA)
        done->cookie = (void *)(uintptr_t)(id & ~(uint64_t)KIND_MASK);
    done->index = (uint32_t)(id >> KIND_BITS);
    if (done->kind == LINK_RECEIVE) {
        done->data = receive_buffer(link, done->index);
        done->length = done->wc.byte_len;
    } else {
        link->queue_left++;
        if (done->kind == LINK_SEND)
            link->idle[link->idle_count++] = done->index;
    }
    return done->wc.status == RDDP_WC_SUCCESS ? 1 : -EIO;
}

int link_repost(struct link *link, uint32_t index)
{
    struct rddp_sge sge = {.addr = (uintptr_t)receive_buffer(link, index), .length = link->attr.receive_size};
    struct rddp_recv_wr wr = {.wr_id = (uint64_t)index << KIND_BITS | LINK_RECEIVE, .sg_list = &sge, .num_sge = 1};

    sge.lkey = rddp_mr_key(link->mr);
    return rddp_post_recv(link->qp, &wr, NULL);
}

bool link_has_room(const struct link *link, uint32_t requests)
{
    return link->idle_count && link->queue_left > requests;
}

static int post(struct link *link, struct rddp_send_wr *wr)
{
    int rc = rddp_post_send(link->qp, wr, NULL);

    if (rc == 0)
        link->queue_left--;
    return rc;
}

int link_send(struct link *link, const struct link_message *message, uint32_t invalidate)
{
    size_t length = message->head_length + message->body_length;
    uint32_t index;
    struct rddp_sge sge = {.length = (uint32_t)length, .lkey = rddp_mr_key(link->mr)};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND};
    int rc;

    assert(link_has_room(link, 0) && length <= link->attr.send_size);
    index = link->idle[link->idle_count - 1];
    memcpy(send_buffer(link, index), message->head, message->head_length);
    if (message->body_length)
        memcpy(send_buffer(link, index) + message->head_length, message->body, message->body_length);
    sge.addr = (uintptr_t)send_buffer(link, index);
    wr.wr_id = (uint64_t)index << KIND_BITS | LINK_SEND;
    if (invalidate) {
        wr.opcode = RDDP_WR_SEND_WITH_INV;
        wr.invalidate_rkey = invalidate;
    }
    rc = post(link, &wr);
    if (rc == 0)
        link->idle_count--;
    return rc;
}

int link_rdma(struct link *link, enum rddp_wr_opcode opcode, struct rddp_sge *local, uint32_t handle, uint64_t offset,
              void *cookie)
{
    struct rddp_send_wr wr = {.wr_id = (uintptr_t)cookie | LINK_RDMA, .sg_list = local, .num_sge = 1, .opcode = opcode};

    wr.rkey = handle;
    wr.remote_addr = offset;
    return post(link, &wr);
}
