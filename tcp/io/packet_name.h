/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_name.h - converts addresses to the form of our TCP and back. */
#ifndef RDDP_TCP_IO_PACKET_NAME_H
#define RDDP_TCP_IO_PACKET_NAME_H

#include <sys/socket.h>

#include "tcp/packet.h"

/* The address as it is. Returns 0 or -EAFNOSUPPORT. */
int packet_name_of(struct utcp_name *name, const struct sockaddr *from, socklen_t length);

/* The same, but any address of IPv4 is any address. */
int packet_name_from(struct utcp_name *name, const struct sockaddr *from, socklen_t length);

void packet_name_to(const struct utcp_name *name, struct sockaddr_storage *to);

#endif
