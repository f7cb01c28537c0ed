/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_link.h - a connection whose octets travel on a link. */
#ifndef RDDP_ENDPOINT_ENDPOINT_LINK_H
#define RDDP_ENDPOINT_ENDPOINT_LINK_H

#include "endpoint/endpoint.h"

/* Makes an endpoint on a link, which the endpoint owns from now on. Called by the driver, who then holds the endpoint.
 * NULL: the link was closed; errno is ENOMEM. */
struct endpoint *endpoint_new(struct loop *loop, struct link *link);

/* Does the link deliver octets in order, and so will its successor? */
bool endpoint_in_order(const struct endpoint *endpoint);

/* Processes events of the link (enum link_event). For the driver, who holds the endpoint; links other than
 * packet_link.c call on_link(). */
void endpoint_link_event(struct endpoint *endpoint, unsigned events);

/* Continues the connection on another link, at the same positions of both streams, and closes the old link. For the
 * driver. */
void endpoint_exchange_link(struct endpoint *endpoint, struct link *link);

#endif
