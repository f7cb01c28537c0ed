/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api.h - the objects behind the public API. One lock, context->lock, guards everything that has no other word at it.
 */
#ifndef RDDP_API_API_H
#define RDDP_API_API_H

#include <pthread.h>
#include <rddp/rddp.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/ids.h"
#include "conn/conn.h"
#include "core/qp.h"
#include "net/loop.h"
#include "net/notifier.h"
#include "net/tcp.h"

enum {
    STAGE_OCTETS = 1 << 18, /* asked of a socket at once */
    PAGE = 4096,            /* large copies to and from places a little behind the start of a page are slow */
    OUT_ROOM_AT = (sizeof(struct out) + PAGE - 1) / PAGE * PAGE, /* behind a `struct out`, its room */
    POOL_KEEP = 4,                                               /* free buffers of a kind that are kept */
    MR_SLOTS = 256,                                              /* first size of the table of keys */
    QP_NUMBERS = 1 << 24,                                        /* as verbs has them */
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
    struct rddp_context *context;
    struct notifier notifier;
    struct rddp_cq *first, *last; /* with an event waiting, linked by next_event */
    uint32_t users;
};

struct rddp_cq {
    struct cq cq;
    struct rddp_context *context;
    struct rddp_comp_channel *channel;
    void *user;
    struct rddp_cq *next_event;
    bool has_event;
};

struct rddp_srq {
    struct rq rq;
    struct rddp_context *context;
};

struct rddp_qp {
    struct qp qp;
    struct rddp_context *context;
    struct endpoint *endpoint; /* while there is a connection */
    void *room, *sequence_room;
    void *user;
    struct rddp_event_channel *channel; /* where its events go, once it was connected or accepted */
    /* What is left to ask when the endpoint has gone. */
    struct rddp_qp_info last;
};

/* An event waits in its channel, then is with the application until it is acknowledged. */
struct event_node {
    struct rddp_event event;
    struct event_node *next;
    uint8_t private_data[];
};

struct rddp_event_channel {
    struct rddp_context *context;
    struct notifier notifier;
    struct event_node *first, *last;
    uint32_t users; /* queue pairs and listeners */
};

struct rddp_listener {
    struct watch watch;
    struct timer pause; /* out of descriptors: accepts again when it fires */
    struct rddp_context *context;
    struct rddp_event_channel *channel;
    struct rddp_wire_attr wire;
    void *user;
    uint32_t pending; /* endpoints that are not answered */
};

struct rddp_request {
    struct endpoint *endpoint; /* NULL: the peer has given up */
    struct rddp_context *context;
    struct sockaddr_storage peer;
};

/* A TCP connection and what runs on it. It outlives its queue pair while it closes. */
struct endpoint {
    struct watch watch;
    struct timer timer;
    struct conn conn;
    struct rddp_context *context;
    struct rddp_qp *qp;             /* NULL: not accepted yet, or its owner is gone */
    struct rddp_listener *listener; /* until its request is answered */
    struct rddp_request *request;   /* the same */
    bool connecting;                /* TCP's own handshake */
    bool blocked;                   /* the socket takes no more for now */
    bool closed;                    /* only waits to be freed */
    unsigned apart;                 /* not 0: large payloads are being read to where they belong */
    uint8_t *carry;                 /* an unfinished unit that had to leave the stage */
    uint32_t carry_octets;
    uint64_t emss_us; /* when the segment size was looked up */
    struct sockaddr_storage local, peer;
    struct endpoint *next, **link; /* all of the context, or those to be freed */
};

/* Received octets before they are verified and placed. It is shared: whose unfinished unit lies in it is remembered. */
struct stage {
    uint8_t *room;
    struct endpoint *owner;
    uint32_t from, octets;
};

/* Free buffers of one size. */
struct pool {
    void *free[POOL_KEEP];
    uint32_t count;
    size_t size;
};

struct rddp_context {
    pthread_mutex_t lock;
    struct loop loop;
    struct mr_table mrs;
    struct stage stage;
    struct pool outs, carries;
    struct endpoint *endpoints; /* alive */
    struct endpoint *dead;      /* closed, freed after the current round of the loop */
    struct endpoint *hot;       /* whose socket had something last: asked first by a busy poller */
    uint32_t objects;           /* PDs, CQs, channels: what keeps the context open */
    struct ids qp_numbers;
    uint32_t random[64];
    uint32_t randoms;
    unsigned hot_turns;

    enum rddp_log_level log_level;
    void (*log)(void *user, enum rddp_log_level level, const char *line);
    void *log_user;

    bool manual;
    pthread_t thread;
    struct watch stop;     /* readable: the thread is to end */
    pthread_cond_t unpark; /* the thread waits here while a busy poller does its work */
    _Atomic bool stopping;
    _Atomic uint32_t polls; /* rounds of work that pollers have done */
    uint32_t armed;         /* CQs somebody waits at */
};

static inline void lock(struct rddp_context *context)
{
    pthread_mutex_lock(&context->lock);
}
static inline void unlock(struct rddp_context *context)
{
    pthread_mutex_unlock(&context->lock);
}

/* log.c. A line for people; level first checked, so that arguments cost nothing when nobody listens. */
void context_log(struct rddp_context *context, enum rddp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* mapped.c. All of it is mapped, and where `access` lets somebody write, its first and last page can be written. Of
 * volatile memory the latter is not asked: it may lie behind the end of a file for now. */
bool memory_allows(const void *addr, size_t length, unsigned access);

/* progress.c. One round of work without waiting, under the lock, on behalf of a poller. */
void context_work(struct rddp_context *context);
int progress_start(struct rddp_context *context);
void progress_stop(struct rddp_context *context);

/* pool.c. NULL if there is no memory. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *buffer);
void pool_fini(struct pool *pool);

/* endpoint.c. All under the lock. */
struct endpoint *endpoint_new(struct rddp_context *context,
                              int fd);          /* owns fd from here on; NULL: it is closed, errno says why */
void endpoint_pump(struct endpoint *endpoint);  /* sends what can be sent, tells what is new, closes what is over */
void endpoint_poll(struct endpoint *endpoint);  /* a busy poller looks at the socket itself */
void endpoint_abort(struct endpoint *endpoint); /* cuts it off without a word to the application */
void endpoint_free_dead(struct rddp_context *context);
void endpoint_info(const struct endpoint *endpoint, struct rddp_qp_info *info);

/* qp.c. Prepares a queue pair for the wire that it is to be connected over. 0, -ENOMEM or -EAGAIN. */
int qp_prepare(struct rddp_qp *qp, const struct wire *wire);

/* tell.c. Turns what is new at a connection into events and log lines. */
void endpoint_tell(struct endpoint *endpoint);

/* event.c. Queues an event; false if there is no memory for it. */
bool event_post(struct rddp_event_channel *channel, const struct rddp_event *event);
void event_forget(struct rddp_event_channel *channel, const struct rddp_qp *qp, const struct rddp_listener *listener);

/* connect.c. TCP's handshake is over, or its time is. */
void connect_done(struct endpoint *endpoint, int error);
void request_answered(struct endpoint *endpoint); /* it is no longer its listener's */

#endif
