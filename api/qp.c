/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - queue pairs and shared receive queues for the application. */
#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"
#include "drive/doorbell_batch.h"
#include "drive/inherit.h"
#include "api/reset.h"

/* --- shared receive queues ----------------------------------------------------------------------------------- */

struct rddp_srq *rddp_create_srq(struct rddp_pd *pd, uint32_t max_wr, uint32_t max_sge)
{
    int error = context_enter(pd->context);
    struct rddp_srq *srq;

    if (error) {
        errno = -error;
        return NULL;
    }
    if (!max_wr || max_wr > QP_DEPTH_MAX || !max_sge || max_sge > QP_SGE_MAX) {
        errno = EINVAL;
        return NULL;
    }
    srq = calloc(1, sizeof(*srq) + rq_size(max_wr, max_sge));
    if (!srq)
        return NULL;
    srq->context = pd->context;
    rq_init(&srq->rq, &pd->pd, max_wr, max_sge, srq + 1);
    pd->pd.users++;
    member_add(&pd->context->members, MEMBER_SRQ, &srq->member);
    return srq;
}

int rddp_destroy_srq(struct rddp_srq *srq)
{
    int error = context_enter(srq->context);

    if (error)
        return error;
    if (srq->rq.users)
        return -EBUSY;
    member_remove(&srq->context->members, &srq->member);
    srq->rq.pd->users--;
    free(srq);
    return 0;
}

int rddp_post_srq_recv(struct rddp_srq *srq, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr)
{
    int error = context_enter(srq->context);

    while (wr && !error) {
        error = rq_post(&srq->rq, wr);
        if (!error)
            wr = wr->next;
    }
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

/* --- queue pairs --------------------------------------------------------------------------------------------- */

void rddp_qp_attr_init(struct rddp_qp_attr *attr)
{
    *attr = (struct rddp_qp_attr){
        .max_send_wr = 128,
        .max_recv_wr = 128,
        .max_send_sge = 4,
        .max_recv_sge = 4,
        .max_inline_data = 64,
        .max_rd_atomic = 16,
    };
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
        .signal_all = attr->sq_sig_all,
        .out_of_order = attr->out_of_order_sends,
        .rdma_control = attr->rdma_control,
    };
}

/* Are the CQs and the SRQ there, and of the same context? */
static bool is_at_home(const struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    return attr->send_cq && attr->recv_cq && attr->send_cq->context == pd->context &&
           attr->recv_cq->context == pd->context && (!attr->srq || attr->srq->context == pd->context);
}

static int init_qp(struct rddp_qp *qp, struct rddp_pd *pd, struct qp_attr *engine, size_t capacity)
{
    bool has_number;

    qp->buffer = calloc(1, capacity);
    if (!qp->buffer)
        return -ENOMEM;
    pthread_mutex_lock(&pd->context->lock);
    has_number = ids_get(&pd->context->qp_numbers, &engine->number);
    pthread_mutex_unlock(&pd->context->lock);
    if (!has_number)
        return -ENOMEM;
    qp->made = *engine;
    qp_init(&qp->qp, engine, qp->buffer);
    return 0;
}

struct rddp_qp *rddp_create_qp(struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    struct qp_attr engine;
    struct rddp_qp *qp;
    size_t space = 0;
    int error = context_enter(pd->context);

    if (error) {
        errno = -error;
        return NULL;
    }
    if (is_at_home(pd, attr)) {
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
    if (init_qp(qp, pd, &engine, space)) {
        free(qp->buffer);
        free(qp);
        errno = ENOMEM;
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
    qp_strip(qp);
    qp_fini(&qp->qp);
    pthread_mutex_lock(&context->lock);
    ids_put(&context->qp_numbers, qp->qp.attr.number);
    pthread_mutex_unlock(&context->lock);
    free(qp->window_buffer);
    free(qp->buffer);
    free(qp);
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
 * otherwise its holder has heard the bell. The spinlock keeps the endpoint from being freed before the bell is rung. */
static void ring_and_unlock(struct rddp_qp *qp)
{
    struct endpoint *endpoint = qp->endpoint;
    bool is_mine = endpoint && doorbell_ring(&endpoint->bell);

    qp->put_off = 0;
    spin_unlock(&qp->spin);
    if (is_mine)
        endpoint_let_go(endpoint, ENDPOINT_POSTER);
    else if (!endpoint)
        qp_settle_alone(qp);
}

/* In a burst of posts the bell waits a little. Releases qp->spin, which the caller holds. */
static void put_off_and_unlock(struct rddp_qp *qp, enum bells_verdict verdict)
{
    struct progress *progress = qp->endpoint->progress; /* where the bell is, wherever the queue pair goes meanwhile */

    qp->put_off++;
    spin_unlock(&qp->spin);
    if (verdict == BELLS_SET_TIMER)
        bells_set_timer(progress);
}

/* Both post requests from the front of a list until one fails; *wr is then that one. */
static int post_sends(struct rddp_qp *qp, struct rddp_send_wr **wr)
{
    enum bells_verdict verdict = BELLS_RING;
    int error;

    spin_lock(&qp->spin);
    error = qp->qp.state == QP_IDLE ? -EINVAL : qp_post_sends(&qp->qp, wr);
    if (!error && qp->endpoint)
        verdict = bells_put_off(qp, qp->endpoint);
    if (verdict == BELLS_RING)
        ring_and_unlock(qp);
    else
        put_off_and_unlock(qp, verdict);
    return error;
}

/* A receive needs no bell, because it waits for a message. But one that is posted after the flush must be flushed. */
static int post_receives(struct rddp_qp *qp, struct rddp_recv_wr **wr)
{
    int error = 0;

    while (*wr && !error) {
        error = qp_post_recv(&qp->qp, *wr);
        if (!error)
            *wr = (*wr)->next;
    }
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

/* The caller holds `endpoint`, or it is NULL. */
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
    endpoint = qp_hold(qp);
    if (endpoint)
        endpoint_info(endpoint, &qp->last);
    *info = qp->last;
    info->state = state_of(qp, endpoint);
    info->fault = qp->qp.note.fault;
    info->tx_octets = qp->qp.tx_octets;
    info->rx_octets = qp->qp.rx_octets;
    info->control_dropped = qp->qp.control_dropped;
    if (endpoint)
        qp_let_go(endpoint);
    return 0;
}
