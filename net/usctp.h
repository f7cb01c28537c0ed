/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp.h - SCTP in user space over UDP (RFC 6951): usrsctp, with our packets and our CRC.
 *
 * The stack is one per process while loops are many: one lock inside guards it, taken by every call here and by nobody
 * who calls back. An association, its listener and their socket belong to the loop that made them: that loop calls
 * usctp_drive() when the socket is readable and every USCTP_TICK_US, then takes what came with usctp_next(). */
#ifndef RDDP_NET_USCTP_H
#define RDDP_NET_USCTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"
#include "net/sctp.h"

enum {
    USCTP_TICK_US = 10000,
    USCTP_PATHS = 1024,     /* peers' addresses at one socket that have no association: INITs are forgotten beyond */
    USCTP_BACKLOG = 128,    /* associations that nobody has accepted */
    USCTP_INBOX = 8 << 20,  /* octets that may wait for their owner: beyond nothing is read */
    USCTP_BUFFER = 4 << 20, /* octets that the stack itself may hold, each way */
};

/* In a child of fork(), before any other call there, and not while somebody was in one: what is there is the parent's.
 * Its ports and associations can be closed, which tells nobody. */
void usctp_abandon(void);

/* A UDP socket and all the associations at it. */
struct usctp_port;
struct usctp;

/* Is it built in? If not usctp_open() says -EPROTONOSUPPORT. */
bool usctp_is_there(void);

/* Opens a socket at `local`, its port that of UDP. 0 or a negative errno. */
int usctp_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr, struct usctp_port **port);

/* Closes it; associations at it must be closed before. */
void usctp_close_port(struct usctp_port *port);

/* To watch for readiness. */
int usctp_fd(const struct usctp_port *port);
void usctp_local(const struct usctp_port *port, struct sockaddr_storage *local);

/* Accepts associations at this SCTP port; of 0 it picks one. 0 or a negative errno. */
int usctp_listen(struct usctp_port *port, uint16_t sctp_port);
uint16_t usctp_listen_port(const struct usctp_port *port);

/* Accepts no more; what nobody has accepted is aborted. */
void usctp_unlisten(struct usctp_port *port);

/* The next that has come up, its SCTP_NEWS_UP still to be taken; NULL: none. */
struct usctp *usctp_accept(struct usctp_port *port);

/* Begins an association with the SCTP port `peer` names; UDP's is attr->udp_port. 0 or a negative errno. */
int usctp_connect(struct usctp_port *port, const struct sockaddr *peer, struct usctp **assoc);

/* Reads what the socket has, lets time pass, sends. True: there may be more. */
bool usctp_drive(struct usctp_port *port);

/* Who has to look at an association of his next: the owner that usctp_own() gave it, once for each time that something
 * has come for it, or that there may be room for what was -EAGAIN. NULL: nobody. */
void *usctp_ready(struct usctp_port *port);
void usctp_own(struct usctp *assoc, void *owner);

/* Takes the next thing that happened. */
bool usctp_next(struct usctp *assoc, struct sctp_news *event);
void usctp_free(struct sctp_news *event);

/* The stack is this caller's alone, so that many messages cost one lock: usctp_submit() and usctp_flush() belong in
 * between, and nothing else of this file. False: it is somebody else's now, and `wait` was not asked for. */
bool usctp_enter(bool wait);
void usctp_leave(void);

/* Copies a message for the peer. 0; -EAGAIN: the stack is full, again when usctp_ready() says so; or a negative errno.
 * It leaves with usctp_flush(). */
int usctp_submit(struct usctp *assoc, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid);
void usctp_flush(struct usctp_port *port);

/* Ends it: after everything has been acknowledged, or at once with a reason. */
void usctp_shutdown(struct usctp *assoc);
void usctp_abort(struct usctp *assoc, const char *reason, size_t octets);

/* Both ends: their addresses, with SCTP's ports. Ours is AF_UNSPEC if no way leads to the peer. */
void usctp_names(const struct usctp *assoc, struct sockaddr_storage *local, struct sockaddr_storage *peer);

/* Frees it; what is not over is aborted. */
void usctp_close(struct usctp *assoc);

#endif
