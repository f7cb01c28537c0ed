/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp_inner.h - for udp.c and udp_socket.c alone: what the headers of a system may lack, and addresses. */
#ifndef RDDP_LOOP_UDP_INNER_H
#define RDDP_LOOP_UDP_INNER_H

#include <netinet/in.h>
#include <netinet/udp.h>

#include "loop/udp.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

/* What IPv4's addresses begin with where they look like IPv6's. */
static const uint8_t udp_mapped[12] = {[10] = 0xff, [11] = 0xff};

static inline socklen_t udp_length_of(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

#endif
