/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api.h - the objects behind the public API, and their locks.
 *
 * A thread takes locks in this order, and never waits for one above a lock that it holds:
 *     fork.c's lock         the list of contexts; held while the process forks               fork.h
 *     a loop's token        its driver's: receiving, timers, connecting, closing             progress.h
 *     an endpoint's bell    one connection and its queue pair below the rings                endpoint.h
 *     context->lock         queue pair numbers, and queue pairs without an endpoint
 *     the leaves            mrs_lock, members.lock, a channel's lock, a loop's timer_lock,
 *                           a stack of SCTP's lock, the spinlocks of queues, CQs, pools and lists
 *
 * Nobody waits for a second token, and only a driver holds several bells at once. Leaves are not nested, with three
 * exceptions: bells.lock before a queue pair's spin, cq.reading before cq.writing, and members.lock before the other
 * mutexes while the process forks or a child makes a context its own. A post takes the spinlock of its queue and rings
 * the bell; neither waits for network work. */
#ifndef RDDP_ENDPOINT_OBJECTS_H
#define RDDP_ENDPOINT_OBJECTS_H

#include <pthread.h>
#include <rddp/rddp.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "endpoint/endpoint.h"
#include "endpoint/member.h"
#include "tcp/io/packet_device.h"
#include "endpoint/loop.h"
#include "base/container.h"
#include "base/ids.h"
#include "core/qp.h"
#include "loop/reactor.h"
#include "loop/notifier.h"
#include "tcp/io/tcp.h"

enum {
    POSTERS = 16,         /* threads that may post to endpoints at the same time; the driver does the work of others */
    LOOPS_MAX = 64,       /* loops of a context: a bit each in rddp_cq.loops */
    QP_NUMBERS = 1 << 24, /* as in verbs */
    MR_SLOTS = 256,       /* initial size of the table of keys */
    OUT_BUFFER_AT = (sizeof(struct out) + PAGE - 1) / PAGE * PAGE, /* offset of the buffer behind a `struct out` */
};

/* The public objects. The application owns each handle from its create call to its destroy call; both must not overlap
 * with other uses of the object, except as rddp.h says. */
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
    struct rddp_cq *first, *last; /* CQs with a waiting event, linked by next_event */
    _Atomic uint32_t users;       /* CQs that use it */
};

struct rddp_cq {
    struct cq cq;
    struct member member;
    struct rddp_context *context;
    struct rddp_comp_channel *channel;
    void *user;
    struct rddp_cq *next_event; /* guarded by channel->lock */
    bool has_event;             /* guarded by channel->lock: it is in the channel's list */
    _Atomic uint64_t loops;     /* a bit for each loop with a connection that completes here now or did before */
    _Atomic uint32_t turns;     /* selects the loop that the next poll drives */
};

struct rddp_srq {
    struct rq rq;
    struct member member;
    struct rddp_context *context;
};

struct rddp_qp {
    struct qp qp;
    struct spin spin; /* guards the posting side of the send queue, `endpoint`, `put_off` and `has_bell` */
    struct member member;
    struct rddp_context *context;
    _Atomic(struct progress *) progress; /* the loop of its connection, from connect or accept on */
    /* NULL without a connection. Changed under `spin` and context->lock by the driver, who holds the endpoint; so each
     * of the token, context->lock and `spin` is enough to read it. */
    struct endpoint *endpoint;
    uint32_t put_off;             /* guarded by spin: posts since the bell was last rung (bells.h) */
    bool has_bell;                /* guarded by spin: it is in the list of put-off bells */
    struct rddp_qp *next_bell;    /* written before it is added to that list */
    struct qp_attr made;          /* the attributes of creation; qp.attr holds what was agreed */
    void *buffer, *window_buffer; /* owned: the rings; the wider window of a connection (attach.c) */
    void *user;
    /* Set under context->lock: where its events go, from connect or accept until reset. */
    struct rddp_event_channel *channel;
    /* Guarded by the token: the information that remains when the endpoint is gone. */
    struct rddp_qp_info last;
};

/* An event. Its channel owns it until rddp_get_event(), then the application until rddp_ack_event(). */
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
    _Atomic uint32_t users; /* queue pairs and listeners that use it */
};

/* A listener belongs to one loop; the connections that it accepts are given to all loops in turn. Its members are
 * guarded by the token of its loop, except where marked. */
struct rddp_listener {
    struct member member;
    struct watch watch;      /* the listening socket; fd is -1 behind a device and after fork() */
    struct packet_port port; /* if wire.device is not NULL: where it listens behind the device */
    struct timer pause;      /* fires when accepting is tried again after a lack of descriptors */
    struct progress *progress;
    struct rddp_context *context;
    struct rddp_event_channel *channel;
    struct rddp_wire_attr wire;
    struct sctp_port *sctp; /* if wire.wire is RDDP_WIRE_SCTP: its socket, in place of `watch` and `pause` */
    void *user;
    _Atomic uint32_t pending; /* connections whose request was not answered */
};

/* A request of a peer. The application owns it until rddp_accept() or rddp_reject(); before it has the event, the
 * channel does. */
struct rddp_request {
    struct endpoint *endpoint; /* guarded by the token; NULL when the peer has given up */
    struct progress *progress;
    struct sockaddr_storage local, peer;
};

/* What a context is in this process. Changed under fork.c's lock. */
enum context_home {
    CONTEXT_OURS,      /* opened here, or taken over by the child's first use */
    CONTEXT_INHERITED, /* inherited by fork(), and not used since */
    CONTEXT_LEFT,      /* the parent's objects were given up; there are no threads and descriptors yet */
    CONTEXT_TORN,      /* fork() was called inside the library: unusable here */
};

struct rddp_context {
    _Atomic enum context_home home;
    bool manual;
    uint32_t loops;
    struct progress *progress; /* an array of `loops` */
    pthread_mutex_t lock;      /* guards qp_numbers, rddp_qp.channel, and queue pairs without an endpoint */
    struct members members;
    _Atomic uint32_t next_loop; /* counts connections, to spread them over the loops */
    pthread_mutex_t mrs_lock;   /* guards changes of the table; look-ups need no lock */
    struct mr_table mrs;
    struct visit *visits; /* one slot per loop for its driver, then POSTERS */
    uint32_t random[64];  /* guarded by mrs_lock, as `randoms`: random bits for keys */
    uint32_t randoms;     /* unused entries of `random` */
    struct ids qp_numbers;
    _Atomic uint32_t objects;                      /* PDs, CQs, channels and devices, which keep the context open */
    _Atomic uint32_t armed;                        /* CQs that a thread may be waiting for */
    _Atomic bool stopping;                         /* the threads shall end */
    struct rddp_context *next_open, **before_open; /* guarded by fork.c's lock, as is_held: the list of contexts */
    bool is_held;                                  /* this fork() holds the context's locks */

    enum rddp_log_level log_level;
    void (*log)(void *user, enum rddp_log_level level, const char *line);
    void *log_user;
};

/* log.c. Writes a line to the log. Checks the level first, so that a line that is not wanted costs no formatting. Any
 * thread, with any lock held. */
void context_log(struct rddp_context *context, enum rddp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* mapped.c. Is all of the memory mapped, and can its first and last page be written if `access` allows writing?
 * Volatile memory is not checked for writing, because it may lie behind the current end of a file. */
bool memory_allows(const void *addr, size_t length, unsigned access);

/* attach.c. Prepares a queue pair for the wire of its new connection; `in_order`: its link delivers octets in order.
 * Returns 0, -ENOMEM or -EAGAIN. Called by the driver before qp_join(). */
int qp_prepare(struct rddp_qp *qp, const struct wire *wire, bool in_order);

/* attach.c. The same for a connection whose messages arrive in any order. Returns 0 or -ENOMEM. */
int qp_prepare_unordered(struct rddp_qp *qp);

/* attach.c. Sets or clears (NULL) the endpoint of a queue pair. Called by the driver, who holds the endpoint. */
void qp_set_endpoint(struct rddp_qp *qp, struct endpoint *endpoint);

/* attach.c. Flushes a queue pair that has no endpoint and so no driver; called by threads that have posted to it. */
void qp_settle_alone(struct rddp_qp *qp);

/* endpoint.c. Takes the token of a queue pair's loop, holds its endpoint and returns it. Returns NULL, and holds
 * nothing, if there is no endpoint. qp_let_go() releases both. */
struct endpoint *qp_hold(struct rddp_qp *qp);
void qp_let_go(struct endpoint *endpoint);

/* event_queue.c. event_post() queues a copy of the event; false: no memory. event_forget() drops the waiting events of
 * a queue pair or a listener. Any thread, with any lock but a leaf. */
bool event_post(struct rddp_event_channel *channel, const struct rddp_event *event);
void event_forget(struct rddp_event_channel *channel, const struct rddp_qp *qp, const struct rddp_listener *listener);

#endif
