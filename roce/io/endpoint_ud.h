/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_ud.h - queue pairs of RoCE's unreliable datagrams: endpoints without a peer, at a slot of a port. */
#ifndef RDDP_ROCE_IO_ENDPOINT_UD_H
#define RDDP_ROCE_IO_ENDPOINT_UD_H

#include "endpoint/objects.h"
#include "roce/io/roce_port.h"

/* By the driver. A queue pair receives from now on (RTR), with the Q_Key and P_Key of *attr. Returns 0, and the caller
 * holds *endpoint; -ENOMEM; -ENODEV: its sockets belong to the parent of this process. */
int endpoint_ud_receive(struct roce_slot *slot, struct rddp_qp *qp, const struct rddp_ib_attr *attr,
                        struct endpoint **endpoint);

/* From now on it sends requests, too (RTS), the first with this PSN. The driver holds the endpoint, as below. */
void endpoint_ud_send(struct endpoint *endpoint, uint32_t psn);

/* It has another Q_Key from now on. */
void endpoint_ud_set_key(struct endpoint *endpoint, uint32_t q_key);

/* No request begins any more (SQD), or they do again; they do again after one that failed (SQE). */
void endpoint_ud_drain(struct endpoint *endpoint, bool drains);
void endpoint_ud_restart(struct endpoint *endpoint);

#endif
