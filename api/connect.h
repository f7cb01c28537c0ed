/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - functions shared by connecting and listening. */
#ifndef RDDP_API_CONNECT_H
#define RDDP_API_CONNECT_H

#include "endpoint/objects.h"

/* Claims an idle queue pair for one connection: from now on its events go to `channel`. Returns false if it is already
 * claimed or not idle. qp_unclaim() reverses it, if no endpoint was joined. Both take context->lock. */
bool qp_claim(struct rddp_qp *qp, struct rddp_event_channel *channel);
void qp_unclaim(struct rddp_qp *qp);

/* Connects the queue pair to its endpoint; from now on posts find it. The caller is the driver and holds the
 * endpoint. */
void qp_join(struct rddp_qp *qp, struct endpoint *endpoint);

#endif
