/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inherit.c - what a child of fork() does with a context of its parent. At its first call it gives up what is the
 * parent's (leave.c); when it needs them it makes descriptors and threads of its own. */
#include "drive/inherit.h"

#include <errno.h>

#include "drive/closed.h"
#include "loop/descriptors.h"
#include "drive/fork.h"
#include "drive/leave.h"
#include "drive/loops.h"

int context_leave_parent(struct rddp_context *context)
{
    int error;

    fork_lock();
    error = leave_inherited(context) ? 0 : -EDEADLK;
    fork_unlock();
    return error;
}

/* --- making descriptors and threads ----------------------------------------------------------------------- */

static int renew_channels(struct rddp_context *context)
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;
    struct rddp_async_channel *async_channel;
    int error = 0;

    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    {
        if (!error)
            error = reports_renew(&comp_channel->reports);
    }
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    {
        pthread_mutex_lock(&event_channel->lock);
        if (!error)
            error = notifier_renew(&event_channel->notifier);
        pthread_mutex_unlock(&event_channel->lock);
    }
    MEMBERS_EACH(&context->members, MEMBER_ASYNC_CHANNEL, struct rddp_async_channel, async_channel)
    {
        if (!error)
            error = reports_renew(&async_channel->reports);
    }
    return error;
}

static int renew_loops(struct rddp_context *context)
{
    int error = 0;

    for (uint32_t i = 0; i < context->loops && !error; i++)
        error = loop_renew(&context->loop[i]);
    return error;
}

/* After a failure what was made is given up again, so that a later call can retry. */
static int renew(struct rddp_context *context)
{
    int error = descriptors_renew();

    if (!error)
        error = renew_channels(context);
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
    error = leave_inherited(context) ? 0 : -EDEADLK;
    if (!error && context->home == CONTEXT_LEFT && descriptors_are_lost())
        context_close_left(context);
    if (context->home == CONTEXT_CLOSED)
        error = -EBADF;
    if (!error && context->home == CONTEXT_LEFT) {
        pthread_mutex_lock(&context->members.lock);
        error = renew(context);
        pthread_mutex_unlock(&context->members.lock);
    }
    fork_unlock();
    return error;
}
