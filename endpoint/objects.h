/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* objects.h - the objects behind the public API, and their locks.
 *
 * A thread takes locks in this order, and never waits for one above a lock that it holds:
 *     fork.c's lock         the list of contexts; held while the process forks               fork.h
 *     a loop's lock         its driver's: receiving, timers, connecting, closing             loop.h
 *     an endpoint's bell    one connection and its queue pair below the rings                endpoint.h
 *     context->lock         queue pair numbers, and queue pairs without an endpoint
 *     the leaves            mrs_lock, members.lock, a channel's lock, a loop's timer_lock,
 *                           a stack of SCTP's lock, the spinlocks of queues, CQs, pools and lists
 *
 * No thread waits for a second loop lock, and only a driver holds several doorbells at once. Leaves are not nested,
 * with three exceptions: batch.lock before a queue pair's spin, cq.reading before cq.writing, and members.lock before
 * the other mutexes while the process forks or a child makes a context its own. A post takes the spinlock of its queue
 * and rings the bell; neither waits for network work. */
#ifndef RDDP_ENDPOINT_OBJECTS_H
#define RDDP_ENDPOINT_OBJECTS_H

#include <pthread.h>
#include <rddp/rddp.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "endpoint/endpoint.h"
#include "endpoint/member.h"
#include "endpoint/loop.h"
#include "base/container.h"
#include "base/ids.h"
#include "core/qp.h"
#include "loop/reactor.h"
#include "loop/notifier.h"
#include "loop/reports.h"
#include "tcp/io/packet_port.h"

enum {
    POSTERS = 16,         /* threads that may post to endpoints at the same time; the driver does the work of others */
    LOOPS_MAX = 64,       /* loops of a context: a bit each in rddp_cq.loops */
    QP_NUMBERS = 1 << 24, /* as in verbs */
    MR_SLOTS = 256,       /* initial size of the table of keys */
    EVENT_PRIVATE_MAX = MPA_PRIVATE_MAX,                           /* octets of private data in an event */
    OUT_BUFFER_AT = (sizeof(struct out) + PAGE - 1) / PAGE * PAGE, /* offset of the buffer behind a `struct out` */
};

/* The public objects. The application owns each handle from its create call to its destroy call; both must not overlap
 * with other uses of the object, except as rddp.h says. */
struct roce_service;
struct roce_slot;

struct rddp_pd {
    struct pd pd;
    struct rddp_context *context;
};

struct rddp_mr {
    struct mr *mr; /* owned; another one after rddp_rereg_mr() */
    struct rddp_context *context;
};

struct rddp_mw {
    struct mr *mr; /* owned */
    struct rddp_context *context;
};

struct rddp_comp_channel {
    struct member member;
    struct rddp_context *context;
    struct reports reports; /* CQs with a waiting event */
    _Atomic uint32_t users; /* CQs that use it */
};

struct rddp_async_channel {
    struct member member;
    struct rddp_context *context;
    struct reports reports; /* objects with a waiting event; the kinds are those of enum rddp_async_type */
    _Atomic uint32_t users; /* objects that report to it */
};

/* The part of an object that reports asynchronous events. */
struct async_source {
    struct reporter reporter;
    _Atomic(struct rddp_async_channel *) channel; /* NULL: nothing is reported. Set once, when `event` is complete */
    struct rddp_async_event event;                /* names the object */
};

struct rddp_cq {
    struct cq cq;
    struct member member;
    struct rddp_context *context;
    struct rddp_comp_channel *channel;
    void *user;
    struct reporter reporter; /* of the channel */
    struct async_source async;
    _Atomic uint64_t loops;   /* a bit for each loop with a connection that completes here now or did before */
    _Atomic uint32_t turns;   /* selects the loop that the next poll drives */
    _Atomic uint32_t polls;   /* how often it was polled */
    _Atomic uint32_t posts;   /* that deferred their doorbell, of queue pairs whose Sends complete here */
    _Atomic uint32_t seen;    /* `posts` when it was last found empty */
    _Atomic uint32_t passed;  /* polls that found it empty beside such posts */
    _Atomic uint64_t tick_us; /* without a thread: when a poll asked the sockets because the clock had ticked */
};

struct rddp_srq {
    struct rq rq;
    struct member member;
    struct async_source async;
    struct rddp_context *context;
};

struct rddp_qp {
    struct qp qp;
    struct spin spin;   /* guards the posting side of the send queue, `endpoint`, `deferred` and `is_in_batch` */
    bool only_receives; /* guarded by spin: RTR, so requests are refused */
    enum rddp_qp_type type;
    struct member member;
    struct async_source async;
    struct rddp_context *context;
    struct roce_slot *slot;      /* owned, of types RC and UC: its number on the wire */
    struct rddp_ib_attr ib;      /* guarded by the lock of the slot's loop */
    _Atomic(struct loop *) loop; /* the loop of its connection, from connect or accept on */
    /* NULL without a connection. Changed under `spin` and context->lock by the driver, who holds the endpoint; so each
     * of the loop lock, context->lock and `spin` is enough to read it. */
    struct endpoint *endpoint;
    uint32_t deferred;          /* guarded by spin, as the next: requests posted since the bell was last rung */
    uint64_t deferred_us;       /* when the first of them was posted */
    uint32_t burst, last_burst; /* requests posted since one of its CQs was last polled, and before that */
    uint32_t polls;             /* how often both had been polled then */
    bool is_in_batch;           /* guarded by spin: it is in the loop's batch */
    _Atomic(struct rddp_qp *) next_in_batch; /* written before it is added to that list */
    struct qp_attr made;                     /* the attributes of creation; qp.attr holds what was agreed */
    void *buffer, *window_buffer;            /* owned: the rings; the wider window of a connection (attach.c) */
    void *user;
    /* Guarded by context->lock: where its events go, from connect or accept until reset. */
    struct rddp_event_channel *channel;
    bool is_joining;            /* guarded by context->lock, as the next: it was claimed, and has no endpoint yet */
    bool fails_when_joined;     /* its owner has failed it meanwhile */
    struct event_node *node[2]; /* for the events of its connection: of its beginning, with private data, and its end */
    /* What remains when the endpoint is gone, until reset. Written by the driver before the endpoint goes; read without
     * an endpoint, under context->lock. */
    struct rddp_qp_info last;
    bool was_established;
    bool keeps_completions; /* when it is destroyed */
};

/* How often its CQs were polled: one poll of a CQ for both may count twice. From any thread. */
static inline uint32_t qp_polls(const struct rddp_qp *qp)
{
    const struct qp_attr *attr = &qp->qp.attr;

    return atomic_load_explicit(&container_of(attr->send_cq, struct rddp_cq, cq)->polls, memory_order_relaxed) +
           atomic_load_explicit(&container_of(attr->recv_cq, struct rddp_cq, cq)->polls, memory_order_relaxed);
}

/* An event. Its channel owns it until rddp_get_event(), then the application until rddp_ack_event(). */
struct event_node {
    struct rddp_event event;
    struct event_node *next;
    uint8_t private_data[];
};

struct event_list {
    struct event_node *first, *last;
};

struct rddp_event_channel {
    struct member member;
    struct rddp_context *context;
    pthread_mutex_t lock; /* guards the notifier and the list */
    struct notifier notifier;
    struct event_list events;
    _Atomic uint32_t users; /* queue pairs, listeners, questions, and requests whose listener is gone */
};

enum { LISTENER_UNTAKEN_MAX = 4096 };

/* A listener belongs to one loop; the connections that it accepts are given to all loops in turn. Its members are
 * guarded by the lock of its loop, except where marked. */
struct rddp_listener {
    struct member member;
    struct watch watch;      /* the listening socket; fd is -1 behind a device and after fork() */
    struct packet_port port; /* if wire.device is not NULL: where it listens behind the device */
    struct timer pause;      /* fires when accepting is tried again after a lack of descriptors */
    struct loop *loop;
    struct rddp_context *context;
    struct rddp_event_channel *channel; /* guarded by context->lock: where its events go */
    struct rddp_wire_attr wire;
    struct sctp_port *sctp;    /* if wire.wire is RDDP_WIRE_SCTP: its socket, in place of `watch` and `pause` */
    struct roce_service *roce; /* the same of RDDP_WIRE_ROCE, owned; NULL after fork() */
    void *user;
    _Atomic uint32_t pending; /* connections whose request was not answered */
    _Atomic uint32_t untaken; /* events of requests that wait in the channel, those that are over, too */
};

/* A request of a peer. The application owns it until rddp_accept() or rddp_reject(); before it has the event, the
 * channel does. */
struct rddp_request {
    struct endpoint *endpoint;          /* guarded by the loop lock; NULL when the peer has given up */
    struct rddp_event_channel *channel; /* guarded by the loop lock: that of its listener, once the listener is gone */
    bool withdrawn;                     /* its listener goes, and its event had not been taken */
    struct loop *loop;
    enum rddp_wire wire;
    struct sockaddr_storage local, peer;
};

/* What a context is in this process. Changed under fork.c's lock. */
enum context_home {
    CONTEXT_OURS,      /* opened here, or taken over by the child's first use */
    CONTEXT_INHERITED, /* inherited by fork(), and not used since */
    CONTEXT_LEFT,      /* the parent's objects were given up; there are no threads and descriptors yet */
    CONTEXT_TORN,      /* fork() was called inside the library: unusable here */
    CONTEXT_CLOSED,    /* the program has closed the descriptors: what needs one fails with -EBADF */
};

/* A question for a service of datagrams. */
struct rddp_resolution {
    struct rddp_context *context;
    struct loop *loop;                  /* never changes */
    struct endpoint *endpoint;          /* guarded by the loop lock; NULL: it is over */
    struct rddp_event_channel *channel; /* guarded by context->lock: where its event goes */
    struct event_node *node;            /* for its event, with private data; NULL: it was reported */
    void *user;
};

struct rddp_context {
    _Atomic enum context_home home;
    bool manual;
    uint32_t spin_us; /* a thread looks for more for this long before it sleeps */
    uint32_t loops;
    struct loop *loop;    /* an array of `loops` */
    pthread_mutex_t lock; /* guards qp_numbers, rddp_qp.channel, and queue pairs without an endpoint */
    struct members members;
    _Atomic uint32_t next_loop; /* counts connections, to spread them over the loops */
    pthread_mutex_t mrs_lock;   /* guards changes of the table; look-ups need no lock */
    struct mr_table mrs;
    struct epoch_reader *readers; /* one slot per loop for its driver, then POSTERS */
    uint32_t random[64];          /* guarded by mrs_lock, as `randoms`: random bits for keys */
    uint32_t randoms;             /* unused entries of `random` */
    struct ids qp_numbers;
    struct late_event *late;                       /* guarded by the lock of the first loop: see api/late_event.c */
    _Atomic uint32_t late_count;                   /* how many those are */
    _Atomic uint32_t objects;                      /* PDs, CQs, channels and devices, which keep the context open */
    _Atomic bool is_fd_known;                      /* the application has the descriptor of its loop */
    _Atomic uint32_t armed;                        /* CQs that a thread may be waiting for */
    _Atomic uint32_t armings;                      /* how often one was armed */
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

/* attach.c. Prepares a queue pair for the wire of its new connection; `in_order`: its link delivers octets in order.
 * Returns 0, -ENOMEM or -EAGAIN. Called by the driver before qp_join(). */
int qp_prepare(struct rddp_qp *qp, const struct wire *wire, bool in_order);

/* attach.c. The same for a connection whose messages arrive in any order. Returns 0 or -ENOMEM. */
int qp_prepare_unordered(struct rddp_qp *qp);

/* attach.c. Claims an idle queue pair for one connection: from now on its events go to *channel, which is read under
 * context->lock. Returns 0; -EINVAL if it is already claimed or not idle; or -ENOMEM. qp_unclaim() reverses it, if no
 * endpoint was joined, and heeds an rddp_fail_qp() that came meanwhile. Both take context->lock. */
int qp_claim(struct rddp_qp *qp, struct rddp_event_channel *const *channel);
void qp_unclaim(struct rddp_qp *qp);

/* attach.c. Sets or clears (NULL) the endpoint of a queue pair. Called by the driver, who holds the endpoint. */
void qp_set_endpoint(struct rddp_qp *qp, struct endpoint *endpoint);

/* attach.c. What waits for the link is sent from a copy: other memory is the application's again when it is told so. By
 * who holds the endpoint, if there is one. */
void qp_own_output(struct rddp_qp *qp);

/* attach.c. Flushes a queue pair that has no endpoint and so no driver; called by threads that have posted to it. */
void qp_settle_alone(struct rddp_qp *qp);

/* endpoint.c. Takes the lock of a queue pair's loop, holds its endpoint and returns it. Returns NULL, and holds
 * nothing, if there is no endpoint. qp_release() releases both. */
struct endpoint *qp_hold(struct rddp_qp *qp);
void qp_release(struct endpoint *endpoint);

/* endpoint.c. Holds the endpoint in the same way, and returns it. If there is none, returns NULL with context->lock
 * locked: none comes then. qp_release_or_unlock() undoes either. */
struct endpoint *qp_hold_or_lock(struct rddp_qp *qp);
void qp_release_or_unlock(struct rddp_qp *qp, struct endpoint *endpoint);

/* event_queue.c: events that wait in channels. Any thread may call these, with any lock but a leaf.
 *
 * event_post() queues a copy of an event of the library at the end of *channel, which is read under context->lock: so
 * what moves it moves the events that wait before any other comes. event_post_own(): the same for an event of the
 * program. Both return false if there is no memory. */
bool event_post(struct rddp_context *context, struct rddp_event_channel *const *channel,
                const struct rddp_event *event);
bool event_post_own(struct rddp_event_channel *channel, const struct rddp_event *event);

/* A connection loses no event for want of memory: event_reserve() allocates what event_post_qp() will need. It returns
 * 0 or -ENOMEM and is called for each connection, before it has an endpoint. event_post_qp() is for the driver;
 * event_unreserve() frees what was not needed. event_has_begun(): how the connection began, or that it will not, was
 * reported. */
int event_reserve(struct rddp_qp *qp);
void event_unreserve(struct rddp_qp *qp);
void event_post_qp(struct rddp_qp *qp, const struct rddp_event *event);
bool event_has_begun(const struct rddp_qp *qp);

/* The same of a question for a service, which has one event. */
int event_reserve_resolution(struct rddp_resolution *resolution);
void event_post_resolution(struct rddp_resolution *resolution, const struct rddp_event *event);

/* Whose events: a queue pair's, a listener's, a question's, or the program's own with this `user`. */
enum event_owner { EVENT_OF_QP, EVENT_OF_LISTENER, EVENT_OF_RESOLUTION, EVENT_OWN };

/* event_withdraw() moves the waiting events of an owner to the end of *out, event_move() to the end of another channel.
 * Both keep their order and return how many there were. event_drop() frees the events of a list and their requests. */
uint32_t event_withdraw(struct rddp_event_channel *channel, enum event_owner kind, const void *owner,
                        struct event_list *out);
uint32_t event_move(struct rddp_event_channel *from, struct rddp_event_channel *to, enum event_owner kind,
                    const void *owner);
void event_drop(struct event_list *list);

#endif
