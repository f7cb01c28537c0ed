/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arrivals.h - gives accepted connections to the loops in turn. */
#ifndef RDDP_DRIVE_ARRIVALS_H
#define RDDP_DRIVE_ARRIVALS_H

#include "endpoint/objects.h"
#include "tcp/io/packet_device.h"

/* A connected socket on its way from its listener's loop to another loop, whose list owns it. */
struct arrival {
    struct arrival *next;
    struct rddp_listener *listener;
    int fd;
};

/* Gives the descriptor to one of the loops, or closes it. Called by the driver of the listener's loop. */
void arrival_give(struct rddp_listener *listener, int fd);

/* Removes the oldest arrival of this loop that came from `listener` (NULL: from any) and returns it for the caller to
 * free. NULL: there is none. */
struct arrival *arrival_take(struct loop *loop, const struct rddp_listener *listener);

/* The calls of a struct packet_port: a device delivers connections that are already up. By the driver of its loop. */
bool arrivals_have_space(const struct packet_port *port);
void arrival_from_device(struct packet_port *port, struct link *link);

/* Makes connections of all arrivals of this loop. Called by its driver. */
void arrivals_adopt(struct loop *loop);

#endif
