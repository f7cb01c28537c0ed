/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp.h - SCTP in user space over UDP (RFC 6951): usrsctp, with packets and CRC of our own.
 *
 * There is one stack per process, while there may be many loops. One lock guards the stack. Every call that touches it
 * takes the lock itself, except usctp_submit() and usctp_flush(), which need usctp_enter(). No callback of the stack
 * takes it. An association, its listener and their socket belong to the loop that made them: this loop calls
 * usctp_drive() when the socket is readable and every USCTP_TICK_US, and then takes the events with usctp_next(). */
#ifndef RDDP_NET_USCTP_H
#define RDDP_NET_USCTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"
#include "net/sctp.h"

enum {
    USCTP_TICK_US = 10000,
    USCTP_PATHS = 1024,     /* peers' addresses without an association at one socket; beyond, the oldest is forgotten */
    USCTP_BACKLOG = 128,    /* associations that wait for usctp_accept() */
    USCTP_INBOX = 8 << 20,  /* octets that may wait for the owner of an association; beyond, its socket is not read */
    USCTP_BUFFER = 4 << 20, /* octets that the stack may hold, each way */
};

/* In a child of fork(): marks all ports and associations as the parent's. They can be closed, which sends nothing. Call
 * it before any other call in the child, and only if no thread was in a call during the fork. */
void usctp_abandon(void);

/* A UDP socket and all its associations. */
struct usctp_port;
struct usctp;

/* Was the library built with usrsctp? If not, usctp_open() returns -EPROTONOSUPPORT. */
bool usctp_is_there(void);

/* Opens a socket at `local`, whose port is the UDP port. Returns 0 or a negative errno. */
int usctp_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr, struct usctp_port **port);

/* Closes the socket. Its associations must be closed before. */
void usctp_close_port(struct usctp_port *port);

/* Returns the descriptor to watch for readiness. */
int usctp_fd(const struct usctp_port *port);
/* Stores the local address, with the UDP port. */
void usctp_local(const struct usctp_port *port, struct sockaddr_storage *local);

/* Accepts associations at this SCTP port; 0: picks one. Returns 0 or a negative errno; -EADDRINUSE: it listens
 * already. */
int usctp_listen(struct usctp_port *port, uint16_t sctp_port);
/* Returns the SCTP port of the listener, in host byte order. */
uint16_t usctp_listen_port(const struct usctp_port *port);

/* Stops listening; associations that were not accepted are aborted. */
void usctp_unlisten(struct usctp_port *port);

/* Returns the next new association, whose SCTP_NEWS_UP is still to be taken; NULL: there is none. */
struct usctp *usctp_accept(struct usctp_port *port);

/* Starts an association with the SCTP port in `peer`; the UDP port is attr->udp_port. Returns 0 or a negative errno. */
int usctp_connect(struct usctp_port *port, const struct sockaddr *peer, struct usctp **assoc);

/* Reads the socket, runs the stack's timers, and sends. Returns true if there may be more to read. */
bool usctp_drive(struct usctp_port *port);

/* usctp_ready() returns the next owner whose association has new events, or may have room after -EAGAIN; each once per
 * occasion. NULL: there is none. usctp_own() sets the owner of an association. */
void *usctp_ready(struct usctp_port *port);
void usctp_own(struct usctp *assoc, void *owner);

/* usctp_next() takes the next event; returns false if there is none. usctp_free() frees its data. */
bool usctp_next(struct usctp *assoc, struct sctp_news *event);
void usctp_free(struct sctp_news *event);

/* Locks the stack, so that many messages cost one lock operation. Between usctp_enter() and usctp_leave() only
 * usctp_submit() and usctp_flush() may be called. Returns false if another thread holds the lock and `wait` is
 * false. */
bool usctp_enter(bool wait);
void usctp_leave(void);

/* Copies a message for the peer. Returns 0; -EAGAIN: the stack is full, and usctp_ready() will report when to try
 * again; or another negative errno. usctp_flush() sends it. */
int usctp_submit(struct usctp *assoc, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid);
void usctp_flush(struct usctp_port *port);

/* End an association: usctp_shutdown() when everything is acknowledged, usctp_abort() at once with a reason. */
void usctp_shutdown(struct usctp *assoc);
void usctp_abort(struct usctp *assoc, const char *reason, size_t octets);

/* Stores the addresses of both ends, with SCTP ports. The local one is AF_UNSPEC if there is no route to the peer. */
void usctp_names(const struct usctp *assoc, struct sockaddr_storage *local, struct sockaddr_storage *peer);

/* Frees the association; aborts it if it is not over. */
void usctp_close(struct usctp *assoc);

#endif
