/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - queue pairs for the application. */
#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"
#include "drive/doorbell_batch.h"
#include "drive/inherit.h"
#include "api/async.h"
#include "api/modify.h"
#include "api/reset.h"
#include "roce/io/roce_port.h"

enum { ACCESS_REMOTE = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC };

void rddp_qp_attr_init(struct rddp_qp_attr *attr)
{
    *attr = (struct rddp_qp_attr){
        .max_send_wr = 128,
        .max_recv_wr = 128,
        .max_send_sge = 4,
        .max_recv_sge = 4,
        .max_inline_data = 64,
        .max_rd_atomic = 16,
        .access = ACCESS_REMOTE,
    };
}

static enum qp_service engine_service(enum rddp_qp_type type)
{
    if (type == RDDP_QPT_UD)
        return QP_DATAGRAMS;
    return type == RDDP_QPT_UC ? QP_UNRELIABLE : QP_RELIABLE;
}

static struct qp_attr engine_attr(struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    return (struct qp_attr){
        .pd = &pd->pd,
        .mrs = &pd->context->mrs,
        .send_cq = &attr->send_cq->cq,
        .recv_cq = &attr->recv_cq->cq,
        .srq = attr->srq ? &attr->srq->rq : NULL,
        .send_depth = attr->max_send_wr,
        .recv_depth = attr->max_recv_wr,
        .send_sge = attr->max_send_sge,
        .recv_sge = attr->max_recv_sge,
        .inline_max = attr->max_inline_data,
        .ird = attr->max_rd_atomic,
        .ord = attr->max_rd_atomic,
        .window = 1, /* kernel TCP delivers in order; qp_prepare() widens it for other links */
        .receive_wait_us = attr->wait_for_receive_ms == RDDP_WAIT_WITHOUT_LIMIT
                               ? UINT64_MAX
                               : (uint64_t)attr->wait_for_receive_ms * 1000,
        .refused = qp_access_refused(attr->access),
        .service = engine_service(attr->type),
        .signal_all = attr->sq_sig_all,
        .out_of_order = attr->out_of_order_sends,
        .rdma_control = attr->rdma_control,
        .happened = async_qp_happened,
    };
}

/* Are the CQs and the SRQ there, and of the same context? */
static bool is_at_home(const struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    return attr->send_cq && attr->recv_cq && attr->send_cq->context == pd->context &&
           attr->recv_cq->context == pd->context && (!attr->srq || attr->srq->context == pd->context);
}

static int draw_number(struct rddp_qp *qp, uint32_t *number)
{
    bool has_number;
    int error;

    if (qp->type == RDDP_QPT_CONNECTED) {
        pthread_mutex_lock(&qp->context->lock);
        has_number = ids_get(&qp->context->qp_numbers, number);
        pthread_mutex_unlock(&qp->context->lock);
        return has_number ? 0 : -ENOMEM;
    }
    error = qp_open_slot(qp->context, &qp->slot);
    if (!error)
        *number = roce_slot_number(qp->slot);
    return error;
}

static int init_qp(struct rddp_qp *qp, struct qp_attr *engine, size_t capacity)
{
    int error;

    qp->buffer = calloc(1, capacity);
    error = qp->buffer ? draw_number(qp, &engine->number) : -ENOMEM;
    if (error)
        return error;
    qp->made = *engine;
    qp_init(&qp->qp, engine, qp->buffer);
    return 0;
}

static bool is_type(enum rddp_qp_type type)
{
    return (unsigned)type <= RDDP_QPT_UD;
}

struct rddp_qp *rddp_create_qp(struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    struct qp_attr engine;
    struct rddp_qp *qp;
    size_t space = 0;
    int error = attr->type == RDDP_QPT_CONNECTED ? context_enter(pd->context) : context_use(pd->context);

    if (error) {
        errno = -error;
        return NULL;
    }
    if (is_at_home(pd, attr) && qp_access_is_remote(attr->access) && is_type(attr->type)) {
        engine = engine_attr(pd, attr);
        space = qp_size(&engine);
    }
    if (!space) {
        errno = EINVAL;
        return NULL;
    }
    qp = calloc(1, sizeof(*qp));
    if (!qp)
        return NULL;
    qp->context = pd->context;
    qp->user = attr->user;
    qp->keeps_completions = attr->keep_completions;
    qp->type = attr->type;
    rddp_ib_attr_init(&qp->ib);
    error = init_qp(qp, &engine, space);
    if (error) {
        free(qp->buffer);
        free(qp);
        errno = -error;
        return NULL;
    }
    member_add(&pd->context->members, MEMBER_QP, &qp->member);
    return qp;
}

int rddp_destroy_qp(struct rddp_qp *qp)
{
    struct rddp_context *context = qp->context;
    int error = context_enter(context);

    if (error)
        return error;
    member_remove(&context->members, &qp->member);
    qp_strip(qp, qp->keeps_completions);
    async_leave(&qp->async);
    qp_fini(&qp->qp);
    pthread_mutex_lock(&context->lock);
    ids_put(&context->qp_numbers, qp->qp.attr.number);
    pthread_mutex_unlock(&context->lock);
    if (qp->slot)
        qp_close_slot(qp->slot);
    free(qp->window_buffer);
    free(qp->buffer);
    free(qp);
    return 0;
}

/* Whoever places now may have looked at the rights before: the holder of the endpoint is the only one, and as long as
 * there is none, nothing is placed. */
int rddp_set_qp_access(struct rddp_qp *qp, unsigned access)
{
    int error = context_enter(qp->context);
    struct endpoint *endpoint;

    if (error)
        return error;
    if (!qp_access_is_remote(access))
        return -EINVAL;
    endpoint = qp_hold_or_lock(qp);
    qp->qp.attr.refused = qp_access_refused(access);
    qp_release_or_unlock(qp, endpoint);
    return 0;
}

int rddp_query_qp_attr(struct rddp_qp *qp, struct rddp_qp_attr *attr)
{
    const struct qp_attr *made = &qp->made;

    *attr = (struct rddp_qp_attr){
        .type = qp->type,
        .send_cq = container_of(made->send_cq, struct rddp_cq, cq),
        .recv_cq = container_of(made->recv_cq, struct rddp_cq, cq),
        .srq = made->srq ? container_of(made->srq, struct rddp_srq, rq) : NULL,
        .max_send_wr = made->send_depth,
        .max_recv_wr = made->recv_depth,
        .max_send_sge = made->send_sge,
        .max_recv_sge = made->recv_sge,
        .max_inline_data = made->inline_max,
        .max_rd_atomic = made->ird,
        .access = qp_access_granted(qp),
        .wait_for_receive_ms =
            made->receive_wait_us == UINT64_MAX ? RDDP_WAIT_WITHOUT_LIMIT : (uint32_t)(made->receive_wait_us / 1000),
        .sq_sig_all = made->signal_all,
        .out_of_order_sends = made->out_of_order,
        .rdma_control = made->rdma_control,
        .keep_completions = qp->keeps_completions,
        .user = qp->user,
    };
    return 0;
}

uint32_t rddp_qp_num(const struct rddp_qp *qp)
{
    return qp->qp.attr.number;
}

void *rddp_qp_user(const struct rddp_qp *qp)
{
    return qp->user;
}

/* Rings the bell and releases qp->spin, which the caller holds. If the endpoint was free, this thread sends now;
 * otherwise its holder will see the bell. The spinlock keeps the endpoint from being freed before the bell is rung. */
static void ring_and_unlock(struct rddp_qp *qp)
{
    struct endpoint *endpoint = qp->endpoint;
    bool is_mine = endpoint && doorbell_ring(&endpoint->bell);

    qp->deferred = 0;
    spin_unlock(&qp->spin);
    if (is_mine)
        endpoint_answer(endpoint);
    else if (!endpoint)
        qp_settle_alone(qp);
}

/* In a burst of posts the doorbell is deferred. Releases qp->spin, which the caller holds. */
static void defer_and_unlock(struct rddp_qp *qp, enum batch_verdict verdict, uint32_t requests)
{
    struct loop *loop = qp->endpoint->loop; /* where the bell is, wherever the queue pair goes meanwhile */

    qp->deferred += requests;
    spin_unlock(&qp->spin);
    if (verdict == BATCH_WAKE)
        loop_wake(loop);
}

/* In the error state requests are taken, and flushed. */
static bool may_post(const struct rddp_qp *qp)
{
    return qp->qp.state == QP_ERROR || ((qp->qp.state == QP_READY || qp->endpoint) && !qp->only_receives);
}

/* Both post requests from the front of a list until one fails; *wr is then that one. */
static int post_sends(struct rddp_qp *qp, struct rddp_send_wr **wr)
{
    enum batch_verdict verdict = BATCH_RING;
    uint32_t requests;
    int error;

    spin_lock(&qp->spin);
    requests = qp->qp.sq.head;
    error = may_post(qp) ? qp_post_sends(&qp->qp, wr) : -EINVAL;
    requests = qp->qp.sq.head - requests;
    if (!error && qp->endpoint)
        verdict = batch_defer(qp, qp->endpoint, requests);
    if (verdict == BATCH_RING)
        ring_and_unlock(qp);
    else
        defer_and_unlock(qp, verdict, requests);
    return error;
}

/* A receive needs no bell, because it waits for a message; a message that waits for it is announced to the loop. But
 * one that is posted after the flush must be flushed. */
static int post_receives(struct rddp_qp *qp, struct rddp_recv_wr **wr)
{
    int error = 0;

    while (*wr && !error) {
        error = qp_post_recv(&qp->qp, *wr);
        if (!error)
            *wr = (*wr)->next;
    }
    waiting_announce(qp->context, &qp->qp.own_rq);
    if (qp->qp.state == QP_ERROR) {
        spin_lock(&qp->spin);
        ring_and_unlock(qp);
    }
    return error;
}

int rddp_post_send(struct rddp_qp *qp, struct rddp_send_wr *wr, struct rddp_send_wr **bad_wr)
{
    int error = context_enter(qp->context);

    if (!error)
        error = post_sends(qp, &wr);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

int rddp_post_recv(struct rddp_qp *qp, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr)
{
    int error = context_enter(qp->context);

    if (!error)
        error = qp->qp.attr.srq ? -EINVAL : post_receives(qp, &wr);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

/* The caller holds `endpoint`; or it is NULL and context->lock is locked. */
static enum rddp_qp_state state_of(const struct rddp_qp *qp, const struct endpoint *endpoint)
{
    if (qp->qp.state == QP_ERROR)
        return qp->qp.note.fault == FAULT_NONE ? RDDP_QP_CLOSED : RDDP_QP_ERROR;
    if (!endpoint)
        return RDDP_QP_IDLE;
    switch (endpoint->life->state) {
    case CONN_READY:
        return endpoint->life->established ? RDDP_QP_CONNECTED : RDDP_QP_CONNECTING;
    case CONN_DRAINING:
        return RDDP_QP_CLOSING;
    default:
        return RDDP_QP_CONNECTING;
    }
}

int rddp_query_qp(struct rddp_qp *qp, struct rddp_qp_info *info)
{
    int error = context_enter(qp->context);
    struct endpoint *endpoint;

    if (error)
        return error;
    endpoint = qp_hold_or_lock(qp);
    if (endpoint)
        endpoint_info(endpoint, info);
    else
        *info = qp->last;
    info->state = state_of(qp, endpoint);
    info->fault = qp->qp.state == QP_ERROR ? qp->qp.note.fault : FAULT_NONE;
    info->tx_octets = qp->qp.tx_octets;
    info->rx_octets = qp->qp.rx_octets;
    info->waits_for_receive = endpoint && life_awaits_receive(endpoint->life);
    info->control_dropped = qp->qp.control_dropped;
    qp_release_or_unlock(qp, endpoint);
    return 0;
}
