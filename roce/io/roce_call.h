/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_call.h - for endpoint_roce.c alone: how the connection manager connects a queue pair, and how it ends that.
 * Called by the driver, who holds the endpoint. */
#ifndef RDDP_ROCE_IO_ROCE_CALL_H
#define RDDP_ROCE_IO_ROCE_CALL_H

#include "roce/io/roce_pair.h"

/* Asks the peer; e->slot and the addresses of the endpoint, with ports, are set, and so is its life. Returns 0;
 * -EINVAL: the private data are too long; or a negative errno. */
int roce_call_connect(struct endpoint_roce *e, const struct rddp_qp *qp, const struct rddp_conn_attr *attr);

/* Takes the request that the manager offers. Returns 0 or -ENOMEM. */
int roce_call_take(struct endpoint_roce *e, struct roce_cm *cm, const struct rcm_event *event);

/* Answer it, as struct endpoint_kind has it. */
int roce_call_accept(struct endpoint_roce *e, struct rddp_qp *qp, const struct rddp_conn_attr *attr, uint64_t now_us);
int roce_call_reject(struct endpoint_roce *e, const void *data, uint16_t length, uint64_t now_us);

/* A packet of the peer has arrived, which stands for an answer that was lost. */
void roce_call_received(struct endpoint_roce *e);

/* Is the pair at its end, and the peer to be told? Then roce_call_end() does it. */
bool roce_call_is_ending(const struct endpoint_roce *e);
void roce_call_end(struct endpoint_roce *e, uint64_t now_us);

/* Returns when roce_call_tick() is due, or UINT64_MAX. */
uint64_t roce_call_deadline(const struct endpoint_roce *e);
void roce_call_tick(struct endpoint_roce *e, uint64_t now_us);

/* The endpoint goes. */
void roce_call_leave(struct endpoint_roce *e);

#endif
