/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp_inner.h - what ksctp.c and ksctp_read.c share; no other file includes it. */
#ifndef RDDP_SCTP_IO_KSCTP_INNER_H
#define RDDP_SCTP_IO_KSCTP_INNER_H

#include <sys/types.h>

#include "base/container.h"
#include "sctp/io/ksctp.h"

/* It takes for granted what <sys/socket.h> declares. */
#include <linux/sctp.h>

enum { MESSAGE_MAX = 65536 };

struct ksctp {
    struct sctp_assoc base;
    struct ksctp_port *port;
    struct ksctp *next, *next_ready;
    int fd;
    sctp_assoc_t id;
    bool ready;            /* in the list of its port */
    bool accepted;         /* its owner knows it */
    bool up_due;           /* accepted, and its owner does not know yet that it is up */
    bool over;             /* nothing can be sent any more, and its owner has been told */
    bool counted;          /* `origin` is known */
    bool has_kept;         /* `kept` is next */
    uint64_t begun_us;     /* its INIT left */
    uint32_t origin;       /* the peer's initial TSN */
    struct sctp_news kept; /* read when the peer's indication was looked for */
    struct sockaddr_storage peer;
};

/* Its loop watches its epoll set: edge-triggered, so that an association that does not read is not reported again. */
struct ksctp_port {
    struct sctp_socket base;
    struct sctp_attr attr;
    struct sockaddr_storage local;
    int fd, epoll_fd;
    bool listens;
    pid_t pid; /* who opened it */
    struct ksctp *assocs, *ready, *arrived;
    uint8_t message[MESSAGE_MAX];
};

static inline struct ksctp *ksctp_of(struct sctp_assoc *base)
{
    return container_of(base, struct ksctp, base);
}

static inline struct ksctp_port *ksctp_port_of(struct sctp_socket *base)
{
    return container_of(base, struct ksctp_port, base);
}

enum ksctp_item {
    ITEM_NONE,  /* nothing is there */
    ITEM_NOISE, /* nothing that anybody wants to know */
    ITEM_INDICATION,
    ITEM_NEWS,
};

/* Takes the next thing from a socket: the association's, or its listener's. *news is set for ITEM_INDICATION and
 * ITEM_NEWS. */
enum ksctp_item ksctp_read(struct ksctp *s, int fd, struct sctp_news *news);

/* Notes who the peer is; returns how long a message may be. */
uint32_t ksctp_look(struct ksctp *s);

/* As that of struct sctp_provider. */
bool ksctp_next(struct sctp_assoc *base, struct sctp_news *news);

#endif
