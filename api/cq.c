/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - completion queues and channels for the application. */
#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"
#include "drive/doorbell_batch.h"
#include "drive/inherit.h"

enum { CQE_MAX = 1 << 20 };

struct rddp_comp_channel *rddp_create_comp_channel(struct rddp_context *context)
{
    struct rddp_comp_channel *channel = calloc(1, sizeof(*channel));
    int error;

    if (!channel)
        return NULL;
    channel->context = context;
    error = context_enter(context);
    if (!error)
        error = notifier_init(&channel->notifier);
    if (error) {
        free(channel);
        errno = -error;
        return NULL;
    }
    pthread_mutex_init(&channel->lock, NULL);
    context->objects++;
    member_add(&context->members, MEMBER_COMP_CHANNEL, &channel->member);
    return channel;
}

int rddp_destroy_comp_channel(struct rddp_comp_channel *channel)
{
    int error = context_enter(channel->context);

    if (error)
        return error;
    if (channel->users)
        return -EBUSY;
    member_remove(&channel->context->members, &channel->member);
    channel->context->objects--;
    pthread_mutex_destroy(&channel->lock);
    notifier_fini(&channel->notifier);
    free(channel);
    return 0;
}

int rddp_comp_channel_fd(const struct rddp_comp_channel *channel)
{
    int error = context_use(channel->context);

    return error ? error : channel->notifier.read_fd;
}

static void append_event(struct rddp_comp_channel *channel, struct rddp_cq *cq)
{
    cq->has_event = true;
    cq->next_event = NULL;
    if (channel->last)
        channel->last->next_event = cq;
    else
        channel->first = cq;
    channel->last = cq;
    notifier_raise(&channel->notifier);
}

/* The engine calls this when an armed CQ gets a completion, without the CQ's spinlocks. The caller may hold a token, a
 * doorbell or context->lock: all of them stand before the channel's lock. */
static void queue_event(struct cq *engine_cq)
{
    struct rddp_cq *cq = container_of(engine_cq, struct rddp_cq, cq);
    struct rddp_comp_channel *channel = cq->channel;

    cq->context->armed--;
    pthread_mutex_lock(&channel->lock);
    if (!cq->has_event)
        append_event(channel, cq);
    pthread_mutex_unlock(&channel->lock);
}

static struct rddp_cq *take_event(struct rddp_comp_channel *channel)
{
    struct rddp_cq *cq = channel->first;

    if (!cq)
        return NULL;
    channel->first = cq->next_event;
    if (!channel->first) {
        channel->last = NULL;
        notifier_lower(&channel->notifier);
    }
    cq->has_event = false;
    return cq;
}

/* Removes the undelivered event of a CQ that is being destroyed. Under channel->lock. */
static void withdraw_event(struct rddp_cq *cq)
{
    struct rddp_comp_channel *channel = cq->channel;
    struct rddp_cq *before = NULL;

    for (struct rddp_cq *at = channel->first; at != cq; at = at->next_event)
        before = at;
    if (before)
        before->next_event = cq->next_event;
    else
        channel->first = cq->next_event;
    if (channel->last == cq)
        channel->last = before;
    if (!channel->first)
        notifier_lower(&channel->notifier);
}

int rddp_get_cq_event(struct rddp_comp_channel *channel, struct rddp_cq **cq, void **user)
{
    struct rddp_context *context = channel->context;
    struct rddp_cq *taken;
    int error = context_use(context);

    if (error)
        return error;
    for (;;) {
        pthread_mutex_lock(&channel->lock);
        taken = take_event(channel);
        pthread_mutex_unlock(&channel->lock);
        if (taken)
            break;
        error = notifier_wait(&channel->notifier, context->manual ? 0 : -1);
        if (error)
            return error;
        if (context->manual)
            rddp_progress(context, 1);
    }
    *cq = taken;
    if (user)
        *user = taken->user;
    return 0;
}

struct rddp_cq *rddp_create_cq(struct rddp_context *context, int cqe, void *user, struct rddp_comp_channel *channel)
{
    struct rddp_cq *cq;
    struct cq_entry *ring;
    uint32_t size = 1;
    int error = context_enter(context);

    if (error) {
        errno = -error;
        return NULL;
    }
    if (cqe < 1 || cqe > CQE_MAX || (channel && channel->context != context)) {
        errno = EINVAL;
        return NULL;
    }
    while (size < (uint32_t)cqe)
        size *= 2;
    cq = calloc(1, sizeof(*cq));
    ring = calloc(size, sizeof(*ring));
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
    context->objects++;
    member_add(&context->members, MEMBER_CQ, &cq->member);
    if (channel)
        channel->users++;
    return cq;
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
        pthread_mutex_lock(&cq->channel->lock);
        if (cq->has_event)
            withdraw_event(cq);
        pthread_mutex_unlock(&cq->channel->lock);
        cq->channel->users--;
        context->armed -= cq->cq.arm != CQ_QUIET;
    }
    context->objects--;
    free(cq->cq.ring);
    free(cq);
    return 0;
}

/* Chooses the loop that a poller drives: of those that bring it completions, one at a time and in turn. */
static struct progress *loop_to_drive(struct rddp_cq *cq)
{
    uint64_t loops = atomic_load_explicit(&cq->loops, memory_order_relaxed);
    uint32_t turn;

    if (!(loops & (loops - 1)))
        return &cq->context->progress[loops ? __builtin_ctzll(loops) : 0];
    turn = atomic_fetch_add_explicit(&cq->turns, 1, memory_order_relaxed) % (uint32_t)__builtin_popcountll(loops);
    while (turn--)
        loops &= loops - 1;
    return &cq->context->progress[__builtin_ctzll(loops)];
}

/* A poller that has nothing left to poll waits for what it has posted, so the bells that were put off are rung. */
static void ring_bells(struct rddp_cq *cq)
{
    uint64_t loops = atomic_load_explicit(&cq->loops, memory_order_relaxed);

    for (; loops; loops &= loops - 1)
        bells_ring(&cq->context->progress[__builtin_ctzll(loops)]);
}

/* A poller that finds the CQ empty does the work itself, unless another thread has the token. */
int rddp_poll_cq(struct rddp_cq *cq, int n, struct rddp_wc *wc)
{
    int error = context_enter(cq->context);
    struct progress *progress;
    uint32_t got;

    if (error)
        return error;
    if (n < 0)
        return -EINVAL;
    got = cq_poll(&cq->cq, wc, (uint32_t)n);
    if (got < (uint32_t)n)
        ring_bells(cq);
    if (!got && n && progress_try(progress = loop_to_drive(cq))) {
        progress_poll(progress);
        progress_give(progress);
        got = cq_poll(&cq->cq, wc, (uint32_t)n);
    }
    if (!got && n)
        pthread_testcancel(); /* nothing is held, and nothing lost */
    if (!got && n && cq->cq.overflowed)
        return -EOVERFLOW;
    return (int)got;
}

/* `armed` is counted up before the CQ is armed, because its event counts down. Parked threads have to work again. */
int rddp_req_notify_cq(struct rddp_cq *cq, bool solicited_only)
{
    struct rddp_context *context = cq->context;
    int error = cq->channel ? context_use(context) : -EINVAL;

    if (error)
        return error;
    context->armed++;
    if (!cq_arm(&cq->cq, solicited_only ? CQ_SOLICITED : CQ_NEXT))
        context->armed--;
    for (uint32_t i = 0; i < context->loops; i++)
        if (context->progress[i].parked)
            progress_wake(&context->progress[i]);
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
    case RDDP_WC_REM_INV_REQ_ERR:
        return "remote invalid request";
    case RDDP_WC_REM_ACCESS_ERR:
        return "remote access error: a bad rkey, right or bounds";
    case RDDP_WC_REM_OP_ERR:
        return "remote operation error";
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
