/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_roce.h - a connection that is a queue pair of RoCE, at a slot of a UDP port. All is called by the driver of
 * its loop. */
#ifndef RDDP_ROCE_IO_ENDPOINT_ROCE_H
#define RDDP_ROCE_IO_ENDPOINT_ROCE_H

#include "endpoint/objects.h"

struct rcm_event;
struct roce_slot;

/* Connects a queue pair by hand: it executes and answers what the peer asks for (RTR). A path MTU or local address that
 * was not set is stored in *attr. Returns 0, and the caller holds *endpoint; or a negative errno. */
int endpoint_roce_receive(struct roce_slot *slot, struct rddp_qp *qp, struct rddp_ib_attr *attr,
                          struct endpoint **endpoint);

/* From now on it sends requests, too (RTS). The driver holds the endpoint. */
void endpoint_roce_send(struct endpoint *endpoint, const struct rddp_ib_attr *attr);

/* No request begins any more (SQD), or they do again. The driver holds the endpoint. */
void endpoint_roce_drain(struct endpoint *endpoint, bool drains);

/* Requests begin again after one that failed here (SQE), of an unreliable connection. The driver holds the endpoint. */
void endpoint_roce_restart(struct endpoint *endpoint);

/* How long the peer waits when it finds no receive, from now on. Returns 0, or -EINVAL: no such code. The driver holds
 * the endpoint. */
int endpoint_roce_set_rnr_timer(struct endpoint *endpoint, uint8_t code);
int endpoint_roce_set_drained(struct endpoint *endpoint, struct rddp_ib_attr *attr, bool has_timers);

/* Asks a peer for a connection. Returns 0, and the caller holds *endpoint; or a negative errno, as rddp_connect(). */
int endpoint_roce_connect(struct loop *loop, struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_conn_attr *attr, struct endpoint **endpoint);

/* A peer asks a listener for a connection, as struct roce_service has it. */
void endpoint_roce_requested(struct roce_service *service, const struct rcm_event *event);

#endif
