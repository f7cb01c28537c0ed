/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - what connecting and listening share. */
#ifndef RDDP_API_CONNECT_H
#define RDDP_API_CONNECT_H

#include "api/api.h"

/* A queue pair is connected once until it is reset: from here on its events go to `channel`. False: it was claimed
 * before, or is in error. */
bool qp_claim(struct rddp_qp *qp, struct rddp_event_channel *channel);
void qp_unclaim(struct rddp_qp *qp);

/* The queue pair gets its endpoint, which the caller, the driver, holds: whoever posts finds it from here on. */
void qp_join(struct rddp_qp *qp, struct endpoint *endpoint);

#endif
