/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_path.h - how much payload a packet to a peer can have. */
#ifndef RDDP_ROCE_IO_ROCE_PATH_H
#define RDDP_ROCE_IO_ROCE_PATH_H

#include <sys/socket.h>

/* Returns the largest path MTU that fits into packets of the route to this peer, or a negative errno. */
int roce_path_mtu(const struct sockaddr_storage *peer);

#endif
