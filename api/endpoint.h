/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.h - a connection and the link under it. It outlives its queue pair while it closes. */
#ifndef RDDP_API_ENDPOINT_H
#define RDDP_API_ENDPOINT_H

#include <sys/socket.h>

#include "api/progress.h"
#include "conn/conn.h"
#include "net/doorbell.h"
#include "net/link.h"
#include "net/loop.h"

struct rddp_listener;
struct rddp_qp;
struct rddp_qp_info;
struct rddp_request;

/* Guarded by its doorbell; what says so, by the token of its loop. Closing takes both. */
struct endpoint {
    struct doorbell bell;
    struct progress *progress; /* never changes */
    struct link *link;
    struct timer timer;
    struct conn conn;
    struct rddp_qp *qp;             /* NULL: not accepted yet, or its owner is gone */
    struct rddp_listener *listener; /* token: until its request is answered */
    struct rddp_request *request;   /* token: the same */
    _Atomic bool blocked;           /* the link takes no more for now, or it is others' turn to send */
    bool closed;                    /* token: only waits to be freed */
    unsigned apart;                 /* not 0: large payloads are being read to where they belong */
    bool starved;                   /* token: octets of it are lost, for there was no memory to keep them */
    uint8_t *carry;                 /* token: an unfinished unit that had to leave the stage */
    uint32_t carry_octets;
    uint64_t emss_us;         /* when the segment size was looked up */
    _Atomic uint64_t sent_us; /* when something was sent last; read by those who post */
    struct sockaddr_storage local, peer;
    struct endpoint *next, **before; /* token: all of the loop, or those to be freed */
};

/* Who works on an endpoint: the driver of its loop, or somebody who has just posted and holds nothing but the doorbell.
 * The latter leaves to the driver what needs the token. */
enum endpoint_role { ENDPOINT_DRIVER, ENDPOINT_POSTER };

/* A new one on a link, which it owns from here on: held, for the driver. NULL: the link is closed, errno says why. */
struct endpoint *endpoint_new(struct progress *progress, struct link *link);

/* Another link carries the connection on, at the same place of both streams; the old one is closed. For the driver. */
void endpoint_exchange_link(struct endpoint *endpoint, struct link *link);

/* Waits for it; only for the driver, whom it cannot escape. Held by the doorbell it is let go of by endpoint_let_go(),
 * which does what was asked for meanwhile. */
void endpoint_hold(struct endpoint *endpoint);
void endpoint_let_go(struct endpoint *endpoint, enum endpoint_role role);

/* The rest is for its holder. Sends what can be sent, tells what is new, closes what is over. */
void endpoint_pump(struct endpoint *endpoint, enum endpoint_role role);

/* Cuts it off without a word to the application. */
void endpoint_abort(struct endpoint *endpoint);
void endpoint_info(const struct endpoint *endpoint, struct rddp_qp_info *info);

/* A busy poller looks at the socket itself, unless somebody else works on it. */
void endpoint_poll(struct endpoint *endpoint);

/* tell.c. Turns what is new at a connection into events and log lines; it never came to one, for this reason. */
void endpoint_tell(struct endpoint *endpoint);
void endpoint_tell_unreachable(struct endpoint *endpoint, int error);

/* tell.c. Its request is answered, or its peer has given up: it is no longer its listener's. */
void request_answered(struct endpoint *endpoint);

#endif
