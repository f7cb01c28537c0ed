/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_port.h - a socket of SCTP on a loop, and the associations at it: they belong to the same loop. */
#ifndef RDDP_API_SCTP_PORT_H
#define RDDP_API_SCTP_PORT_H

#include "api/progress.h"
#include "net/usctp.h"

struct rddp_listener;

/* Guarded by the token of its loop. */
struct sctp_port {
    struct usctp_port *usctp;
    struct progress *progress;
    struct watch watch;
    struct timer tick;
    uint32_t users;                 /* associations, its listener, and who drives it now */
    struct rddp_listener *listener; /* NULL: it makes associations, or its listener has gone */
    void (*arrived)(struct rddp_listener *listener, struct sctp_port *port, struct usctp *usctp); /* owns the latter */
    void (*turn)(void *owner); /* something has come for an association, or it has room */
};

/* Opened with one user. All of these by the driver. 0 or a negative errno. */
int sctp_port_open(struct progress *progress, const struct sockaddr *local, socklen_t length,
                   const struct sctp_attr *attr, void (*turn)(void *owner), struct sctp_port **port);
void sctp_port_use(struct sctp_port *port);
void sctp_port_leave(struct sctp_port *port); /* the last closes it */

/* Reads, lets time pass, and gives those their turn that have something to do. */
void sctp_port_drive(struct sctp_port *port);

#endif
