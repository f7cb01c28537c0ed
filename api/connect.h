/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - what connecting and listening share. */
#ifndef RDDP_API_CONNECT_H
#define RDDP_API_CONNECT_H

#include "api/api.h"

/* Of attributes that are sane. */
const struct wire *wire_named(enum rddp_wire name);

bool wire_is_sane(const struct rddp_wire_attr *wire);

/* Can this wire carry what `attr` wants said? Without start-up frames there is nothing that could carry private data.
 */
bool wire_says(const struct wire *wire, const struct rddp_conn_attr *attr);

/* The same in the engine's words; IRD and ORD are not among them. */
struct conn_attr wire_conn_attr(const struct rddp_wire_attr *wire);
uint16_t at_most(uint16_t asked, uint32_t room);

/* A queue pair is connected once: from here on its events go to `channel`. False: it was claimed before. */
bool qp_claim(struct rddp_qp *qp, struct rddp_event_channel *channel);
void qp_unclaim(struct rddp_qp *qp);

/* The queue pair gets its endpoint, which the caller, the driver, holds: whoever posts finds it from here on. */
void qp_join(struct rddp_qp *qp, struct endpoint *endpoint);

#endif
