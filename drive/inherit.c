/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inherit.c - what a child of fork() does with a context of its parent. At its first call it gives up what is the
 * parent's; when it needs them it makes descriptors and threads of its own.
 *
 * The child's descriptors are copies, but refer to the parent's objects: nothing here changes an epoll set, writes to
 * an eventfd or a pipe, or ends a stream. All functions run under fork.c's lock, and no other thread of the child can
 * use the context before they are done. */
#include "drive/inherit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "drive/doorbell_batch.h"
#include "sctp/io/endpoint_sctp.h"
#include "drive/fork.h"
#include "drive/loops.h"
#include "sctp/io/osctp_provider.h"
#include "sctp/io/usctp.h"

/* --- giving up what is the parent's ----------------------------------------------------------------------- */

static void leave_descriptors(struct rddp_context *context)
{
    for (uint32_t i = 0; i < context->loops; i++) {
        progress_leave(&context->progress[i]);
        bells_fini(&context->progress[i]);
    }
}

/* No thread is inside a lock any more, and none is waiting. */
static void leave_loops(struct rddp_context *context)
{
    memset(context->visits, 0, (context->loops + POSTERS) * sizeof(*context->visits));
    for (uint32_t i = 0; i < context->loops; i++) {
        struct progress *progress = &context->progress[i];

        progress->arrivals_lock = progress->bells.lock = (struct spin){false};
        progress->outs.spin = progress->carries.spin = (struct spin){false};
        progress->bells.waiting = progress->bells.taken = NULL;
        progress->bells.timed = false;
        progress->holding = 0;
        progress->hot = NULL;
        progress->stage.owner = NULL;
        progress->stage.from = progress->stage.octets = 0;
        progress->wanted = 0;
        progress->parked = false;
        progress->polled_us = 0;
    }
}

/* First counts what is posted, then what has completed: a place is taken by either (cq_leave()). */
static void leave_queues(struct rddp_context *context)
{
    struct rddp_srq *srq;
    struct rddp_qp *qp;
    struct rddp_cq *cq;

    MEMBERS_EACH(&context->members, MEMBER_SRQ, struct rddp_srq, srq)
    rq_leave(&srq->rq);
    MEMBERS_EACH(&context->members, MEMBER_QP, struct rddp_qp, qp)
    {
        qp->spin = (struct spin){false};
        qp->has_bell = false;
        qp->put_off = 0;
        qp_leave(&qp->qp);
    }
    context->armed = 0;
    MEMBERS_EACH(&context->members, MEMBER_CQ, struct rddp_cq, cq)
    {
        cq_leave(&cq->cq);
        context->armed += cq->cq.arm != CQ_QUIET;
    }
}

static void leave_channels(struct rddp_context *context)
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;

    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    notifier_leave(&comp_channel->notifier);
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    notifier_leave(&event_channel->notifier);
}

/* The bells were held by the forking thread: they start anew. */
static void leave_connections(struct progress *progress)
{
    struct endpoint *endpoint;

    progress_take(progress);
    while ((endpoint = progress->endpoints)) {
        endpoint->bell = (struct doorbell){0};
        endpoint_hold(endpoint);
        endpoint_abandon(endpoint);
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
    progress_give(progress);
}

static void leave_listeners(struct rddp_context *context)
{
    struct rddp_listener *listener;

    MEMBERS_EACH(&context->members, MEMBER_LISTENER, struct rddp_listener, listener)
    {
        if (listener->sctp) {
            endpoint_sctp_unlisten(listener);
            continue;
        }
        loop_set_timer(&listener->progress->loop, &listener->pause, UINT64_MAX);
        if (listener->watch.fd >= 0)
            close(listener->watch.fd);
        listener->watch.fd = -1;
    }
}

/* A thread that was connecting a queue pair, or posting to it after its end, does not exist here: undo or finish its
 * work. */
static void finish_for_others(struct rddp_context *context)
{
    struct rddp_qp *qp;

    MEMBERS_EACH(&context->members, MEMBER_QP, struct rddp_qp, qp)
    {
        if (qp->channel && qp->qp.state == QP_IDLE) {
            qp->channel->users--;
            qp->channel = NULL;
        }
        qp_settle_alone(qp);
    }
}

/* Before the connections, because our TCP would notify its peers. */
static void leave_devices(struct rddp_context *context)
{
    struct rddp_device *device;

    MEMBERS_EACH(&context->members, MEMBER_DEVICE, struct rddp_device, device)
    packet_leave(device);
}

/* Also frees links without an endpoint. */
static void leave_links(struct rddp_context *context)
{
    struct rddp_device *device;

    MEMBERS_EACH(&context->members, MEMBER_DEVICE, struct rddp_device, device)
    {
        progress_take(device->progress);
        packet_close(device);
        progress_give(device->progress);
    }
}

static void inherit_leave(struct rddp_context *context)
{
    leave_descriptors(context);
    osctp.abandon();
    usctp.abandon();
    leave_devices(context);
    leave_loops(context);
    leave_queues(context);
    leave_channels(context);
    leave_listeners(context);
    for (uint32_t i = 0; i < context->loops; i++)
        leave_connections(&context->progress[i]);
    leave_links(context);
    finish_for_others(context);
    context->stopping = false;
    context->home = CONTEXT_LEFT;
}

static int left(struct rddp_context *context)
{
    if (context->home == CONTEXT_INHERITED)
        inherit_leave(context);
    return context->home == CONTEXT_TORN ? -EDEADLK : 0;
}

int context_leave_parent(struct rddp_context *context)
{
    int error;

    fork_lock();
    error = left(context);
    fork_unlock();
    return error;
}

/* --- making descriptors and threads ----------------------------------------------------------------------- */

static int renew_channels(struct rddp_context *context)
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;
    int error = 0;

    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    {
        pthread_mutex_lock(&comp_channel->lock);
        if (!error)
            error = notifier_renew(&comp_channel->notifier);
        pthread_mutex_unlock(&comp_channel->lock);
    }
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    {
        pthread_mutex_lock(&event_channel->lock);
        if (!error)
            error = notifier_renew(&event_channel->notifier);
        pthread_mutex_unlock(&event_channel->lock);
    }
    return error;
}

static int renew_loops(struct rddp_context *context)
{
    int error = 0;

    for (uint32_t i = 0; i < context->loops && !error; i++) {
        error = progress_renew(&context->progress[i]);
        if (!error)
            error = bells_init(&context->progress[i]);
    }
    return error;
}

/* After a failure what was made is given up again, so that a later call can retry. */
static int renew(struct rddp_context *context)
{
    int error = renew_channels(context);

    if (!error)
        error = renew_loops(context);
    if (!error && !context->manual)
        error = loops_start(context);
    if (error)
        leave_descriptors(context);
    else
        context->home = CONTEXT_OURS;
    context->stopping = false;
    return error;
}

int context_make_ours(struct rddp_context *context)
{
    int error;

    fork_lock();
    error = left(context);
    if (!error && context->home == CONTEXT_LEFT) {
        pthread_mutex_lock(&context->members.lock);
        error = renew(context);
        pthread_mutex_unlock(&context->members.lock);
    }
    fork_unlock();
    return error;
}
