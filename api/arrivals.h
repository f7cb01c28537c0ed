/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arrivals.h - what a listener has accepted goes to the loops in turn. */
#ifndef RDDP_API_ARRIVALS_H
#define RDDP_API_ARRIVALS_H

#include "api/api.h"
#include "api/packet.h"

/* A descriptor on its way from its listener to the loop that it was given to. */
struct arrival {
    struct arrival *next;
    struct rddp_listener *listener;
    int fd;
};

/* By the driver of the listener's loop. The descriptor goes to one of the loops, or is closed. */
void arrival_give(struct rddp_listener *listener, int fd);

/* The oldest on its way to this loop that came from `listener`, or from any (NULL). NULL: there is none. Freed by the
 * caller. */
struct arrival *arrival_take(struct progress *progress, const struct rddp_listener *listener);

/* Calls of a struct packet_port: a device brings connections that are up already. */
bool arrivals_have_room(const struct packet_port *port);
void arrival_from_device(struct packet_port *port, struct link *link);

/* What is on its way to this loop, if anything, becomes connections. By its driver. */
void arrivals_adopt(struct progress *progress);

#endif
