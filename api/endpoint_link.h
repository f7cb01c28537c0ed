/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_link.h - a connection whose octets travel on a link. */
#ifndef RDDP_API_ENDPOINT_LINK_H
#define RDDP_API_ENDPOINT_LINK_H

#include "api/endpoint.h"

/* A new one on a link, which it owns from here on: held, for the driver. NULL: the link is closed, errno says why. */
struct endpoint *endpoint_new(struct progress *progress, struct link *link);

/* Its connection has begun: it gets what it needs of a link that brings octets in any order. */
void endpoint_lend(struct endpoint *endpoint);

/* What has come up at its link, enum link_event: for its holder, the driver. Other links tell, and hold it for that. */
void endpoint_told(struct endpoint *endpoint, unsigned events);

/* Another link carries the connection on, at the same place of both streams; the old one is closed. For the driver. */
void endpoint_exchange_link(struct endpoint *endpoint, struct link *link);

#endif
