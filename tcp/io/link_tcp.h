/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_tcp.h - a kernel TCP socket as a link. */
#ifndef RDDP_TCP_IO_LINK_TCP_H
#define RDDP_TCP_IO_LINK_TCP_H

#include "loop/link.h"

/* Makes a link of a TCP socket, which the link owns from now on, even if the call fails. `is_up`: it is connected;
 * otherwise LINK_UP or LINK_LOST follows. `aligned`: each unit is given to TCP as a record of its own (MSG_EOR), so
 * that no segment holds octets of two units. NULL: errno is ENOMEM or an errno of epoll_ctl(), and the descriptor is
 * closed. */
struct link *link_tcp_new(struct reactor *reactor, int fd, bool is_up, bool aligned);

/* A link that is connecting to `peer` calls it again and again until this time, as long as it refuses. Returns 0 or
 * -ENOMEM. By the driver. */
int link_tcp_insist(struct link *link, const struct sockaddr_storage *peer, uint64_t until_us);

/* Its descriptor, which stays the link's. */
int link_tcp_fd(const struct link *link);

#endif
