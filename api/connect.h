/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.h - functions shared by connecting and listening. */
#ifndef RDDP_API_CONNECT_H
#define RDDP_API_CONNECT_H

#include "endpoint/objects.h"

/* Connects the queue pair to its endpoint; from now on posts find it, and rddp_fail_qp(), which until then only leaves
 * a note that is heeded here. The caller is the driver and holds the endpoint. */
void qp_join(struct rddp_qp *qp, struct endpoint *endpoint);

/* Can a connection of this wire be the queue pair's? One of type RC has the wire in its number, and steps that were
 * taken by hand cannot be taken again. The driver of its loop asks once more, since rddp_modify_qp() may be faster. */
bool qp_may_join(const struct rddp_qp *qp, enum rddp_wire wire);

#endif
