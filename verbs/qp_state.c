/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_state.c - the states of a queue pair, as iWARP has them: the connection manager alone brings one to RTS. Those of
 * RoCE are in ib_state.c. */
#include <errno.h>
#include <string.h>

#include "verbs/verbs_object.h"

/* Until it is connected a queue pair is in the state that the application gave it last; iWARP has no RESET. */
static enum ibv_qp_state ibv_state_of(const struct verbs_qp *qp, enum rddp_qp_state state)
{
    switch (state) {
    case RDDP_QP_IDLE:
        return qp->ibv.state == IBV_QPS_RTR ? IBV_QPS_RTR : IBV_QPS_INIT;
    case RDDP_QP_CONNECTING:
        return IBV_QPS_RTR;
    case RDDP_QP_CONNECTED:
        return IBV_QPS_RTS;
    case RDDP_QP_CLOSING:
        return IBV_QPS_SQD;
    case RDDP_QP_CLOSED:
    case RDDP_QP_ERROR:
        break;
    }
    return IBV_QPS_ERR;
}

static void iwarp_query(struct verbs_qp *qp, struct ibv_qp_attr *attr)
{
    struct rddp_qp_info info;

    rddp_query_qp(qp->rddp, &info);
    qp->ibv.state = ibv_state_of(qp, info.state);
    *attr = (struct ibv_qp_attr){
        .path_mtu = IBV_MTU_4096,
        .qp_access_flags = qp->access,
        .max_rd_atomic = (uint8_t)info.ord,
        .max_dest_rd_atomic = (uint8_t)info.ird,
    };
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct verbs_qp *qp = qp_of(ibv);

    (void)mask; /* all of it is at hand */
    if (device_is_ib(ibv->context->device))
        ib_query(qp, attr);
    else
        iwarp_query(qp, attr);
    attr->qp_state = attr->cur_qp_state = ibv->state;
    attr->cap = qp->cap;
    attr->port_num = 1;
    *init = (struct ibv_qp_init_attr){
        .qp_context = ibv->qp_context,
        .send_cq = ibv->send_cq,
        .recv_cq = ibv->recv_cq,
        .srq = ibv->srq,
        .cap = qp->cap,
        .qp_type = ibv->qp_type,
        .sq_sig_all = qp->sq_sig_all,
    };
    return 0;
}

/* On the way up, what the connection has done already changes nothing, whatever the program names. */
static int move_to(struct verbs_qp *qp, enum ibv_qp_state to)
{
    struct rddp_qp_info info;
    int error = 0;

    rddp_query_qp(qp->rddp, &info);
    switch (to) {
    case IBV_QPS_RESET:
        error = rddp_reset_qp(qp->rddp);
        qp->access = VERBS_ACCESS_DEFAULT;
        break;
    case IBV_QPS_ERR:
        error = rddp_fail_qp(qp->rddp);
        break;
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
        if (info.state > RDDP_QP_CONNECTED)
            error = -EINVAL;
        break;
    case IBV_QPS_RTS:
        if (info.state != RDDP_QP_CONNECTED)
            error = -EINVAL;
        break;
    default:
        error = -EINVAL;
    }
    if (error)
        return -error;
    qp->ibv.state = info.state == RDDP_QP_IDLE || to == IBV_QPS_RESET ? to : ibv_state_of(qp, info.state);
    return 0;
}

/* What a peer may do, whatever the regions allow. Other flags say nothing here. */
static int set_access(struct verbs_qp *qp, unsigned access)
{
    enum { REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
    int error = -rddp_set_qp_access(qp->rddp, access & REMOTE);

    if (!error)
        qp->access = access;
    return error;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    struct verbs_qp *qp = qp_of(ibv);
    int error = 0;

    if (device_is_ib(ibv->context->device))
        return ib_modify(qp, attr, mask);
    if (mask & IBV_QP_PORT && attr->port_num != 1)
        return verbs_refuse(EINVAL, "ibv_modify_qp: QP %u: port %u of 1", ibv->qp_num, attr->port_num);
    if (mask & IBV_QP_STATE) {
        verbs_enter(); /* events of the connection vanish with a reset */
        error = move_to(qp, attr->qp_state);
        verbs_leave();
    }
    if (!error && mask & IBV_QP_ACCESS_FLAGS)
        error = set_access(qp, attr->qp_access_flags);
    return verbs_refuse(error, "ibv_modify_qp: QP %u: to state %d from %d: its connection alone brings it to RTS",
                        ibv->qp_num, (int)attr->qp_state, (int)ibv->state);
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp, (void)op, (void)flags;
    return 0; /* a reader of the memory may see the end of a message before its beginning */
}
