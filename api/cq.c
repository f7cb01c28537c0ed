/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq.c - completion queues and channels for the application. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "api/api.h"

enum { CQE_MAX = 1 << 20 };

struct rddp_comp_channel *rddp_create_comp_channel(struct rddp_context *context)
{
    struct rddp_comp_channel *channel = calloc(1, sizeof(*channel));
    int error;

    if (!channel)
        return NULL;
    channel->context = context;
    error = notifier_init(&channel->notifier);
    if (error) {
        free(channel);
        errno = -error;
        return NULL;
    }
    lock(context);
    context->objects++;
    unlock(context);
    return channel;
}

int rddp_destroy_comp_channel(struct rddp_comp_channel *channel)
{
    struct rddp_context *context = channel->context;

    lock(context);
    if (channel->users) {
        unlock(context);
        return -EBUSY;
    }
    context->objects--;
    unlock(context);
    notifier_fini(&channel->notifier);
    free(channel);
    return 0;
}

int rddp_comp_channel_fd(const struct rddp_comp_channel *channel)
{
    return channel->notifier.read_fd;
}

/* The engine's word that an armed CQ has something. Under the lock. */
static void queue_event(struct cq *engine_cq)
{
    struct rddp_cq *cq = (struct rddp_cq *)((char *)engine_cq - offsetof(struct rddp_cq, cq));
    struct rddp_comp_channel *channel = cq->channel;

    cq->context->armed--;
    if (cq->has_event)
        return;
    cq->has_event = true;
    cq->next_event = NULL;
    if (channel->last)
        channel->last->next_event = cq;
    else
        channel->first = cq;
    channel->last = cq;
    notifier_raise(&channel->notifier);
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

/* A CQ that is being destroyed takes its undelivered event with it. */
static void withdraw_event(struct rddp_cq *cq)
{
    struct rddp_comp_channel *channel = cq->channel;
    struct rddp_cq *before = NULL;

    if (!cq->has_event)
        return;
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
    int error;

    for (;;) {
        lock(context);
        taken = take_event(channel);
        unlock(context);
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

    if (cqe < 1 || cqe > CQE_MAX) {
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
    lock(context);
    context->objects++;
    if (channel)
        channel->users++;
    unlock(context);
    return cq;
}

int rddp_destroy_cq(struct rddp_cq *cq)
{
    struct rddp_context *context = cq->context;

    lock(context);
    if (cq->cq.users) {
        unlock(context);
        return -EBUSY;
    }
    if (cq->channel) {
        withdraw_event(cq);
        cq->channel->users--;
        context->armed -= cq->cq.arm != CQ_QUIET;
    }
    context->objects--;
    unlock(context);
    free(cq->cq.ring);
    free(cq);
    return 0;
}

/* A poller that finds nothing does the work itself, unless somebody else is at it. */
int rddp_poll_cq(struct rddp_cq *cq, int n, struct rddp_wc *wc)
{
    struct rddp_context *context = cq->context;
    uint32_t got;

    if (n < 0)
        return -EINVAL;
    got = cq_poll(&cq->cq, wc, (uint32_t)n);
    if (!got && n && !pthread_mutex_trylock(&context->lock)) {
        context_work(context);
        unlock(context);
        got = cq_poll(&cq->cq, wc, (uint32_t)n);
    }
    if (!got && n && cq->cq.overflowed)
        return -EOVERFLOW;
    return (int)got;
}

int rddp_req_notify_cq(struct rddp_cq *cq, bool solicited_only)
{
    struct rddp_context *context = cq->context;

    if (!cq->channel)
        return -EINVAL;
    lock(context);
    context->armed += cq_arm(&cq->cq, solicited_only ? CQ_SOLICITED : CQ_NEXT);
    pthread_cond_signal(&context->unpark);
    unlock(context);
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
