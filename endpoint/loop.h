/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.h - a loop, and all that only its driver touches: its thread, or an application that polls. */
#ifndef RDDP_ENDPOINT_LOOP_H
#define RDDP_ENDPOINT_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "endpoint/pool.h"
#include "base/spin.h"
#include "loop/reactor.h"

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

/* Received octets before they are verified and placed. All connections of a loop share it; `owner` is the one whose
 * unfinished unit lies in it, or NULL. */
struct stage {
    uint8_t *buffer;
    struct endpoint *owner;
    uint32_t from, octets;
};

/* Queue pairs whose doorbell is put off, linked by next_bell. Posters add to `waiting` without a lock; `lock` excludes
 * those who ring from each other. */
struct bells {
    _Atomic(struct rddp_qp *) waiting;
    _Atomic(struct rddp_qp *) taken; /* guarded by lock: moved out of `waiting`, to be rung for */
    struct spin lock;
    _Atomic uint64_t since_us; /* no bell that waits was put off before this time */
    _Atomic bool timed;        /* the timer is set, or somebody is about to set it */
    struct watch timer;        /* a timerfd: the bells must be rung now */
};

/* A loop: a context has one or more. An endpoint stays with the loop in which it was made. */
struct progress {
    _Alignas(CACHE_LINE) struct rddp_context *context;
    pthread_mutex_t token;   /* its holder is the driver. It guards the members below, up to the pools */
    _Atomic uint32_t wanted; /* threads that wait for the token: the driver then ends its round early */
    struct loop loop;
    struct stage stage;
    struct endpoint *endpoints; /* alive */
    struct endpoint *dead;      /* closed, freed when the token is given back */
    struct visit *visit;        /* the driver's record of being inside while it holds endpoints */
    unsigned holding;           /* the number of endpoints that the driver holds */
    struct endpoint *hot;       /* the endpoint whose socket was ready last: a busy poller asks it first */
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

/* Makes buffers, descriptors and locks, but no thread. 0, -ENOMEM or -EMFILE; call progress_fini() once in any case. */
int progress_init(struct progress *progress, struct rddp_context *context);
void progress_fini(struct progress *progress);

/* In a child of fork(): the descriptors, as loop_leave() and loop_renew(). */
void progress_leave(struct progress *progress);
int progress_renew(struct progress *progress);

/* thread.c. Starts the thread: 0 or -EAGAIN. Set the context's `stopping` before progress_stop(), which joins it. */
int progress_start(struct progress *progress);
void progress_stop(struct progress *progress);

/* The loop that the next connection of a context goes to. */
struct progress *progress_next(struct rddp_context *context);

/* Take the token and give it back; progress_give() frees what was closed meanwhile. progress_try(): false if somebody
 * else has it. */
void progress_take(struct progress *progress);
bool progress_try(struct progress *progress);
void progress_give(struct progress *progress);
/* In a child of fork(), whose parent's thread had it: the same, and nothing is freed. */
void progress_inherit(struct progress *progress);

/* By the driver: adds an endpoint to the loop, or moves it to `dead`. */
void progress_add(struct endpoint *endpoint);
void progress_bury(struct endpoint *endpoint);

/* Ends the thread's sleep, in the loop or in the park. From any thread. */
void progress_wake(struct progress *progress);
void progress_hush(struct progress *progress); /* resets the eventfd */

/* thread.c. Do one round of work without waiting, by the driver. progress_poll() is for a poller: most of the time it
 * asks only the link that spoke last. */
void progress_work(struct progress *progress);
void progress_poll(struct progress *progress);

#endif
