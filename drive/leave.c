/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* leave.c - a context gives up what is the parent's, in a child of fork().
 *
 * The child's descriptors are copies, but refer to the parent's objects: nothing here changes an epoll set, writes to
 * an eventfd or a pipe, or ends a stream. All functions run under fork.c's lock, and no other thread of the child can
 * use the context before they are done. */
#include "drive/leave.h"

#include <string.h>

#include "drive/doorbell_batch.h"
#include "loop/descriptors.h"
#include "drive/transports.h"
#include "tcp/io/packet_device.h"

void leave_descriptors(struct rddp_context *context)
{
    for (uint32_t i = 0; i < context->loops; i++)
        loop_leave(&context->loop[i]);
}

/* No thread is inside a lock any more, and none is waiting. */
static void leave_loops(struct rddp_context *context)
{
    memset(context->readers, 0, (context->loops + POSTERS) * sizeof(*context->readers));
    for (uint32_t i = 0; i < context->loops; i++) {
        struct loop *loop = &context->loop[i];

        loop->arrivals_lock = (struct spin){false};
        loop->outs.spin = loop->carries.spin = (struct spin){false};
        batch_init(loop);
        loop->holding = 0;
        loop->hot = NULL;
        loop->resting = NULL;
        loop->owing = NULL;
        loop->stage.owner = NULL;
        loop->stage.from = loop->stage.octets = 0;
        loop->wanted = 0;
        loop->parked = false;
        loop->receives_posted = loop->spans_wanted = false;
        loop->polled.us = 0;
        loop->polled.lasts = false;
        loop->polled.refused = NULL;
    }
}

/* First counts what is posted, then what has completed: a place is taken by either (cq_leave()). */
static void leave_queues(struct rddp_context *context)
{
    struct rddp_srq *srq;
    struct rddp_qp *qp;
    struct rddp_cq *cq;

    MEMBERS_EACH(&context->members, MEMBER_SRQ, struct rddp_srq, srq)
    {
        rq_leave(&srq->rq);
        reports_forget_taken(&srq->async.reporter);
    }
    MEMBERS_EACH(&context->members, MEMBER_QP, struct rddp_qp, qp)
    {
        qp->spin = (struct spin){false};
        qp->is_in_batch = false;
        qp->deferred = 0;
        qp_leave(&qp->qp);
        reports_forget_taken(&qp->async.reporter);
    }
    context->armed = 0;
    MEMBERS_EACH(&context->members, MEMBER_CQ, struct rddp_cq, cq)
    {
        cq_leave(&cq->cq);
        reports_forget_taken(&cq->reporter);
        reports_forget_taken(&cq->async.reporter);
        context->armed += cq_is_armed(&cq->cq);
    }
}

static void leave_channels(struct rddp_context *context)
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;
    struct rddp_async_channel *async_channel;

    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    reports_leave(&comp_channel->reports);
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    notifier_leave(&event_channel->notifier);
    MEMBERS_EACH(&context->members, MEMBER_ASYNC_CHANNEL, struct rddp_async_channel, async_channel)
    reports_leave(&async_channel->reports);
}

/* The doorbells were held by the forking thread: they are initialised again. */
static void leave_connections(struct loop *loop)
{
    struct endpoint *endpoint;

    loop_lock(loop);
    while ((endpoint = loop->endpoints)) {
        endpoint->bell = (struct doorbell){0};
        endpoint_hold(endpoint);
        endpoint_abandon(endpoint, FAULT_FORKED);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
}

void leave_listeners(struct rddp_context *context)
{
    struct rddp_listener *listener;

    MEMBERS_EACH(&context->members, MEMBER_LISTENER, struct rddp_listener, listener)
    {
        const struct transport *transport = transport_of(&listener->wire);

        if (transport) {
            transport->unlisten(listener);
            continue;
        }
        reactor_set_timer(&listener->loop->reactor, &listener->pause, UINT64_MAX);
        if (listener->watch.fd >= 0)
            descriptor_close(listener->watch.fd);
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
        if (qp->is_joining)
            qp_unclaim(qp);
        qp_settle_alone(qp);
    }
}

/* Before the connections, because our TCP would notify its peers. */
void leave_devices(struct rddp_context *context)
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
        loop_lock(device->loop);
        packet_close(device);
        loop_unlock(device->loop);
    }
}

static void leave_parent(struct rddp_context *context)
{
    leave_descriptors(context);
    transports_abandon(false);
    leave_devices(context);
    leave_loops(context);
    leave_queues(context);
    leave_channels(context);
    leave_listeners(context);
    for (uint32_t i = 0; i < context->loops; i++) {
        leave_connections(&context->loop[i]);
        transports_leave(&context->loop[i]);
    }
    leave_links(context);
    finish_for_others(context);
    context->stopping = false;
    context->home = CONTEXT_LEFT;
}

bool leave_inherited(struct rddp_context *context)
{
    if (context->home == CONTEXT_INHERITED)
        leave_parent(context);
    return context->home != CONTEXT_TORN;
}
