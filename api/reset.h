/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reset.h - a queue pair is reset, moved to error or destroyed. */
#ifndef RDDP_API_RESET_H
#define RDDP_API_RESET_H

#include "endpoint/objects.h"

/* Takes the connection, the completions and the events from a queue pair that no other thread uses. */
void qp_strip(struct rddp_qp *qp, bool keeps);

/* Ends the connection because the owner of its queue pair has failed it. The caller is the driver and holds the
 * endpoint. */
void qp_fail_connection(struct endpoint *endpoint);

#endif
