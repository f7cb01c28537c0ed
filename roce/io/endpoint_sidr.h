/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_sidr.h - a question for a service of datagrams (SIDR): asked by this process, or by a peer. It has no queue
 * pair, and is over once it is answered. All is called by the driver of its loop. */
#ifndef RDDP_ROCE_IO_ENDPOINT_SIDR_H
#define RDDP_ROCE_IO_ENDPOINT_SIDR_H

#include "endpoint/objects.h"

struct rcm_event;

/* Asks for the service at `addr`; what comes of it is reported on resolution->channel. Returns 0 or a negative errno,
 * as rddp_resolve(). */
int endpoint_sidr_resolve(struct rddp_resolution *resolution, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_resolve_attr *attr);

/* Nothing is reported of it any more. The driver holds the endpoint, which is then closed. */
void endpoint_sidr_forget(struct endpoint *endpoint);

/* A peer asks a listener, as struct roce_service has it. */
void endpoint_sidr_requested(struct roce_service *service, const struct rcm_event *event);

#endif
