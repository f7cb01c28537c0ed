/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - queue pairs are made, asked and destroyed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/context.h"
#include "verbs/verbs_object.h"

enum {
    UD_SEND_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
    UC_SEND_OPS = UD_SEND_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    SEND_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
               IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV |
               IBV_QP_EX_WITH_BIND_MW,
};

static struct verbs_qp *qp_list; /* under verbs_lock */

static void qp_list_add(struct verbs_qp *qp)
{
    qp->next = qp_list;
    if (qp->next)
        qp->next->at = &qp->next;
    qp->at = &qp_list;
    qp_list = qp;
}

static void qp_list_remove(const struct verbs_qp *qp)
{
    *qp->at = qp->next;
    if (qp->next)
        qp->next->at = qp->at;
}

struct verbs_qp *verbs_qp_find(uint32_t num)
{
    struct verbs_qp *qp = qp_list;

    while (qp && qp->ibv.qp_num != num)
        qp = qp->next;
    return qp;
}

void qp_part_all(void)
{
    for (const struct verbs_qp *qp = qp_list; qp; qp = qp->next)
        if (qp->id && device_is_ib(qp->ibv.context->device))
            rddp_disconnect(qp->rddp);
}

void qp_count_all(void)
{
    for (const struct verbs_qp *qp = qp_list; qp; qp = qp->next)
        stats_count(qp->rddp);
}

/* Adapters give more than was asked for, and programs that ask for none send inline all the same. */
static uint32_t inline_given(uint32_t asked)
{
    enum { LEAST = 64 };

    return asked < LEAST ? LEAST : asked;
}

/* rddp0 has connections alone. */
static bool has_type(const struct ibv_device *device, enum ibv_qp_type type)
{
    return type == IBV_QPT_RC || (device_is_ib(device) && (type == IBV_QPT_UC || type == IBV_QPT_UD));
}

static enum rddp_qp_type rddp_type_of(const struct ibv_device *device, enum ibv_qp_type type)
{
    if (!device_is_ib(device))
        return RDDP_QPT_CONNECTED;
    return type == IBV_QPT_RC ? RDDP_QPT_RC : type == IBV_QPT_UC ? RDDP_QPT_UC : RDDP_QPT_UD;
}

static struct rddp_qp *qp_make(struct verbs_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.type = rddp_type_of(pd->context->device, init->qp_type);
    attr.send_cq = cq_of(init->send_cq)->rddp;
    attr.recv_cq = cq_of(init->recv_cq)->rddp;
    attr.srq = init->srq ? srq_of(init->srq)->rddp : NULL;
    attr.max_send_wr = init->cap.max_send_wr;
    attr.max_recv_wr = init->cap.max_recv_wr;
    attr.max_send_sge = init->cap.max_send_sge;
    attr.max_recv_sge = init->cap.max_recv_sge;
    attr.max_inline_data = inline_given(init->cap.max_inline_data);
    attr.max_rd_atomic = VERBS_READS_MAX; /* the connection says how many it uses */
    attr.sq_sig_all = init->sq_sig_all;
    /* Programs that were written for InfiniBand rely on its retries: a Send waits for a receive. */
    attr.wait_for_receive_ms = RDDP_WAIT_WITHOUT_LIMIT;
    /* libfabric destroys a queue pair when its peer is gone, in another thread than the one that polls its CQ. */
    attr.keep_completions = true;
    attr.user = qp;
    return rddp_create_qp(pd_of(pd)->rddp, &attr);
}

/* Queues of the other device are no queues of this one. */
static bool has_queues_of(const struct ibv_device *device, const struct ibv_qp_init_attr *init)
{
    return init->send_cq && init->send_cq->context->device == device && init->recv_cq &&
           init->recv_cq->context->device == device && (!init->srq || init->srq->context->device == device);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct verbs_qp *qp;

    if (!has_type(pd->context->device, init->qp_type) || !has_queues_of(pd->context->device, init)) {
        verbs_refuse(!has_type(pd->context->device, init->qp_type) ? EOPNOTSUPP : EINVAL,
                     "ibv_create_qp: type %d, which %s does not have; or no CQ, or a CQ or an SRQ of another device",
                     (int)init->qp_type, pd->context->device->name);
        return NULL;
    }
    qp = calloc(1, sizeof(*qp));
    if (!qp || !(qp->rddp = qp_make(qp, pd, init))) {
        free(qp);
        verbs_refuse(errno,
                     "ibv_create_qp: max_send_wr %u, max_recv_wr %u, max_send_sge %u, max_recv_sge %u, "
                     "max_inline_data %u: one is too large",
                     init->cap.max_send_wr, init->cap.max_recv_wr, init->cap.max_send_sge, init->cap.max_recv_sge,
                     init->cap.max_inline_data);
        return NULL;
    }
    init->cap.max_inline_data = inline_given(init->cap.max_inline_data);
    qp->cap = init->cap;
    qp->sq_sig_all = init->sq_sig_all;
    qp->access = VERBS_ACCESS_DEFAULT;
    atomic_init(&qp->is_reset, device_is_ib(pd->context->device));
    rddp_watch_qp(qp->rddp, open_device_of(pd->context)->async, qp);
    qp->ibv.context = pd->context;
    qp->ibv.qp_context = init->qp_context;
    qp->ibv.pd = pd;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.srq = init->srq;
    qp->ibv.handle = qp->ibv.qp_num = rddp_qp_num(qp->rddp);
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = init->qp_type;
    pthread_mutex_init(&qp->ibv.mutex, NULL);
    pthread_cond_init(&qp->ibv.cond, NULL);
    pd_enter(pd);
    verbs_enter();
    qp_list_add(qp);
    verbs_leave();
    return &qp->ibv;
}

struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp;

    uint64_t ops = attr->qp_type == IBV_QPT_UD ? UD_SEND_OPS : attr->qp_type == IBV_QPT_UC ? UC_SEND_OPS : SEND_OPS;

    (void)context;
    /* verbs.h calls the builders of requests unchecked: one that is missing must not be asked for. */
    if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
        (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags & ~ops)) {
        verbs_refuse(EOPNOTSUPP, "ibv_create_qp_ex: comp_mask or send_ops_flags ask for what the device has not");
        return NULL;
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
        verbs_refuse(EINVAL, "ibv_create_qp_ex: no PD");
        return NULL;
    }
    qp = ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr); /* the one is the beginning of the other */
    if (qp && attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
        int error = wr_builder_attach(qp_of(qp));
        if (error) {
            ibv_destroy_qp(qp);
            errno = error;
            return NULL;
        }
    }
    return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return qp_of(qp)->builder ? &qp_of(qp)->ex : NULL;
}

/* Waiting for asynchronous events to be acknowledged must not stop other threads, which may have to do that. A thread
 * that has taken an event of the connection meanwhile has the lock until it has looked at the queue pair. */
int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct verbs_qp *qp = qp_of(ibv);

    verbs_enter();
    if (qp->id && verbs_qp_is_going)
        verbs_qp_is_going(qp);
    qp_list_remove(qp);
    stats_count(qp->rddp);
    verbs_leave();
    rddp_destroy_qp(qp->rddp);
    verbs_enter();
    verbs_leave();
    pd_leave(ibv->pd);
    wr_builder_detach(qp);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    free(qp);
    return 0;
}
