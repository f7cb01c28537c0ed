/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_port.h - an SCTP socket on a loop. All its associations belong to the same loop. */
#ifndef RDDP_SCTP_IO_SCTP_PORT_H
#define RDDP_SCTP_IO_SCTP_PORT_H

#include "endpoint/loop.h"
#include "sctp/io/sctp.h"
#include "sctp/io/silent.h"

struct rddp_listener;

/* Guarded by the lock of its loop; freed when its last user leaves. */
struct sctp_port {
    struct sctp_socket *socket;
    struct loop *loop;
    struct watch watch;
    struct timer tick;              /* guarded by the lock of the stack */
    uint32_t users;                 /* associations, the listener, and a running sctp_port_drive() */
    struct rddp_listener *listener; /* NULL: it only makes associations, or its listener is gone */
    struct silent *silent;          /* owned: associations whose peers have not asked for anything; NULL: no listener */
    /* A new association; the callee owns `sctp`. */
    void (*arrived)(struct rddp_listener *listener, struct sctp_port *port, struct sctp_assoc *sctp);
    void (*turn)(void *owner); /* the association of `owner` has events, or room to send */
};

/* sctp_port_open() makes a port with one user. Called by the driver. Returns 0 or a negative errno; *why as
 * of open(). */
int sctp_port_open(struct loop *loop, const struct sctp_provider *provider, const struct sockaddr *local,
                   socklen_t length, const struct sctp_attr *attr, void (*turn)(void *owner), struct sctp_port **port,
                   const char **why);
void sctp_port_use(struct sctp_port *port);
void sctp_port_leave(struct sctp_port *port); /* the last user closes it */

/* Sets the timer for what the stack has to do next. After its socket was used; by any thread, one of which may hold the
 * stack: if `wait` is false this returns then, and that thread sets the timer. */
void sctp_port_schedule(struct sctp_port *port, bool wait);

/* Receives, runs the stack's timers, and calls arrived() and turn(). Called by the driver. */
void sctp_port_drive(struct sctp_port *port);

#endif
