/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* id_queues.c - the queue pair of an id, its completion queues if the application brings none, and its SRQ. */
#include <errno.h>

#include <rdma/rdma_verbs.h>

#include "verbs/cm/datagram.h"

/* An id shows only those that it made. */
static void destroy_cqs(struct rdma_cm_id *ibv)
{
    if (ibv->send_cq)
        ibv_destroy_cq(ibv->send_cq);
    if (ibv->send_cq_channel)
        ibv_destroy_comp_channel(ibv->send_cq_channel);
    if (ibv->recv_cq)
        ibv_destroy_cq(ibv->recv_cq);
    if (ibv->recv_cq_channel)
        ibv_destroy_comp_channel(ibv->recv_cq_channel);
    ibv->send_cq = ibv->recv_cq = NULL;
    ibv->send_cq_channel = ibv->recv_cq_channel = NULL;
}

static struct ibv_cq *create_cq(struct rdma_cm_id *ibv, uint32_t cqe, struct ibv_comp_channel **channel)
{
    *channel = ibv_create_comp_channel(ibv->verbs);
    return *channel ? ibv_create_cq(ibv->verbs, (int)(cqe ? cqe : 1), ibv, *channel, 0) : NULL;
}

/* Makes the queues that the application left out. */
static int create_cqs(struct rdma_cm_id *ibv, struct ibv_qp_init_attr_ex *init)
{
    if (!init->send_cq)
        init->send_cq = ibv->send_cq = create_cq(ibv, init->cap.max_send_wr, &ibv->send_cq_channel);
    if (!init->recv_cq)
        init->recv_cq = ibv->recv_cq = create_cq(ibv, init->cap.max_recv_wr, &ibv->recv_cq_channel);
    return init->send_cq && init->recv_cq ? 0 : -errno;
}

/* The application may try again with the same attributes. */
static void forget_cqs(const struct rdma_cm_id *ibv, struct ibv_qp_init_attr_ex *init)
{
    if (init->send_cq == ibv->send_cq)
        init->send_cq = NULL;
    if (init->recv_cq == ibv->recv_cq)
        init->recv_cq = NULL;
}

/* An adapter's does this by itself, too, so that receives can be posted. */
static int bring_to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = VERBS_ACCESS_DEFAULT,
    };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Returns 0, or an errno: a queue pair of another type than the id needs is one of them. */
static int start_qp(const struct cm_id *id, struct ibv_qp *qp)
{
    if (cm_is_ib(id))
        return cm_is_datagram(id) ? cm_datagram_start_qp(qp) : bring_to_init(qp);
    qp->state = IBV_QPS_INIT;
    return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *ibv, struct ibv_qp_init_attr_ex *init)
{
    struct cm_id *id = cm_of(ibv);
    struct ibv_qp *qp = NULL;
    int error;

    if (ibv->qp || !ibv->verbs)
        return cm_refuse("rdma_create_qp", id, "it has a queue pair, or no device before its address is resolved");
    if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd) {
        init->comp_mask |= IBV_QP_INIT_ATTR_PD;
        init->pd = ibv->pd;
    }
    if (!init->srq)
        init->srq = ibv->srq;
    error = create_cqs(ibv, init);
    if (!error && !(qp = ibv_create_qp_ex(ibv->verbs, init)))
        error = -errno;
    if (!error && (error = -start_qp(id, qp)))
        ibv_destroy_qp(qp);
    if (error) {
        forget_cqs(ibv, init);
        destroy_cqs(ibv);
        return cm_fail(-error);
    }
    verbs_enter();
    cm_id_attach(id, qp_of(qp));
    verbs_leave();
    ibv->qp = qp;
    ibv->pd = qp->pd;
    return 0;
}

int rdma_create_qp(struct rdma_cm_id *ibv, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr_ex ex = {
        .qp_context = init->qp_context,
        .send_cq = init->send_cq,
        .recv_cq = init->recv_cq,
        .srq = init->srq,
        .cap = init->cap,
        .qp_type = init->qp_type,
        .sq_sig_all = init->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd ? pd : ibv->pd,
    };
    int error = rdma_create_qp_ex(ibv, &ex);

    init->cap = ex.cap;
    init->send_cq = ex.send_cq;
    init->recv_cq = ex.recv_cq;
    init->srq = ex.srq;
    return error;
}

void rdma_destroy_qp(struct rdma_cm_id *ibv)
{
    struct ibv_qp *qp = ibv->qp;

    if (qp)
        ibv_destroy_qp(qp);
    ibv->qp = NULL;
    destroy_cqs(ibv);
}

int rdma_create_srq_ex(struct rdma_cm_id *ibv, struct ibv_srq_init_attr_ex *attr)
{
    if (ibv->srq || !ibv->verbs)
        return cm_refuse("rdma_create_srq", cm_of(ibv), "it has an SRQ, or no device before its address is resolved");
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
        attr->pd = ibv->pd;
    }
    ibv->srq = ibv_create_srq_ex(ibv->verbs, attr);
    if (!ibv->srq)
        return -1;
    ibv->pd = ibv->srq->pd;
    return 0;
}

int rdma_create_srq(struct rdma_cm_id *ibv, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex ex = {
        .srq_context = attr->srq_context,
        .attr = attr->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = pd ? pd : ibv->pd,
    };
    int error = rdma_create_srq_ex(ibv, &ex);

    attr->attr = ex.attr;
    return error;
}

void rdma_destroy_srq(struct rdma_cm_id *ibv)
{
    if (ibv->srq && !ibv_destroy_srq(ibv->srq))
        ibv->srq = NULL;
}

/* A number that no queue pair has stands for the peer's: the connection manager knows the real one, and leads the queue
 * pair where the program asks for. */
static void ib_init_attr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    enum { RETRIES = 7, RNR_TIMER = 12 };
    const struct rdma_cm_id *ibv = &id->ibv;
    struct ibv_port_attr port;

    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        attr->qp_access_flags = VERBS_ACCESS_DEFAULT;
        attr->pkey_index = 0;
        attr->port_num = 1;
        break;
    case IBV_QPS_RTR:
        *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->path_mtu = ___ibv_query_port(ibv->verbs, 1, &port) ? IBV_MTU_1024 : port.active_mtu;
        attr->dest_qp_num = VERBS_QPN_OF_CM;
        attr->rq_psn = 0;
        attr->max_dest_rd_atomic = CM_READS_DEFAULT;
        attr->min_rnr_timer = RNR_TIMER;
        (void)verbs_path(&ibv->route.addr.src_storage, &ibv->route.addr.dst_storage, &attr->ah_attr);
        break;
    default:
        *mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                IBV_QP_MAX_QP_RD_ATOMIC;
        attr->timeout = id->ack_timeout;
        attr->retry_cnt = attr->rnr_retry = RETRIES;
        attr->sq_psn = 0;
        attr->max_rd_atomic = CM_READS_DEFAULT;
    }
}

/* What a program that moves its own queue pair asks for. iWARP: rights alone, and nothing at all for RTS, since the
 * connection itself brings the queue pair there. */
int rdma_init_qp_attr(struct rdma_cm_id *ibv, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_state state = attr->qp_state;

    if (!ibv->verbs || (state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS))
        return cm_fail(EINVAL);
    if (cm_is_ib(cm_of(ibv))) {
        ib_init_attr(cm_of(ibv), attr, mask);
        return 0;
    }
    *mask = state == IBV_QPS_RTS ? 0 : IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
    if (*mask)
        attr->qp_access_flags = VERBS_ACCESS_DEFAULT;
    return 0;
}
