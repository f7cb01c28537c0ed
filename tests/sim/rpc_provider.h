/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_provider.h - the public calls that rpc/ uses, without a network, for a test program or fuzz target that plays the
 * peer of every connection. Requests are checked when posted, and complete when the program says so. */
#ifndef RDDP_TESTS_RPC_PROVIDER_H
#define RDDP_TESTS_RPC_PROVIDER_H

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rddp/rddp.h>

enum { PROVIDER_QPS = 16, PROVIDER_EVENTS = 64, PROVIDER_MRS = 4096, PROVIDER_POSTS = 4096 };

struct rddp_context {
    int fd;
};
struct rddp_pd {
    unsigned users;
};
struct rddp_mr {
    struct rddp_pd *pd;
    uint8_t *base;
    size_t length;
    unsigned access;
    uint32_t key;
};
struct rddp_event_channel {
    int fd;
};
struct rddp_cq {
    struct rddp_wc *wc;
    uint32_t size, head, tail;
};
struct rddp_listener {
    struct rddp_event_channel *channel;
};
struct rddp_request {
    int nothing;
};

struct provider_post {
    struct rddp_send_wr wr;
    struct rddp_sge sge;
};
struct rddp_qp {
    struct rddp_pd *pd;
    struct rddp_qp_attr attr;
    bool connected, over;
    struct rddp_recv_wr *receive; /* a ring of max_recv_wr entries */
    struct rddp_sge *receive_sge;
    uint32_t receive_head, receive_tail;
    struct provider_post *post; /* a ring of max_send_wr entries */
    uint32_t post_head, post_tail;
    uint32_t number;
};

/* All objects. */
static struct {
    struct rddp_mr *mr[PROVIDER_MRS];
    struct rddp_qp *qp[PROVIDER_QPS];
    struct rddp_event event[PROVIDER_EVENTS];
    unsigned events, objects;
    uint32_t number, key;
    uint64_t random;
    /* Make registration fail from now on; fail_dereg: deregistration of regions with remote rights. */
    bool fail_reg, fail_dereg;
    /* The peer. message() gets each message sent; write() and read() return whether the peer permits the operation. */
    void (*message)(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated);
    bool (*write)(struct rddp_qp *qp, uint32_t handle, uint64_t offset, const uint8_t *p, size_t n);
    bool (*read)(struct rddp_qp *qp, uint32_t handle, uint64_t offset, uint8_t *p, size_t n);
} provider;

/* --- objects ----------------------------------------------------------------------------------------------------- */

void rddp_context_attr_init(struct rddp_context_attr *attr)
{
    *attr = (struct rddp_context_attr){.log_level = RDDP_LOG_NONE};
}

void rddp_wire_attr_init(struct rddp_wire_attr *attr)
{
    *attr = (struct rddp_wire_attr){.crc = true};
}

void rddp_conn_attr_init(struct rddp_conn_attr *attr)
{
    *attr = (struct rddp_conn_attr){.ird = 1};
}

void rddp_qp_attr_init(struct rddp_qp_attr *attr)
{
    *attr = (struct rddp_qp_attr){.max_send_wr = 1, .max_recv_wr = 1};
}

static void *provider_new(size_t size)
{
    void *object = calloc(1, size);

    provider.objects += object != NULL;
    return object;
}

static void provider_free(void *object)
{
    free(object);
    provider.objects--;
}

struct rddp_context *rddp_open(const struct rddp_context_attr *attr)
{
    struct rddp_context *context = provider_new(sizeof(*context));

    assert(attr->manual_progress);
    context->fd = eventfd(0, EFD_CLOEXEC);
    return context;
}

int rddp_close(struct rddp_context *context)
{
    close(context->fd);
    provider_free(context);
    return 0;
}

int rddp_progress(struct rddp_context *context, int timeout_ms)
{
    (void)context;
    (void)timeout_ms;
    return 0;
}

int rddp_progress_fd(const struct rddp_context *context)
{
    return context->fd;
}

struct rddp_pd *rddp_alloc_pd(struct rddp_context *context)
{
    (void)context;
    return provider_new(sizeof(struct rddp_pd));
}

int rddp_dealloc_pd(struct rddp_pd *pd)
{
    assert(pd->users == 0);
    provider_free(pd);
    return 0;
}

static struct rddp_mr **provider_mr(uint32_t key)
{
    struct rddp_mr **at = &provider.mr[key % PROVIDER_MRS];

    return *at && (*at)->key == key ? at : NULL;
}

struct rddp_mr *rddp_reg_mr(struct rddp_pd *pd, void *addr, size_t length, unsigned access)
{
    struct rddp_mr *mr;

    if (provider.fail_reg) {
        errno = ENOMEM;
        return NULL;
    }
    do
        provider.key = provider.key * 1664525 + 1013904223;
    while (!provider.key || provider.mr[provider.key % PROVIDER_MRS]);
    mr = provider_new(sizeof(*mr));
    *mr = (struct rddp_mr){pd, addr, length, access, provider.key};
    provider.mr[mr->key % PROVIDER_MRS] = mr;
    pd->users++;
    return mr;
}

int rddp_dereg_mr(struct rddp_mr *mr)
{
    if (provider.fail_dereg && (mr->access & (RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ)))
        return -EBUSY;
    *provider_mr(mr->key) = NULL;
    mr->pd->users--;
    provider_free(mr);
    return 0;
}

uint32_t rddp_mr_key(const struct rddp_mr *mr)
{
    return mr->key;
}

uint64_t rddp_mr_offset(const struct rddp_mr *mr, const void *local)
{
    assert((const uint8_t *)local >= mr->base && (const uint8_t *)local <= mr->base + mr->length);
    return (uintptr_t)local;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

struct rddp_event_channel *rddp_create_event_channel(struct rddp_context *context)
{
    struct rddp_event_channel *channel = provider_new(sizeof(*channel));

    (void)context;
    channel->fd = eventfd(0, EFD_CLOEXEC);
    return channel;
}

int rddp_destroy_event_channel(struct rddp_event_channel *channel)
{
    close(channel->fd);
    provider_free(channel);
    return 0;
}

int rddp_event_channel_fd(const struct rddp_event_channel *channel)
{
    return channel->fd;
}

static void provider_tell(enum rddp_event_type type, struct rddp_qp *qp, const void *data, uint16_t length)
{
    assert(provider.events < PROVIDER_EVENTS);
    provider.event[provider.events++] = (struct rddp_event){
        .type = type, .qp = qp, .user = qp ? qp->attr.user : NULL, .private_data = data, .private_data_length = length};
}

int rddp_get_event(struct rddp_event_channel *channel, struct rddp_event **event)
{
    (void)channel;
    if (provider.events == 0)
        return -EAGAIN;
    *event = provider_new(sizeof(**event));
    **event = provider.event[0];
    memmove(&provider.event[0], &provider.event[1], --provider.events * sizeof(provider.event[0]));
    if ((*event)->type == RDDP_EVENT_CONNECT_REQUEST)
        (*event)->request = provider_new(sizeof(struct rddp_request));
    return 0;
}

void rddp_ack_event(struct rddp_event *event)
{
    provider_free(event);
}

/* --- queues ------------------------------------------------------------------------------------------------------ */

struct rddp_cq *rddp_create_cq(struct rddp_context *context, int cqe, void *user, struct rddp_comp_channel *channel)
{
    struct rddp_cq *cq = provider_new(sizeof(*cq));

    (void)context;
    (void)user;
    assert(!channel && cqe > 0);
    cq->size = (uint32_t)cqe;
    cq->wc = calloc(cq->size, sizeof(*cq->wc));
    return cq;
}

int rddp_destroy_cq(struct rddp_cq *cq)
{
    free(cq->wc);
    provider_free(cq);
    return 0;
}

static void provider_complete(struct rddp_qp *qp, struct rddp_wc wc)
{
    struct rddp_cq *cq = qp->attr.send_cq;

    assert(cq->head - cq->tail < cq->size);
    wc.qp_num = qp->number;
    cq->wc[cq->head++ % cq->size] = wc;
}

int rddp_poll_cq(struct rddp_cq *cq, int n, struct rddp_wc *wc)
{
    int got = 0;

    while (got < n && cq->tail != cq->head)
        wc[got++] = cq->wc[cq->tail++ % cq->size];
    return got;
}

struct rddp_qp *rddp_create_qp(struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    struct rddp_qp *qp = provider_new(sizeof(*qp));
    unsigned i = 0;

    qp->pd = pd;
    qp->attr = *attr;
    qp->number = ++provider.number;
    qp->receive = calloc(attr->max_recv_wr, sizeof(*qp->receive));
    qp->receive_sge = calloc(attr->max_recv_wr, sizeof(*qp->receive_sge));
    qp->post = calloc(attr->max_send_wr, sizeof(*qp->post));
    pd->users++;
    while (provider.qp[i])
        assert(++i < PROVIDER_QPS);
    provider.qp[i] = qp;
    return qp;
}

/* Drops its completions and events. */
int rddp_destroy_qp(struct rddp_qp *qp)
{
    struct rddp_cq *cq = qp->attr.send_cq;
    uint32_t kept = cq->tail;
    unsigned events = 0;

    for (uint32_t i = cq->tail; i != cq->head; i++)
        if (cq->wc[i % cq->size].qp_num != qp->number)
            cq->wc[kept++ % cq->size] = cq->wc[i % cq->size];
    cq->head = kept;
    for (unsigned i = 0; i < provider.events; i++)
        if (provider.event[i].qp != qp)
            provider.event[events++] = provider.event[i];
    provider.events = events;
    for (unsigned i = 0; i < PROVIDER_QPS; i++)
        if (provider.qp[i] == qp)
            provider.qp[i] = NULL;
    qp->pd->users--;
    free(qp->receive);
    free(qp->receive_sge);
    free(qp->post);
    provider_free(qp);
    return 0;
}

/* Every local octet that a request names must be registered with these rights. */
static uint8_t *provider_local(const struct rddp_qp *qp, const struct rddp_sge *sge, unsigned rights)
{
    struct rddp_mr **mr = provider_mr(sge->lkey);
    uint8_t *at = (uint8_t *)(uintptr_t)sge->addr;

    assert(mr && (*mr)->pd == qp->pd && ((*mr)->access & rights) == rights);
    assert(at >= (*mr)->base && (size_t)(at - (*mr)->base) <= (*mr)->length);
    assert(sge->length <= (*mr)->length - (size_t)(at - (*mr)->base));
    return at;
}

int rddp_post_recv(struct rddp_qp *qp, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr)
{
    (void)bad_wr;
    for (; wr; wr = wr->next) {
        uint32_t at = qp->receive_head++ % qp->attr.max_recv_wr;

        assert(qp->receive_head - qp->receive_tail <= qp->attr.max_recv_wr);
        provider_local(qp, wr->sg_list, RDDP_ACCESS_LOCAL_WRITE);
        qp->receive[at] = *wr;
        qp->receive_sge[at] = *wr->sg_list;
        if (qp->over) {
            qp->receive_tail++;
            provider_complete(qp, (struct rddp_wc){.wr_id = wr->wr_id, .status = RDDP_WC_WR_FLUSH_ERR});
        }
    }
    return 0;
}

int rddp_post_send(struct rddp_qp *qp, struct rddp_send_wr *wr, struct rddp_send_wr **bad_wr)
{
    (void)bad_wr;
    for (; wr; wr = wr->next) {
        struct provider_post *post = &qp->post[qp->post_head % qp->attr.max_send_wr];

        assert(qp->post_head - qp->post_tail < qp->attr.max_send_wr && wr->num_sge == 1);
        provider_local(qp, wr->sg_list, wr->opcode == RDDP_WR_RDMA_READ ? RDDP_ACCESS_LOCAL_WRITE : 0);
        if (qp->over) {
            provider_complete(qp, (struct rddp_wc){.wr_id = wr->wr_id, .status = RDDP_WC_WR_FLUSH_ERR});
            continue;
        }
        *post = (struct provider_post){*wr, *wr->sg_list};
        qp->post_head++;
    }
    return 0;
}

/* --- what the program does --------------------------------------------------------------------------------------- */

/* The connection is lost: flushes all requests. */
static void provider_cut(struct rddp_qp *qp)
{
    if (qp->over)
        return;
    qp->over = true;
    while (qp->post_tail != qp->post_head)
        provider_complete(qp, (struct rddp_wc){.wr_id = qp->post[qp->post_tail++ % qp->attr.max_send_wr].wr.wr_id,
                                               .status = RDDP_WC_WR_FLUSH_ERR});
    while (qp->receive_tail != qp->receive_head)
        provider_complete(qp, (struct rddp_wc){.wr_id = qp->receive[qp->receive_tail++ % qp->attr.max_recv_wr].wr_id,
                                               .status = RDDP_WC_WR_FLUSH_ERR});
    provider_tell(RDDP_EVENT_DISCONNECTED, qp, NULL, 0);
}

static bool provider_do(struct rddp_qp *qp, const struct provider_post *post)
{
    uint8_t *at = provider_local(qp, &post->sge, 0);

    switch (post->wr.opcode) {
    case RDDP_WR_RDMA_WRITE:
        return provider.write(qp, post->wr.rkey, post->wr.remote_addr, at, post->sge.length);
    case RDDP_WR_RDMA_READ:
        return provider.read(qp, post->wr.rkey, post->wr.remote_addr, at, post->sge.length);
    default:
        provider.message(qp, at, post->sge.length,
                         post->wr.opcode == RDDP_WR_SEND_WITH_INV ? post->wr.invalidate_rkey : 0);
        return true;
    }
}

/* Executes up to `n` of the posted requests. */
static inline void provider_run(struct rddp_qp *qp, unsigned n)
{
    while (n-- && !qp->over && qp->post_tail != qp->post_head) {
        struct provider_post post = qp->post[qp->post_tail++ % qp->attr.max_send_wr];
        bool good = provider_do(qp, &post);

        provider_complete(qp, (struct rddp_wc){.wr_id = post.wr.wr_id,
                                               .status = good ? RDDP_WC_SUCCESS : RDDP_WC_REM_ACCESS_ERR,
                                               .byte_len = post.sge.length});
        if (!good)
            provider_cut(qp);
    }
}

/* The peer sends: the message goes into a receive, or the connection ends. */
static inline void provider_deliver(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated)
{
    struct rddp_wc wc = {.opcode = RDDP_WC_RECV, .byte_len = (uint32_t)n};
    uint32_t at = qp->receive_tail % qp->attr.max_recv_wr;

    if (qp->over)
        return;
    if (qp->receive_tail == qp->receive_head || n > qp->receive_sge[at].length) {
        provider_cut(qp);
        return;
    }
    qp->receive_tail++;
    if (n)
        memcpy(provider_local(qp, &qp->receive_sge[at], RDDP_ACCESS_LOCAL_WRITE), p, n);
    wc.wr_id = qp->receive[at].wr_id;
    wc.invalidated_rkey = invalidated;
    wc.wc_flags = invalidated ? RDDP_WC_WITH_INV : 0;
    provider_complete(qp, wc);
}

#include "tests/sim/rpc_provider_conn.h"

#endif
