/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp.h - the kernel's SCTP: sockets of the one-to-many style, and one of its own for each association that comes. */
#ifndef RDDP_SCTP_IO_KSCTP_H
#define RDDP_SCTP_IO_KSCTP_H

#include "sctp/io/sctp.h"

enum { KSCTP_BUFFER = 4 << 20 /* octets of a socket that wait, each way; what the host allows if it is less */ };

extern const struct sctp_provider ksctp;

#endif
