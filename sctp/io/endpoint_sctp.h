/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_sctp.h - a connection that is an association of SCTP. */
#ifndef RDDP_SCTP_IO_ENDPOINT_SCTP_H
#define RDDP_SCTP_IO_ENDPOINT_SCTP_H

#include "endpoint/objects.h"

struct sctp_port;

/* Called by the driver of the loop. Return 0 or a negative errno; -EPROTONOSUPPORT, with a log line, if this build has
 * no SCTP. On success of endpoint_sctp_connect() the caller holds *endpoint. */
int endpoint_sctp_connect(struct progress *progress, struct rddp_qp *qp, const struct sockaddr *peer, socklen_t length,
                          const struct rddp_conn_attr *attr, struct endpoint **endpoint);
int endpoint_sctp_listen(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length);

/* Stops listening; existing associations stay until they end. */
void endpoint_sctp_unlisten(struct rddp_listener *listener);
/* Stores the listening address, with the SCTP port. */
void endpoint_sctp_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr);

#endif
