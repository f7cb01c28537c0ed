/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api.h - the objects behind the public API, and their locks.
 *
 * A thread takes them in this order, and gives back what it holds before it takes one that stands earlier:
 *     a loop's token        its driver's: receiving, timers, connecting, closing          progress.h
 *     an endpoint's bell    one connection and its queue pair below the rings             endpoint.h
 *     context->lock         queue pairs without an endpoint
 *     one of the leaves     mrs_lock, members.lock, a channel's lock, a loop's timers, the spinlock of a queue, CQ,
 * pool, list Two tokens or leaves are never held at once, but by fork(): fork.c. A post takes the spinlock of its queue
 * and rings: it waits for no work. */
#ifndef RDDP_API_API_H
#define RDDP_API_API_H

#include <pthread.h>
#include <rddp/rddp.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "api/endpoint.h"
#include "api/member.h"
#include "api/packet.h"
#include "api/progress.h"
#include "base/container.h"
#include "base/ids.h"
#include "core/qp.h"
#include "net/loop.h"
#include "net/notifier.h"
#include "net/tcp.h"

enum {
    POSTERS = 16,                                                /* that work on endpoints at once; others leave it */
    LOOPS_MAX = 64,                                              /* of one context: a bit each in rddp_cq.loops */
    QP_NUMBERS = 1 << 24,                                        /* as verbs has them */
    MR_SLOTS = 256,                                              /* first size of the table of keys */
    OUT_ROOM_AT = (sizeof(struct out) + PAGE - 1) / PAGE * PAGE, /* behind a `struct out`, its room */
};

struct rddp_pd {
    struct pd pd;
    struct rddp_context *context;
};

struct rddp_mr {
    struct mr mr;
    struct rddp_context *context;
};

struct rddp_comp_channel {
    struct member member;
    struct rddp_context *context;
    pthread_mutex_t lock; /* guards the notifier and the list */
    struct notifier notifier;
    struct rddp_cq *first, *last; /* with an event waiting, linked by next_event */
    _Atomic uint32_t users;
};

struct rddp_cq {
    struct cq cq;
    struct member member;
    struct rddp_context *context;
    struct rddp_comp_channel *channel;
    void *user;
    struct rddp_cq *next_event; /* channel->lock */
    bool has_event;             /* channel->lock */
    _Atomic uint64_t loops;     /* a bit for each loop that has, or had, a connection completing here */
    _Atomic uint32_t turns;     /* which of them a poller drives next */
};

struct rddp_srq {
    struct rq rq;
    struct member member;
    struct rddp_context *context;
};

struct rddp_qp {
    struct qp qp;
    struct spin spin; /* guards the send queue's producer side, `endpoint` and `put_off` */
    struct member member;
    struct rddp_context *context;
    _Atomic(struct progress *) progress; /* of its connection, from connect or accept on */
    struct endpoint *endpoint; /* while there is a connection: changed by its holder, who is the driver, under `spin` */
    uint32_t put_off;          /* posts since the doorbell was last rung: bells.h */
    bool has_bell;             /* `spin`: is among those whose doorbell waits */
    struct rddp_qp *next_bell; /* written before it gets there */
    struct qp_attr made;       /* what it was made with; qp.attr is what was agreed */
    void *buffer, *window_room;
    void *user;
    struct rddp_event_channel *channel; /* context->lock: where its events go, once it was connected or accepted */
    /* Token: what is left to ask when the endpoint has gone. */
    struct rddp_qp_info last;
};

/* An event waits in its channel, then is with the application until it is acknowledged. */
struct event_node {
    struct rddp_event event;
    struct event_node *next;
    uint8_t private_data[];
};

struct rddp_event_channel {
    struct member member;
    struct rddp_context *context;
    pthread_mutex_t lock; /* guards the notifier and the list */
    struct notifier notifier;
    struct event_node *first, *last;
    _Atomic uint32_t users; /* queue pairs and listeners */
};

/* Belongs to one loop; the connections that it accepts go to all of them in turn. */
struct rddp_listener {
    struct member member;
    struct watch watch;      /* of its socket */
    struct packet_port port; /* or, if wire.device is not NULL, where it listens behind that */
    struct timer pause;      /* out of descriptors: accepts again when it fires */
    struct progress *progress;
    struct rddp_context *context;
    struct rddp_event_channel *channel;
    struct rddp_wire_attr wire;
    struct sctp_port *sctp; /* in place of `watch` and `pause` */
    void *user;
    _Atomic uint32_t pending; /* endpoints that are not answered */
};

struct rddp_request {
    struct endpoint *endpoint; /* token: NULL when the peer has given up */
    struct progress *progress;
    struct sockaddr_storage local, peer;
};

/* Of a context in this process. */
enum context_home {
    CONTEXT_OURS,      /* opened here, or made ours by a first use */
    CONTEXT_INHERITED, /* by fork(), and not looked at since */
    CONTEXT_LEFT,      /* what is the parent's has been left to him; there are no threads and descriptors yet */
    CONTEXT_TORN,      /* fork() came from inside: it cannot be used here */
};

struct rddp_context {
    _Atomic enum context_home home;
    bool manual;
    uint32_t loops;
    struct progress *progress;
    pthread_mutex_t lock; /* guards qp_numbers, and queue pairs without an endpoint */
    struct members members;
    _Atomic uint32_t next_loop; /* the next connection goes to */
    pthread_mutex_t mrs_lock;   /* guards changes of the table; a look-up needs none */
    struct mr_table mrs;
    struct visit *visits; /* one for each loop, then POSTERS */
    uint32_t random[64];
    uint32_t randoms;
    struct ids qp_numbers;
    _Atomic uint32_t objects;                      /* PDs, CQs, channels: what keeps the context open */
    _Atomic uint32_t armed;                        /* CQs that somebody waits at */
    _Atomic bool stopping;                         /* the threads are to end */
    struct rddp_context *next_open, **before_open; /* fork.c, as the next */
    bool is_held;                                  /* while the process forks */

    enum rddp_log_level log_level;
    void (*log)(void *user, enum rddp_log_level level, const char *line);
    void *log_user;
};

/* log.c. A line for people; level first checked, so that arguments cost nothing when nobody listens. */
void context_log(struct rddp_context *context, enum rddp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* mapped.c. All of it is mapped, and where `access` lets somebody write, its first and last page can be written. Of
 * volatile memory the latter is not asked: it may lie behind the end of a file for now. */
bool memory_allows(const void *addr, size_t length, unsigned access);

/* attach.c. Prepares a queue pair for the wire that it is to be connected over; `in_order`: as its link brings octets.
 * 0, -ENOMEM or -EAGAIN. */
int qp_prepare(struct rddp_qp *qp, const struct wire *wire, bool in_order);

/* attach.c. The same for messages that come in whatever order. 0 or -ENOMEM. */
int qp_prepare_unordered(struct rddp_qp *qp);

/* attach.c. The connection of a queue pair comes, or goes (NULL): its holder, who is the driver, says so. */
void qp_set_endpoint(struct rddp_qp *qp, struct endpoint *endpoint);

/* attach.c. Without an endpoint nobody drives the queue pair: who has posted to it flushes it himself. */
void qp_settle_alone(struct rddp_qp *qp);

/* endpoint.c. The endpoint of a queue pair, held and with the token of its loop taken; NULL, and nothing is taken, if
 * it has none. Given back by qp_let_go(). */
struct endpoint *qp_hold(struct rddp_qp *qp);
void qp_let_go(struct endpoint *endpoint);

/* event_queue.c. Queues an event; false if there is no memory for it. */
bool event_post(struct rddp_event_channel *channel, const struct rddp_event *event);
void event_forget(struct rddp_event_channel *channel, const struct rddp_qp *qp, const struct rddp_listener *listener);

#endif
