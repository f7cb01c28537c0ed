/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_sctp.h - a connection that is an association of SCTP. */
#ifndef RDDP_SCTP_IO_ENDPOINT_SCTP_H
#define RDDP_SCTP_IO_ENDPOINT_SCTP_H

#include "endpoint/transport.h"

/* Without SCTP in the kernel, its calls return -EPROTONOSUPPORT, with a log line, for RDDP_SCTP_KERNEL. */
extern const struct transport transport_sctp;

#endif
