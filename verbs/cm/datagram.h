/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram.h - ids of the UDP port space. All under verbs_lock. */
#ifndef VERBS_CM_DATAGRAM_H
#define VERBS_CM_DATAGRAM_H

#include "verbs/cm/cm.h"

static inline bool cm_is_datagram(const struct cm_id *id)
{
    return id->ibv.ps == RDMA_PS_UDP;
}

/* The device that has datagrams; NULL: RDDP_DEVICE does not name it. */
struct ibv_device *cm_ib_device(void);

/* Returns the queue pair that an answer names; 0: none. */
uint32_t cm_datagram_qpn(const struct cm_id *id, const struct rdma_conn_param *param);

/* rdma_connect() and rdma_accept() of such an id. Return 0, or a negative errno. */
int cm_datagram_connect(struct cm_id *id, const struct rdma_conn_param *param);
int cm_datagram_accept(struct cm_id *id, const struct rdma_conn_param *param);

/* Makes the application's event of the answer of a service, or of its absence. */
void cm_datagram_event(struct cm_event *event, struct cm_id *id, const struct rddp_event *from);

/* Brings a new queue pair to RTS, as adapters do for rdma_create_qp(), without verbs_lock. Returns 0, or an errno. */
int cm_datagram_start_qp(struct ibv_qp *qp);

#endif
