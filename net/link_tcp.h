/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_tcp.h - a kernel TCP socket as a link. */
#ifndef RDDP_NET_LINK_TCP_H
#define RDDP_NET_LINK_TCP_H

#include "net/link.h"

/* Owns the descriptor from here on. `is_up`: the connection stands; else LINK_UP or LINK_LOST follows. `aligned`: each
 * unit goes to TCP as a record of its own (MSG_EOR), which no segment is filled up behind. NULL: the descriptor is
 * closed, errno says why. */
struct link *link_tcp_new(struct loop *loop, int fd, bool is_up, bool aligned);

#endif
