/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_path.h - the addresses of a path, and how much payload its packets can have. */
#ifndef RDDP_ROCE_IO_ROCE_PATH_H
#define RDDP_ROCE_IO_ROCE_PATH_H

#include <sys/socket.h>

struct rddp_ib_attr;

/* Returns the largest path MTU that fits into packets of the route to this peer, or a negative errno. */
int roce_path_mtu(const struct sockaddr_storage *peer);

/* Selects what was not set: the local address, and the path MTU. Returns 0 or what the system says of the route. */
int roce_path_complete(struct rddp_ib_attr *attr);

/* Selects the addresses of both ends for a call to `addr` from `local` (NULL, the wildcard: the address that the system
 * uses to send there). The port of *own is that of `local`, or 0. Returns 0; -EAFNOSUPPORT; -EADDRNOTAVAIL: `local` is
 * not this host's; or what the system says of the route. */
int roce_path_ends(const struct sockaddr *addr, socklen_t length, const struct sockaddr *local,
                   struct sockaddr_storage *own, struct sockaddr_storage *peer);

#endif
