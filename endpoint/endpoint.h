/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.h - a connection and what carries it. While it closes it may outlive its queue pair. */
#ifndef RDDP_ENDPOINT_ENDPOINT_H
#define RDDP_ENDPOINT_ENDPOINT_H

#include <sys/socket.h>

#include "endpoint/loop.h"
#include "endpoint/waiting.h"
#include "conn/conn.h"
#include "loop/doorbell.h"
#include "loop/link.h"
#include "loop/reactor.h"

struct endpoint;
struct rddp_answer;
struct rddp_conn_attr;
struct rddp_event;
struct rddp_listener;
struct rddp_qp;
struct rddp_qp_info;
struct rddp_request;

/* Continues a connection that the kernel's TCP has begun, when its start-up is over. take() is called by the driver,
 * who holds the endpoint. Returns 0 and the new link, at the same positions of both streams; -EAGAIN: try again later;
 * another negative errno: the endpoint keeps its link. */
struct successor {
    int (*take)(struct successor *successor, struct endpoint *endpoint, struct link **link);
};

/* Who works on an endpoint: the driver of its loop, or a thread that has posted and holds only the endpoint's bell. A
 * poster leaves to the driver everything that needs the loop lock. */
enum endpoint_role { ENDPOINT_DRIVER, ENDPOINT_POSTER };

/* The operations of a kind of connection: a stream of octets on a link, or an SCTP association. The caller holds the
 * endpoint; "driver" means that it also holds the loop lock. */
struct endpoint_kind {
    const char *termination; /* the name of the message that reports an error to the peer */

    /* For a poster: sends what was posted, if that is all there is to do. Returns false if there is more: work() goes
     * on from there. NULL: there always may be. */
    bool (*post)(struct endpoint *endpoint);

    /* Sends what can be sent. Returns false if a poster called and the rest needs the driver. For the driver it may
     * find that the endpoint must be closed. */
    bool (*work)(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us);

    /* Called after work(): sets the events to wait for. Returns when tick() is due, or UINT64_MAX. */
    uint64_t (*rest)(struct endpoint *endpoint, uint64_t now_us);
    void (*tick)(struct endpoint *endpoint, uint64_t now_us); /* driver: a time limit has passed */

    bool (*owes)(const struct endpoint *endpoint); /* as conn_owes() */

    /* Driver, who does not hold the endpoint: receives for a busy poller, unless another thread holds the endpoint. */
    void (*poll)(struct endpoint *endpoint);
    bool polls_for_sleepers; /* poll() does no less than is done when its descriptor is ready */

    /* Driver: takes the descriptor that poll() asks out of the epoll set, or puts it back. Returns false, or NULL: it
     * cannot. */
    bool (*stay_out)(struct endpoint *endpoint, bool out);

    /* Driver, for loop->owing: what was withheld for the application's answer may leave now. Returns false if it has
     * left behind that answer. NULL: nothing is withheld. */
    bool (*release)(struct endpoint *endpoint);

    /* Driver: like conn_accept() and conn_reject(). -EINVAL also if the attributes do not suit the wire. */
    int (*accept)(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr, uint64_t now_us);
    int (*reject)(struct endpoint *endpoint, const void *private_data, uint16_t length, uint64_t now_us);
    /* Driver: answers a question for a service of datagrams. -EINVAL: the answer does not fit; -ECONNABORTED: the peer
     * has given up. NULL: it is none. */
    int (*answer)(struct endpoint *endpoint, const struct rddp_answer *answer, uint64_t now_us);

    /* Like conn_close(), conn_detach() and conn_lost(). */
    void (*finish)(struct endpoint *endpoint, uint64_t now_us);
    void (*detach)(struct endpoint *endpoint, uint64_t now_us);
    void (*lost)(struct endpoint *endpoint, enum fault fault);

    /* What the peer said when it connected or answered (private data, IRD, ORD), and what was agreed. */
    void (*fill_event)(const struct endpoint *endpoint, struct rddp_event *event);
    void (*info)(const struct endpoint *endpoint, struct rddp_qp_info *info);

    /* Writes what may explain that the peer answers no more, for the log. NULL: nothing but the fault says it. */
    void (*explain)(const struct endpoint *endpoint, char *text, size_t size);

    /* Driver: closes what carries the connection. In a child of fork() (life->note is FAULT_FORKED) neither the parent
     * nor the peer may notice; with FAULT_CLOSED no descriptor is used. */
    void (*close)(struct endpoint *endpoint);
};

/* An unfinished unit that was moved out of the stage. */
struct carry {
    uint8_t *at; /* NULL: there is none */
    uint32_t octets;
    bool is_lost; /* there was no memory to keep it */
};

/* The octets that a link sends before it lets others send. */
struct turn {
    uint64_t begun;     /* at this position of the stream */
    uint32_t polls;     /* how often the CQs of its queue pair had been polled when it last posted, ... */
    uint64_t polled_us; /* ... and when a post saw that change */
};

/* Guarded by its bell; members marked "loop" by the lock of its loop; closing needs both. The loop owns it from
 * endpoint_begin() until loop_unlock() frees it. */
struct endpoint {
    struct doorbell bell;
    struct loop *loop;                /* never changes */
    const struct endpoint_kind *kind; /* never changes */
    struct life *life;                /* the life of `conn` or of the association */
    struct timer timer;
    struct link *link; /* `link` (owned) and `conn` only for a stream */
    struct conn conn;
    struct successor *successor;    /* takes `link` over after the start-up; NULL: none */
    struct rddp_qp *qp;             /* NULL: not accepted yet, or detached; the application owns it */
    struct rddp_listener *listener; /* loop: until the request was answered */
    struct rddp_request *request;   /* loop: the request that the application has; until it was answered */
    _Atomic bool blocked;           /* the link accepts no more now, or its turn to send is over */
    enum fault refused;             /* the link, which its peer has reset, takes no more; there may be octets to read */
    bool is_up;                     /* the link's handshake is over; always true for an association */
    bool by_hand;                   /* never changes: its queue pair has no channel, so there are no events */
    bool closed;                    /* loop: it waits to be freed */
    unsigned apart;                 /* reads for which large payloads are still expected (transfer.c) */
    struct carry carry;             /* loop */
    struct turn turn;
    uint64_t emss_us;            /* when the segment size was last looked up */
    _Atomic uint64_t sent_us;    /* when something was last sent; read by posters */
    struct epoch_reader *reader; /* the slot of its holder; NULL: not held, or held by a thread that has just rung */
    _Atomic bool borrows;        /* application memory waits for the link; correct whenever the endpoint is not held */
    struct sockaddr_storage local, peer;
    struct endpoint *next, **before; /* loop: the list of the loop's endpoints, or of those to be freed */
    struct waiting waiting;          /* loop: its place among those with a message that waits for a receive */
};

/* Was its peer's request not answered yet? Maybe it has not even come. */
static inline bool endpoint_is_unanswered(const struct endpoint *endpoint)
{
    return endpoint->listener || endpoint->request;
}

/* Is it time for the successor to take over? */
static inline bool endpoint_succeeds(const struct endpoint *endpoint)
{
    return endpoint->successor && endpoint->is_up && endpoint->life->state == CONN_READY;
}

/* Initialises an endpoint, zeroed except for what its kind has set, and adds it to the loop. Called by the driver, who
 * then holds it. Returns 0, or -ENOMEM: it is neither held nor in the loop, and stays the caller's. */
int endpoint_begin(struct endpoint *endpoint, struct loop *loop, const struct endpoint_kind *kind);

/* Waits for the bell; only the driver may, because it holds the loop lock and the endpoint cannot be freed.
 * endpoint_release() releases it after doing what others rang for meanwhile. */
void endpoint_hold(struct endpoint *endpoint);
bool endpoint_try(struct endpoint *endpoint); /* the same, if it is not held */
void endpoint_release(struct endpoint *endpoint, enum endpoint_role role);

/* For a poster who holds the endpoint since doorbell_ring(): does what it rang for, and releases it. */
void endpoint_answer(struct endpoint *endpoint);

/* For the driver, as kind->poll() begins: leaves the epoll set if nothing but a poller asks this endpoint, and all the
 * time. For the driver, who does not hold it: is back there. */
void endpoint_rest_if_polled(struct endpoint *endpoint);
void endpoint_rouse(struct endpoint *endpoint);

/* The other functions are for the holder. endpoint_pump() sends what can be sent, reports news and closes what is
 * over. */
void endpoint_pump(struct endpoint *endpoint, enum endpoint_role role);
void endpoint_pump_at(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us);

/* Closes it at once, without an event. For the driver. */
void endpoint_abort(struct endpoint *endpoint);

/* Reports that the connection could not be made, with this negative errno, and closes it. For the driver. */
void endpoint_fail_to_connect(struct endpoint *endpoint, int error);

/* In a child of fork(), after loop_leave(): the connection continues in the parent and is over here. The peer does
 * not notice; the application gets an event. `fault` is FAULT_FORKED, or FAULT_CLOSED after loop_forget_descriptors():
 * then the kernel has ended the connection. For the driver. */
void endpoint_abandon(struct endpoint *endpoint, enum fault fault);
/* Fills in *info from the connection. */
void endpoint_info(const struct endpoint *endpoint, struct rddp_qp_info *info);

/* notify.c. endpoint_notify() turns the news of a connection into events and log lines. endpoint_notify_unreachable()
 * reports that there never was one. */
void endpoint_notify(struct endpoint *endpoint);
void endpoint_notify_unreachable(struct endpoint *endpoint, int error);

/* notify.c. The request was answered, or the peer has given up: separates the endpoint from its listener and request.
 * For the driver. */
void request_answered(struct endpoint *endpoint);

#endif
