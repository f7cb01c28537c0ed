/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.c - the program has closed the descriptors of the library, as one that becomes a daemon: connections end as in
 * a child of fork(), which leaves them to its parent, and nothing is closed or written.
 *
 * Here other threads may be in the library, so each step takes the locks of what it changes. */
#include "drive/closed.h"

#include "drive/fork.h"
#include "drive/leave.h"
#include "loop/descriptors.h"
#include "drive/transports.h"

static void forget_channels(struct rddp_context *context)
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;
    struct rddp_async_channel *async_channel;

    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    reports_forget_descriptors(&comp_channel->reports);
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    {
        pthread_mutex_lock(&event_channel->lock);
        notifier_forget_descriptors(&event_channel->notifier);
        pthread_mutex_unlock(&event_channel->lock);
    }
    MEMBERS_EACH(&context->members, MEMBER_ASYNC_CHANNEL, struct rddp_async_channel, async_channel)
    reports_forget_descriptors(&async_channel->reports);
}

static void end_connections(struct loop *loop)
{
    struct endpoint *endpoint;

    while ((endpoint = loop->endpoints)) {
        endpoint_hold(endpoint);
        endpoint_abandon(endpoint, FAULT_CLOSED);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    transports_leave(loop);
}

static void close_down_ours(struct rddp_context *context)
{
    context_log(context, RDDP_LOG_WARN, "the program has closed the library's descriptors: its connections are over");
    context->stopping = true;
    for (uint32_t i = 0; i < context->loops; i++) {
        loop_lock(&context->loop[i]);
        loop_forget_descriptors(&context->loop[i]);
    }
    transports_abandon(true);
    pthread_mutex_lock(&context->members.lock);
    leave_devices(context);
    leave_listeners(context);
    forget_channels(context);
    pthread_mutex_unlock(&context->members.lock);
    for (uint32_t i = context->loops; i-- > 0;) {
        end_connections(&context->loop[i]);
        loop_unlock(&context->loop[i]);
    }
    context->home = CONTEXT_CLOSED;
}

void context_close_left(struct rddp_context *context)
{
    pthread_mutex_lock(&context->members.lock);
    forget_channels(context);
    pthread_mutex_unlock(&context->members.lock);
    context->home = CONTEXT_CLOSED;
}

static void close_down(struct rddp_context *context)
{
    if (context->home == CONTEXT_OURS)
        close_down_ours(context);
    else if (leave_inherited(context) && context->home == CONTEXT_LEFT)
        context_close_left(context);
}

bool context_close_down(struct rddp_context *context)
{
    bool is_closed;

    fork_lock();
    if (context->home == CONTEXT_OURS && descriptors_are_lost())
        close_down_ours(context);
    is_closed = context->home == CONTEXT_CLOSED;
    fork_unlock();
    return is_closed;
}

/* No context uses what it has lost when `then` makes a new sentinel. */
static int close_down_and(int (*then)(void))
{
    int error;

    fork_lock();
    if (descriptors_are_lost())
        fork_each(close_down);
    error = then();
    fork_unlock();
    return error;
}

int context_take_descriptors(void)
{
    descriptors_on_loss(close_down_and);
    return close_down_and(descriptors_open);
}

void context_give_descriptors(void)
{
    fork_lock();
    descriptors_close();
    fork_unlock();
}
