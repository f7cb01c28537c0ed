/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transports.h - the transports of this build that have sockets of their own kind. */
#ifndef RDDP_DRIVE_TRANSPORTS_H
#define RDDP_DRIVE_TRANSPORTS_H

#include "endpoint/transport.h"

/* The transport of a wire that passed wire_is_sane(); NULL: its connections are links. */
const struct transport *transport_of(const struct rddp_wire_attr *wire);

/* Returns -EPROTONOSUPPORT, with a log line, if this build has no transport for the wire, else 0. */
int transport_check(struct rddp_context *context, const struct rddp_wire_attr *wire);

/* The transport whose queue pairs are connected by hand; NULL: this build has none. */
const struct transport_ib *transport_by_hand(void);

/* Of all of them: see endpoint/transport.h. */
void transports_close(struct loop *loop);
void transports_abandon(bool ours);
void transports_leave(struct loop *loop);

#endif
