/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp_socket.h - a socket of the kernel's SCTP as the provider needs it: its options, its addresses. */
#ifndef RDDP_SCTP_IO_KSCTP_SOCKET_H
#define RDDP_SCTP_IO_KSCTP_SOCKET_H

#include "sctp/io/sctp.h"

/* A socket that is set up, not yet bound; or a negative errno: -EPROTONOSUPPORT if the kernel has no SCTP, or is asked
 * for UDP and has it switched off; *why says which. */
int ksctp_socket_open(sa_family_t family, const struct sctp_attr *attr, const char **why);

/* Binds it to addresses that are named, and to no others: a socket that is bound to all addresses would tell them all
 * to its peers. `port` is one of SCTP, 0 for any. -EADDRNOTAVAIL: an address is missing, or names none. */
int ksctp_socket_bind(int fd, const struct sockaddr_storage *address, uint32_t addresses, uint16_t port);

/* Stores the address that packets to `peer` come from, without a port. Returns 0 or a negative errno. */
int ksctp_socket_source(const struct sockaddr *peer, struct sockaddr_storage *source);

#endif
