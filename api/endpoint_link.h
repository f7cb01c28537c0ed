/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_link.h - a connection whose octets travel on a link. */
#ifndef RDDP_API_ENDPOINT_LINK_H
#define RDDP_API_ENDPOINT_LINK_H

#include "api/endpoint.h"

/* A new one on a link, which it owns from here on: held, for the driver. NULL: the link is closed, errno says why. */
struct endpoint *endpoint_new(struct progress *progress, struct link *link);

/* Another link carries the connection on, at the same place of both streams; the old one is closed. For the driver. */
void endpoint_exchange_link(struct endpoint *endpoint, struct link *link);

#endif
