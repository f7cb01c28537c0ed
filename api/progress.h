/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.h - a loop, and all that only its driver touches: its thread, or an application that polls. */
#ifndef RDDP_API_PROGRESS_H
#define RDDP_API_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/pool.h"
#include "base/spin.h"
#include "net/loop.h"

enum {
    STAGE_OCTETS = 1 << 18, /* asked of a socket at once */
    CACHE_LINE = 64,        /* what two loops must not share */
    PAGE = 4096,            /* large copies to and from places a little behind the start of a page are slow */
};

struct visit;
struct arrival;
struct endpoint;
struct rddp_context;
struct rddp_qp;

/* Received octets before they are verified and placed. It is shared: whose unfinished unit lies in it is remembered. */
struct stage {
    uint8_t *room;
    struct endpoint *owner;
    uint32_t from, octets;
};

/* Queue pairs whose doorbell waits, linked by next_bell. Posters only put in; `lock` is for those who ring. */
struct bells {
    _Atomic(struct rddp_qp *) waiting;
    _Atomic(struct rddp_qp *) taken; /* lock: out of `waiting`, to be rung for */
    struct spin lock;
    _Atomic uint64_t due_us; /* when the timer was last set for */
    struct watch timer;      /* a descriptor: they must be rung now */
};

/* A context has one or more. An endpoint stays with the one it was given at birth. */
struct progress {
    _Alignas(CACHE_LINE) struct rddp_context *context;
    pthread_mutex_t token;   /* whoever has it is the driver. It guards what follows, up to the pools */
    _Atomic uint32_t wanted; /* who waits for the token: the driver then ends his round early */
    struct loop loop;
    struct stage stage;
    struct endpoint *endpoints; /* alive */
    struct endpoint *dead;      /* closed, freed when the token is given back */
    struct visit *visit;        /* the driver's: he is inside while he holds endpoints, ... */
    unsigned holding;           /* ... so many of them */
    struct endpoint *hot;       /* whose socket had something last: asked first by a busy poller */
    unsigned hot_turns;

    struct pool outs, carries; /* pools have a lock of their own */

    struct spin arrivals_lock;
    _Atomic(struct arrival *) arrivals; /* accepted by another loop's listener, oldest first */

    struct bells bells;

    pthread_t thread;
    struct watch wake;          /* an eventfd that ends the thread's sleep */
    _Atomic bool parked;        /* the thread leaves the work to a poller */
    _Atomic uint64_t polled_us; /* when a poller last asked the sockets */
};

/* Rooms, descriptors and locks, without a thread. 0, -ENOMEM, -EMFILE; progress_fini() is called once in either case.
 */
int progress_init(struct progress *progress, struct rddp_context *context);
void progress_fini(struct progress *progress);

/* In a child of fork(): the descriptors, as loop_leave() and loop_renew(). */
void progress_leave(struct progress *progress);
int progress_renew(struct progress *progress);

/* thread.c. The thread. 0 or -EAGAIN. The context's `stopping` is set before progress_stop(). */
int progress_start(struct progress *progress);
void progress_stop(struct progress *progress);

/* The loop that the next connection of a context goes to. */
struct progress *progress_next(struct rddp_context *context);

/* Takes the token, gives it back. What was closed meanwhile is freed. */
void progress_take(struct progress *progress);
bool progress_try(struct progress *progress);
void progress_give(struct progress *progress);

/* By the driver. An endpoint comes, or is closed. */
void progress_add(struct endpoint *endpoint);
void progress_bury(struct endpoint *endpoint);

/* Ends the thread's sleep, whatever it is. */
void progress_wake(struct progress *progress);
void progress_hush(struct progress *progress); /* what woke it has been noticed */

/* thread.c. One round of work without waiting, by the driver; the second on behalf of a poller, who asks the link that
 * spoke last most of the time. */
void progress_work(struct progress *progress);
void progress_poll(struct progress *progress);

#endif
