/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - completion queues and channels for the application. */
#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"
#include "drive/closed.h"
#include "drive/doorbell_batch.h"
#include "drive/thread.h"
#include "drive/inherit.h"
#include "api/async.h"
#include "api/channel.h"

enum {
    CQE_MAX = 1 << 20,
    INSIST_EVERY = 1024, /* of the polls that leave the loop to a thread that waits, each of this number tries */
    LOOK_EVERY = 4,      /* of the empty polls of one that posts meanwhile, each of this number asks the sockets */
};

struct rddp_comp_channel *rddp_create_comp_channel(struct rddp_context *context)
{
    struct rddp_comp_channel *channel = channel_new(context, sizeof(*channel));

    if (!channel)
        return NULL;
    channel->context = context;
    return channel_complete(channel, context, MEMBER_COMP_CHANNEL, &channel->member, reports_init(&channel->reports));
}

int rddp_destroy_comp_channel(struct rddp_comp_channel *channel)
{
    int error = channel_leave(channel->context, &channel->member, channel->users);

    if (error)
        return error;
    reports_fini(&channel->reports);
    free(channel);
    return 0;
}

int rddp_comp_channel_fd(const struct rddp_comp_channel *channel)
{
    return channel_fd(channel->context, &channel->reports.notifier);
}

/* The engine calls this when an armed CQ gets a completion, without the CQ's spinlocks. The caller may hold a loop
 * lock, a doorbell or context->lock: all of them stand before the channel's lock. */
static void queue_event(struct cq *engine_cq)
{
    struct rddp_cq *cq = container_of(engine_cq, struct rddp_cq, cq);

    cq->context->armed--;
    reports_add(&cq->channel->reports, &cq->reporter, 0);
}

int rddp_get_cq_event(struct rddp_comp_channel *channel, struct rddp_cq **cq, void **user)
{
    struct reporter *reporter = NULL;
    unsigned kind;
    int error = channel_await(channel->context, &channel->reports, &reporter, &kind);

    if (error)
        return error;
    *cq = container_of(reporter, struct rddp_cq, reporter);
    if (user)
        *user = (*cq)->user;
    return 0;
}

void rddp_ack_cq_events(struct rddp_cq *cq, uint32_t n)
{
    if (cq->channel)
        reports_acknowledge(&cq->channel->reports, &cq->reporter, n);
}

/* Allocates a ring for `cqe` completions; *size is its number of entries. */
static struct cq_entry *allocate_ring(int cqe, uint32_t *size)
{
    for (*size = 1; *size < (uint32_t)cqe;)
        *size *= 2;
    return calloc(*size, sizeof(struct cq_entry));
}

struct rddp_cq *rddp_create_cq(struct rddp_context *context, int cqe, void *user, struct rddp_comp_channel *channel)
{
    struct rddp_cq *cq;
    struct cq_entry *ring;
    uint32_t size;
    int error = context_enter(context);

    if (error) {
        errno = -error;
        return NULL;
    }
    if (cqe < 1 || cqe > CQE_MAX || (channel && channel->context != context)) {
        errno = EINVAL;
        return NULL;
    }
    cq = calloc(1, sizeof(*cq));
    ring = allocate_ring(cqe, &size);
    if (!cq || !ring) {
        free(cq);
        free(ring);
        errno = ENOMEM;
        return NULL;
    }
    cq->context = context;
    cq->channel = channel;
    cq->user = user;
    cq_init(&cq->cq, ring, size, (uint32_t)cqe, queue_event);
    cq->cq.overran = async_cq_overran;
    context->objects++;
    member_add(&context->members, MEMBER_CQ, &cq->member);
    if (channel)
        channel->users++;
    return cq;
}

int rddp_resize_cq(struct rddp_cq *cq, int cqe)
{
    int error = context_enter(cq->context);
    struct cq_entry *ring, *old;
    uint32_t size;

    if (error)
        return error;
    if (cqe < 1 || cqe > CQE_MAX)
        return -EINVAL;
    ring = allocate_ring(cqe, &size);
    if (!ring)
        return -ENOMEM;
    old = cq_resize(&cq->cq, ring, size, (uint32_t)cqe);
    free(old ? old : ring);
    return old ? 0 : -EINVAL;
}

int rddp_stamp_cq(struct rddp_cq *cq)
{
    if (cq->cq.users)
        return -EBUSY;
    cq->cq.clock_ns = reactor_now_ns;
    return 0;
}

int rddp_destroy_cq(struct rddp_cq *cq)
{
    struct rddp_context *context = cq->context;
    int error = context_enter(context);

    if (error)
        return error;
    if (cq->cq.users)
        return -EBUSY;
    member_remove(&context->members, &cq->member);
    if (cq->channel) {
        reports_withdraw(&cq->channel->reports, &cq->reporter);
        cq->channel->users--;
        context->armed -= cq_is_armed(&cq->cq);
    }
    async_leave(&cq->async);
    context->objects--;
    free(cq->cq.ring);
    free(cq);
    return 0;
}

/* Chooses the loop that a poller drives: of those that bring it completions, one at a time and in turn. */
static struct loop *loop_to_drive(struct rddp_cq *cq)
{
    uint64_t loops = atomic_load_explicit(&cq->loops, memory_order_relaxed);
    uint32_t turn;

    if (!(loops & (loops - 1)))
        return &cq->context->loop[loops ? __builtin_ctzll(loops) : 0];
    turn = atomic_fetch_add_explicit(&cq->turns, 1, memory_order_relaxed) % (uint32_t)__builtin_popcountll(loops);
    while (turn--)
        loops &= loops - 1;
    return &cq->context->loop[__builtin_ctzll(loops)];
}

/* Without a thread none but polls asks the sockets, and a program that polls now and then may always find something.
 * Returns whether the clock has ticked since the answer was yes. */
static bool has_ticked(struct rddp_cq *cq)
{
    uint64_t now_us = cq->context->manual ? reactor_tick_us() : 0;

    if (atomic_load_explicit(&cq->tick_us, memory_order_relaxed) == now_us)
        return false;
    atomic_store_explicit(&cq->tick_us, now_us, memory_order_relaxed);
    return true;
}

/* A poller that finds nothing twice, and has posted nothing in between, waits for what it has posted: deferred
 * doorbells are rung. One that posts and polls in turn collects more. It asks the sockets only now and then, since that
 * costs as much as several posts. Returns whether it does now. */
static bool ring_deferred(struct rddp_cq *cq)
{
    uint64_t loops = atomic_load_explicit(&cq->loops, memory_order_relaxed);
    uint32_t posts = atomic_load_explicit(&cq->posts, memory_order_relaxed), passed;

    if (posts != atomic_load_explicit(&cq->seen, memory_order_relaxed)) {
        atomic_store_explicit(&cq->seen, posts, memory_order_relaxed);
        passed = atomic_load_explicit(&cq->passed, memory_order_relaxed) + 1;
        atomic_store_explicit(&cq->passed, passed, memory_order_relaxed);
        return passed % LOOK_EVERY == 0 || has_ticked(cq);
    }
    for (; loops; loops &= loops - 1) {
        struct loop *loop = &cq->context->loop[__builtin_ctzll(loops)];

        if (!batch_is_empty(&loop->batch))
            batch_ring(loop);
    }
    return true;
}

/* Who polls a CQ that is not armed goes on, or arms it before it sleeps. By the driver. */
static void note_poll(const struct rddp_cq *cq, struct loop *loop)
{
    if (!cq_is_armed(&cq->cq))
        atomic_store_explicit(&loop->polled.armings, atomic_load_explicit(&cq->context->armings, memory_order_relaxed),
                              memory_order_relaxed);
}

/* Without a thread, none but the application may look. */
static void end_if_cut(struct loop *loop)
{
    if (loop->reactor.is_cut && loop->context->manual && atomic_exchange(&loop->reactor.is_cut, false))
        (void)context_close_down(loop->context);
}

/* Whoever waits for the lock and pollers, who come again at once, take turns: none keeps the others out. Nor does a
 * thread that waits and does not run. A poller whose turn is refused says so, and loop_lock() steps aside. */
static bool loop_try_politely(struct loop *loop)
{
    bool is_turn = atomic_load_explicit(&loop->polled.is_turn, memory_order_relaxed);

    if (atomic_load_explicit(&loop->wanted, memory_order_relaxed) && !is_turn && ++loop->polled.kept_out % INSIST_EVERY)
        return false;
    if (!loop_trylock(loop)) {
        if (is_turn)
            atomic_store_explicit(&loop->polled.refused, &cancel_mine, memory_order_relaxed);
        return false;
    }
    if (is_turn)
        atomic_store_explicit(&loop->polled.is_turn, false, memory_order_relaxed);
    if (atomic_load_explicit(&loop->polled.refused, memory_order_relaxed))
        atomic_store_explicit(&loop->polled.refused, NULL, memory_order_relaxed);
    return true;
}

/* A poller that finds the CQ empty does the work itself, unless another thread has locked the loop or it is the turn of
 * one that waits to. */
int rddp_poll_cq(struct rddp_cq *cq, int n, struct rddp_wc *wc)
{
    int error = context_enter(cq->context);
    struct loop *loop;
    uint32_t got;

    if (error)
        return error;
    if (n < 0)
        return -EINVAL;
    atomic_store_explicit(&cq->polls, atomic_load_explicit(&cq->polls, memory_order_relaxed) + 1, memory_order_relaxed);
    got = cq_poll(&cq->cq, wc, (uint32_t)n);
    if (n && (got ? has_ticked(cq) : ring_deferred(cq)) && loop_try_politely(loop = loop_to_drive(cq))) {
        note_poll(cq, loop);
        loop_poll(loop);
        loop_unlock(loop);
        end_if_cut(loop);
        got += cq_poll(&cq->cq, wc + got, (uint32_t)n - got); /* fewer than `n`: the CQ was empty afterwards */
    }
    if (!got && n)
        pthread_testcancel(); /* nothing is held, and nothing lost */
    if (!got && n && cq->cq.overflowed) {
        got = cq_poll(&cq->cq, wc, (uint32_t)n); /* what was in front of the loss may have come since */
        return got ? (int)got : -EOVERFLOW;
    }
    return (int)got;
}

/* `armed` is counted up before the CQ is armed, because its event counts down. Parked threads have to work again: each
 * sees that there was one more. */
int rddp_req_notify_cq(struct rddp_cq *cq, bool solicited_only)
{
    struct rddp_context *context = cq->context;
    int error = cq->channel ? context_use(context) : -EINVAL;

    if (error)
        return error;
    context->armed++;
    context->armings++;
    if (!cq_arm(&cq->cq, solicited_only ? CQ_SOLICITED : CQ_NEXT))
        context->armed--;
    for (uint32_t i = 0; i < context->loops; i++)
        if (context->loop[i].parked)
            loop_wake(&context->loop[i]);
    return 0;
}

const char *rddp_wc_status_str(enum rddp_wc_status status)
{
    switch (status) {
    case RDDP_WC_SUCCESS:
        return "success";
    case RDDP_WC_LOC_LEN_ERR:
        return "local length error";
    case RDDP_WC_LOC_QP_OP_ERR:
        return "local operation error";
    case RDDP_WC_LOC_PROT_ERR:
        return "local protection error: a bad lkey or bounds";
    case RDDP_WC_WR_FLUSH_ERR:
        return "flushed: the connection ended first";
    case RDDP_WC_MW_BIND_ERR:
        return "a memory window that cannot be bound to that";
    case RDDP_WC_BAD_RESP_ERR:
        return "bad response";
    case RDDP_WC_REM_INV_REQ_ERR:
        return "remote invalid request";
    case RDDP_WC_REM_ACCESS_ERR:
        return "remote access error: a bad rkey, right or bounds";
    case RDDP_WC_REM_OP_ERR:
        return "remote operation error";
    case RDDP_WC_RETRY_EXC_ERR:
        return "no acknowledgement after all retries";
    case RDDP_WC_RNR_RETRY_EXC_ERR:
        return "the peer posted no receive, after all retries";
    case RDDP_WC_FATAL_ERR:
        return "fatal error";
    case RDDP_WC_GENERAL_ERR:
        return "general error";
    }
    return "unknown status";
}

const char *rddp_fault_str(uint32_t vendor_err)
{
    return fault_text(vendor_err < FAULTS ? (enum fault)vendor_err : FAULTS);
}
