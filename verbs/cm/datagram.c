/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram.c - ids of the UDP port space, which rddpe0 has: they find the queue pair of a service, and are found. */
#include "verbs/cm/datagram.h"

#include <string.h>

enum { PACKETS_FROM = 0 /* the first PSN: those of datagrams are not counted */ };

struct ibv_device *cm_ib_device(void)
{
    struct ibv_device *device;

    for (unsigned i = 0; (device = verbs_device_at(i)) && !device_is_ib(device); i++)
        ;
    return device;
}

int cm_datagram_connect(struct cm_id *id, const struct rdma_conn_param *param)
{
    const struct sockaddr *to = &id->ibv.route.addr.dst_addr;
    struct rddp_resolve_attr attr;

    rddp_resolve_attr_init(&attr);
    attr.local = &id->ibv.route.addr.src_addr;
    if (param && param->private_data) {
        attr.private_data = param->private_data;
        attr.private_data_length = param->private_data_len;
    }
    id->resolution = rddp_resolve(cm_channel_of(id->ibv.channel)->rddp, to, cm_address_length(to), &attr, id);
    return id->resolution ? 0 : -errno;
}

uint32_t cm_datagram_qpn(const struct cm_id *id, const struct rdma_conn_param *param)
{
    if (id->ibv.qp)
        return id->ibv.qp->qp_num;
    return param ? param->qp_num : 0;
}

int cm_datagram_accept(struct cm_id *id, const struct rdma_conn_param *param)
{
    struct rddp_answer answer = {.qpn = cm_datagram_qpn(id, param), .qkey = RDMA_UDP_QKEY};

    if (param && param->private_data) {
        answer.private_data = param->private_data;
        answer.private_data_length = param->private_data_len;
    }
    return rddp_answer(id->request, &answer);
}

/* What datagrams of the service need. */
static void fill_found(struct cm_event *event, const struct cm_id *id, const struct rddp_event *from)
{
    struct rdma_ud_param *ud = &event->ibv.param.ud;
    const struct rdma_addr *addr = &id->ibv.route.addr;

    (void)verbs_path(&addr->src_storage, &addr->dst_storage, &ud->ah_attr);
    ud->qp_num = from->qpn;
    ud->qkey = from->qkey;
}

void cm_datagram_event(struct cm_event *event, struct cm_id *id, const struct rddp_event *from)
{
    struct rdma_ud_param *ud = &event->ibv.param.ud;

    event->ibv.id = &id->ibv;
    event->counted = id;
    event->ibv.status = from->status;
    if (from->type == RDDP_EVENT_RESOLVED) {
        event->ibv.event = RDMA_CM_EVENT_ESTABLISHED;
        id->state = CM_CONNECTED;
        fill_found(event, id, from);
    } else { /* the kernel says the same of a service that refuses */
        event->ibv.event = RDMA_CM_EVENT_UNREACHABLE;
        event->ibv.status = from->status ? from->status : -ECONNREFUSED;
        id->state = CM_FAILED;
    }
    if (!from->private_data_length)
        return;
    memcpy(event->private_data, from->private_data, from->private_data_length);
    ud->private_data = event->private_data;
    ud->private_data_len = (uint8_t)from->private_data_length;
}

int cm_datagram_start_qp(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY};
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = PACKETS_FROM;
    if (!error)
        error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return error;
}
