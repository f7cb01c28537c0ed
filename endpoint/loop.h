/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.h - a loop, and all that only its driver touches: its thread, or an application that polls. */
#ifndef RDDP_ENDPOINT_LOOP_H
#define RDDP_ENDPOINT_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "endpoint/pool.h"
#include "endpoint/waiting.h"
#include "base/spin.h"
#include "loop/cancel.h"
#include "loop/reactor.h"

enum {
    STAGE_OCTETS = 1 << 18, /* asked of a socket at once */
    CACHE_LINE = 64,        /* what two loops must not share */
    PAGE = 4096,            /* large copies to and from places a little behind the start of a page are slow */
};

struct epoch_reader;
struct arrival;
struct endpoint;
struct rddp_context;
struct rddp_qp;
struct roce_host;

/* Received octets before they are verified and placed. All connections of a loop share it; `owner` is the one whose
 * unfinished unit lies in it, or NULL. */
struct stage {
    uint8_t *buffer;
    struct endpoint *owner;
    uint32_t from, octets;
};

/* Does anything look at a batch now and then, or at once after it was woken? */
enum batch_watch { BATCH_UNWATCHED, BATCH_WOKEN, BATCH_WATCHED };

/* Queue pairs whose doorbell is deferred, linked by next_in_batch. Posters add to `waiting` without a lock; `lock`
 * excludes those who ring from each other, for some instructions at a time. */
struct doorbell_batch {
    _Atomic(struct rddp_qp *) waiting;
    _Atomic(struct rddp_qp *) taken; /* guarded by lock: moved out of `waiting`, to be rung for */
    struct spin lock;
    _Atomic uint64_t since_us; /* no doorbell that waits was deferred before this time */
    _Atomic uint32_t sleepers; /* that have to be woken: the loop's thread, calls of rddp_progress() */
    _Atomic enum batch_watch watch;
    unsigned idle_looks; /* of the loop's thread: looks in a row that found nothing deferred */
};

/* What a poller that drives a loop leaves for its thread, and its turns with threads that wait for the loop. */
struct poll_seen {
    _Atomic uint64_t us;       /* when it last asked the sockets */
    _Atomic bool lasts;        /* it is still doing so */
    _Atomic uint32_t armings;  /* the context's, when a CQ that was not armed was last polled in vain */
    _Atomic bool is_turn;      /* a thread that waited has had the loop lock since the last poll: the next goes first */
    _Atomic uint32_t kept_out; /* polls that left the lock to a thread that waits */
    _Atomic(const struct cancel *) refused; /* the cancel_mine of a poller that found it locked at its turn, or NULL */
};

/* What a poller asks next: all sockets, or the one that spoke last. */
struct asking {
    unsigned turns;         /* times that it was to be that one */
    _Atomic bool turn_over; /* an endpoint has more to send: ask all */
    bool was_woken;         /* that one was asked for one who slept, and no poll came since */
    unsigned in_vain;       /* the first polls after a sleep, in a row, that found nothing */
};

/* A loop: a context has one or more. An endpoint stays with the loop in which it was made. */
struct loop {
    _Alignas(CACHE_LINE) struct rddp_context *context;
    pthread_mutex_t lock;    /* its holder is the driver. It guards the members below, up to the pools */
    _Atomic uint32_t wanted; /* threads that wait for the loop lock: the driver then ends its round early */
    struct reactor reactor;
    struct stage stage;
    struct endpoint *endpoints;  /* alive */
    struct endpoint *dead;       /* closed, freed when the loop is unlocked */
    struct epoch_reader *reader; /* the driver's slot, in which it is inside while it holds endpoints */
    unsigned holding;            /* the number of endpoints that the driver holds */
    struct endpoint *hot;        /* the endpoint whose socket was ready last: a busy poller asks it first */
    uint32_t receipts;           /* how often a socket had something */
    struct asking asking;
    _Atomic(struct endpoint *) resting; /* out of the epoll set, since a poller asks it all the time; or NULL */
    unsigned lone_polls;                /* how often it was asked since something was last roused */
    _Atomic(struct endpoint *) owing; /* withholds something until the next poll, or until something sleeps; or NULL */

    struct roce_host *roce; /* the UDP sockets of RoCE; NULL: there are none */

    struct waiting waiting;       /* endpoints on which a message waits for a receive */
    _Atomic bool receives_posted; /* one of them may have one: see waiting_announce() */

    struct pool outs, carries; /* pools have a lock of their own */

    struct spin arrivals_lock;
    _Atomic(struct arrival *) arrivals; /* accepted by another loop's listener, oldest first */
    _Atomic bool spans_wanted;          /* a region was invalidated: see loops_ask_for_spans() */

    struct doorbell_batch batch;

    pthread_t thread;
    struct watch wake;   /* an eventfd that ends the thread's sleep */
    _Atomic bool parked; /* the thread leaves the work to a poller */
    struct poll_seen polled;
};

/* A CQ of the context is armed, and no other was polled since: its owner may sleep and relies on the loop's thread. Who
 * goes on polling others does the work for it, too, as UCX does, which leaves CQs armed that it has no use for. */
bool loop_is_relied_on(const struct loop *loop);

/* Does anything sleep at the loop until a descriptor is ready, or may it before it has locked the loop and roused what
 * rests? The thread does not while it is parked. By the driver. */
bool loop_has_sleepers(const struct loop *loop);

/* Makes buffers, descriptors and locks, but no thread. 0, -ENOMEM or -EMFILE; call loop_fini() once in any case. */
int loop_init(struct loop *loop, struct rddp_context *context);
void loop_fini(struct loop *loop);

/* In a child of fork(): the descriptors, as reactor_leave() and reactor_renew(). */
void loop_leave(struct loop *loop);
int loop_renew(struct loop *loop);

/* The program has closed the descriptors: as reactor_forget_descriptors(). By the driver. */
void loop_forget_descriptors(struct loop *loop);

/* The loop that the next connection of a context goes to. */
struct loop *loop_next(struct rddp_context *context);

/* Lock and unlock the loop; loop_unlock() frees what was closed meanwhile. loop_trylock(): false if another thread
 * holds the lock. loop_lock() first waits, for a millisecond or so at most, until a poller whose turn was refused has
 * had it; loop_lock_to_work(), for a caller that does the same work, does not. */
void loop_lock(struct loop *loop);
void loop_lock_to_work(struct loop *loop);
bool loop_trylock(struct loop *loop);
void loop_unlock(struct loop *loop);
/* In a child of fork(), whose parent's thread had it: the same, and nothing is freed. */
void loop_unlock_inherited(struct loop *loop);

/* By the driver: adds an endpoint to the loop, or moves it to `dead`. */
void loop_add(struct endpoint *endpoint);
void loop_retire(struct endpoint *endpoint);

/* Ends the thread's sleep, in the loop or in the park. From any thread. */
void loop_wake(struct loop *loop);

/* A region was invalidated, and something waits until no span of it is sent any more: the driver of each loop is to
 * copy them (reclaim.h). From any thread, with any endpoint held. */
void loops_ask_for_spans(struct rddp_context *context);

/* Has another thread left work to the driver that makes no descriptor ready? */
bool loop_is_asked(const struct loop *loop);

void loop_clear_wake(struct loop *loop); /* resets the eventfd */

/* By the driver: something has come for this endpoint. */
static inline void loop_note_receipt(struct loop *loop, struct endpoint *endpoint)
{
    loop->hot = endpoint;
    loop->receipts++;
}

#endif
