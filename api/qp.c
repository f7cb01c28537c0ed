/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - queue pairs and shared receive queues for the application. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "api/api.h"
#include "api/bells.h"

/* --- shared receive queues ----------------------------------------------------------------------------------- */

struct rddp_srq *rddp_create_srq(struct rddp_pd *pd, uint32_t max_wr, uint32_t max_sge)
{
    struct rddp_srq *srq;

    if (!max_wr || max_wr > QP_DEPTH_MAX || !max_sge || max_sge > QP_SGE_MAX) {
        errno = EINVAL;
        return NULL;
    }
    srq = calloc(1, sizeof(*srq) + rq_room(max_wr, max_sge));
    if (!srq)
        return NULL;
    srq->context = pd->context;
    rq_init(&srq->rq, &pd->pd, max_wr, max_sge, srq + 1);
    pd->pd.users++;
    return srq;
}

int rddp_destroy_srq(struct rddp_srq *srq)
{
    if (srq->rq.users)
        return -EBUSY;
    srq->rq.pd->users--;
    free(srq);
    return 0;
}

int rddp_post_srq_recv(struct rddp_srq *srq, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr)
{
    int error = 0;

    while (wr && !(error = rq_post(&srq->rq, wr)))
        wr = wr->next;
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
        .window = 1, /* kernel TCP delivers in order */
        .signal_all = attr->sq_sig_all,
        .out_of_order = attr->out_of_order_sends,
        .rdma_control = attr->rdma_control,
    };
}

static bool is_at_home(const struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    return attr->send_cq && attr->recv_cq && attr->send_cq->context == pd->context &&
           attr->recv_cq->context == pd->context && (!attr->srq || attr->srq->context == pd->context);
}

static int init_qp(struct rddp_qp *qp, struct rddp_pd *pd, struct qp_attr *engine, size_t room)
{
    bool has_number;

    qp->room = calloc(1, room);
    if (!qp->room)
        return -ENOMEM;
    pthread_mutex_lock(&pd->context->lock);
    has_number = ids_get(&pd->context->qp_numbers, &engine->number);
    pthread_mutex_unlock(&pd->context->lock);
    if (!has_number)
        return -ENOMEM;
    qp_init(&qp->qp, engine, qp->room);
    return 0;
}

struct rddp_qp *rddp_create_qp(struct rddp_pd *pd, const struct rddp_qp_attr *attr)
{
    struct qp_attr engine;
    struct rddp_qp *qp;
    size_t room = 0;

    if (is_at_home(pd, attr)) {
        engine = engine_attr(pd, attr);
        room = qp_room(&engine);
    }
    if (!room) {
        errno = EINVAL;
        return NULL;
    }
    qp = calloc(1, sizeof(*qp));
    if (!qp)
        return NULL;
    qp->context = pd->context;
    qp->user = attr->user;
    if (init_qp(qp, pd, &engine, room)) {
        free(qp->room);
        free(qp);
        errno = ENOMEM;
        return NULL;
    }
    return qp;
}

/* Sends may have to wait for their delivery while their receives are taken: as many as can be posted. */
static uint32_t window(const struct qp *qp)
{
    uint32_t depth = qp->rq->depth;

    return depth < 2 ? 2 : depth < QP_WINDOW_MAX ? depth : QP_WINDOW_MAX;
}

/* Messages may be in arrival while others before them are not all there. */
static int widen(struct rddp_qp *qp)
{
    qp->window_room = calloc(1, qp_widen_room(&qp->qp, window(&qp->qp)));
    if (!qp->window_room)
        return -ENOMEM;
    qp_widen(&qp->qp, window(&qp->qp), qp->window_room);
    return 0;
}

/* "The initial message number [...] SHOULD be selected at random" (rdma-tcp-segments.txt 3.4). */
int qp_prepare(struct rddp_qp *qp, const struct wire *wire, bool in_order)
{
    uint32_t first;

    if (wire->numbering != SEG_NUMBERS_SEQUENCE)
        return in_order || qp->window_room ? 0 : widen(qp);
    if (getrandom(&first, sizeof(first), 0) != sizeof(first))
        return -EAGAIN;
    qp->window_room = calloc(1, qp_sequence_room(&qp->qp, window(&qp->qp)));
    if (!qp->window_room)
        return -ENOMEM;
    qp_sequence(&qp->qp, first, window(&qp->qp), qp->window_room);
    return 0;
}

/* A connection lives on without its queue pair until it has ended properly. */
static void leave_endpoint(struct rddp_qp *qp, struct endpoint *endpoint)
{
    qp_set_endpoint(qp, NULL);
    endpoint->qp = NULL;
    endpoint->kind->detach(endpoint, loop_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

int rddp_destroy_qp(struct rddp_qp *qp)
{
    struct rddp_context *context = qp->context;
    struct endpoint *endpoint;

    bells_forget(qp);
    endpoint = qp_hold(qp);
    if (endpoint) {
        leave_endpoint(qp, endpoint);
        qp_let_go(endpoint);
    }
    if (qp->channel) {
        event_forget(qp->channel, qp, NULL);
        qp->channel->users--;
    }
    cq_forget(qp->qp.attr.send_cq, qp->qp.attr.number);
    cq_forget(qp->qp.attr.recv_cq, qp->qp.attr.number);
    qp_fini(&qp->qp);
    pthread_mutex_lock(&context->lock);
    ids_put(&context->qp_numbers, qp->qp.attr.number);
    pthread_mutex_unlock(&context->lock);
    free(qp->window_room);
    free(qp->room);
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

/* What was posted leaves at once if the link takes it and nobody else works on the connection; else whoever does has
 * heard the bell. It is rung under the spinlock, so that the endpoint cannot go before. In a burst it waits a little.
 */
int rddp_post_send(struct rddp_qp *qp, struct rddp_send_wr *wr, struct rddp_send_wr **bad_wr)
{
    struct endpoint *endpoint;
    enum bells_verdict bell = BELLS_RING;
    bool is_mine = false;
    int error = 0;

    spin_lock(&qp->spin);
    if (qp->qp.state == QP_IDLE)
        error = -EINVAL;
    while (wr && !error) {
        error = qp_post_send(&qp->qp, wr);
        if (!error)
            wr = wr->next;
    }
    endpoint = qp->endpoint;
    if (endpoint && !error)
        bell = bells_put_off(qp, endpoint);
    qp->put_off = bell == BELLS_RING ? 0 : qp->put_off + 1;
    if (endpoint && bell == BELLS_RING)
        is_mine = doorbell_ring(&endpoint->bell);
    spin_unlock(&qp->spin);
    if (bell == BELLS_SET_TIMER)
        bells_set_timer(qp->progress);
    else if (is_mine)
        endpoint_let_go(endpoint, ENDPOINT_POSTER);
    else if (!endpoint)
        qp_settle_alone(qp);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

/* A receive waits for its message and for nobody's work; but one that was posted after the flush has to be flushed. */
static void ring_if_failed(struct rddp_qp *qp)
{
    struct endpoint *endpoint;
    bool is_mine;

    if (qp->qp.state != QP_ERROR)
        return;
    spin_lock(&qp->spin);
    endpoint = qp->endpoint;
    is_mine = endpoint && doorbell_ring(&endpoint->bell);
    spin_unlock(&qp->spin);
    if (is_mine)
        endpoint_let_go(endpoint, ENDPOINT_POSTER);
    else if (!endpoint)
        qp_settle_alone(qp);
}

int rddp_post_recv(struct rddp_qp *qp, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr)
{
    int error = qp->qp.attr.srq ? -EINVAL : 0;

    while (wr && !error) {
        error = qp_post_recv(&qp->qp, wr);
        if (!error)
            wr = wr->next;
    }
    ring_if_failed(qp);
    if (error && bad_wr)
        *bad_wr = wr;
    return error;
}

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
    struct endpoint *endpoint = qp_hold(qp);

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
