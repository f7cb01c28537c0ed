/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_listener.h - listens for requests of RoCE. All is called by the driver of its loop. */
#ifndef RDDP_ROCE_IO_ROCE_LISTENER_H
#define RDDP_ROCE_IO_ROCE_LISTENER_H

#include "endpoint/objects.h"

/* Listens on listener->loop, to which its connections keep. Returns 0 or a negative errno, as rddp_listen(). */
int roce_listener_begin(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length);
void roce_listener_end(struct rddp_listener *listener);

/* Stores the address that it listens on. */
void roce_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr);

#endif
