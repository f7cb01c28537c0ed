/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.h - a connection and what carries it. It outlives its queue pair while it closes. */
#ifndef RDDP_API_ENDPOINT_H
#define RDDP_API_ENDPOINT_H

#include <sys/socket.h>

#include "api/progress.h"
#include "conn/conn.h"
#include "net/doorbell.h"
#include "net/link.h"
#include "net/loop.h"

struct endpoint;
struct rddp_conn_attr;
struct rddp_event;
struct rddp_listener;
struct rddp_qp;
struct rddp_qp_info;
struct rddp_request;

/* Who works on an endpoint: the driver of its loop, or somebody who has just posted and holds nothing but the doorbell.
 * The latter leaves to the driver what needs the token. */
enum endpoint_role { ENDPOINT_DRIVER, ENDPOINT_POSTER };

/* What a connection is made of: a stream of octets on a link, or an association. The calls are for the holder of the
 * endpoint; those for the driver say so. */
struct endpoint_kind {
    const char *farewell; /* what the one who finds an error ends it with, by its name */

    /* Sends what can be sent. False: what is left takes the driver, who is somebody else. The driver may find that it
     * has to be closed. */
    bool (*work)(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us);

    /* After work(): waits for what the connection wants. Returns when tick() is due, or UINT64_MAX. */
    uint64_t (*rest)(struct endpoint *endpoint, uint64_t now_us);
    void (*tick)(struct endpoint *endpoint, uint64_t now_us); /* driver */

    /* Driver, who does not hold the endpoint: a busy poller looks for arrivals, unless somebody else works on it. */
    void (*poll)(struct endpoint *endpoint);

    /* As conn_accept() and conn_reject(); driver. -EINVAL also if the attributes make no sense here. */
    int (*accept)(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr, uint64_t now_us);
    int (*reject)(struct endpoint *endpoint, const void *private_data, uint16_t length, uint64_t now_us);

    /* As conn_close(), conn_detach() and conn_lost(). */
    void (*finish)(struct endpoint *endpoint, uint64_t now_us);
    void (*detach)(struct endpoint *endpoint, uint64_t now_us);
    void (*lost)(struct endpoint *endpoint, enum fault fault);

    /* What the peer said when it connected or answered: private data, IRD and ORD; what was agreed. */
    void (*heard)(const struct endpoint *endpoint, struct rddp_event *event);
    void (*info)(const struct endpoint *endpoint, struct rddp_qp_info *info);

    /* Driver: what carries it is closed. In a child of fork() (life->note is FAULT_FORKED) the parent and the peer must
     * not notice. */
    void (*close)(struct endpoint *endpoint);
};

/* Guarded by its doorbell; what says so, by the token of its loop. Closing takes both. */
struct endpoint {
    struct doorbell bell;
    struct progress *progress;        /* never changes */
    const struct endpoint_kind *kind; /* the same */
    struct life *life;                /* of the connection, whatever it is */
    struct timer timer;
    struct link *link; /* these two of a stream */
    struct conn conn;
    struct rddp_qp *qp;             /* NULL: not accepted yet, or its owner is gone */
    struct rddp_listener *listener; /* token: until its request is answered */
    struct rddp_request *request;   /* token: the same */
    _Atomic bool blocked;           /* the link takes no more for now, or it is others' turn to send */
    bool is_up;                     /* what carries it has come up, or does that as part of the connection */
    bool closed;                    /* token: only waits to be freed */
    unsigned apart;                 /* not 0: large payloads are being read to where they belong */
    bool starved;                   /* token: octets of it are lost, for there was no memory to keep them */
    uint8_t *carry;                 /* token: an unfinished unit that had to leave the stage */
    uint32_t carry_octets;
    uint64_t emss_us;         /* when the segment size was looked up */
    _Atomic uint64_t sent_us; /* when something was sent last; read by those who post */
    struct visit *visit;      /* its holder's; NULL: nobody holds it, or somebody has just rung */
    _Atomic bool borrows; /* memory of the application waits for the link; true whenever it is so and nobody holds it */
    struct sockaddr_storage local, peer;
    struct endpoint *next, **before; /* token: all of the loop, or those to be freed */
};

/* Held, for the driver. `endpoint` is zeroed but for what its kind has set. 0 or -ENOMEM. */
int endpoint_begin(struct endpoint *endpoint, struct progress *progress, const struct endpoint_kind *kind);

/* Waits for it; only for the driver, whom it cannot escape. Held by the doorbell it is let go of by endpoint_let_go(),
 * which does what was asked for meanwhile. */
void endpoint_hold(struct endpoint *endpoint);
bool endpoint_try(struct endpoint *endpoint); /* the same, if it is free */
void endpoint_let_go(struct endpoint *endpoint, enum endpoint_role role);

/* The rest is for its holder. Sends what can be sent, tells what is new, closes what is over. */
void endpoint_pump(struct endpoint *endpoint, enum endpoint_role role);

/* Cuts it off without a word to the application. */
void endpoint_abort(struct endpoint *endpoint);

/* It never came to a connection, for this negative errno: says so and ends it. For the driver. */
void endpoint_fail_to_connect(struct endpoint *endpoint, int error);

/* The driver is called at once. */
void endpoint_call_driver(struct endpoint *endpoint, uint64_t now_us);

/* In a child of fork(), after progress_leave(), for who holds it: the connection goes on in the parent, and is over
 * here. The peer sees nothing of that; the application is told. */
void endpoint_abandon(struct endpoint *endpoint);
void endpoint_info(const struct endpoint *endpoint, struct rddp_qp_info *info);

/* tell.c. Turns what is new at a connection into events and log lines; it never came to one, for this reason. */
void endpoint_tell(struct endpoint *endpoint);
void endpoint_tell_unreachable(struct endpoint *endpoint, int error);

/* tell.c. Its request is answered, or its peer has given up: it is no longer its listener's. */
void request_answered(struct endpoint *endpoint);

#endif
