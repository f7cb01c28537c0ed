/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c - event channels, and taking events from them. */
#include <errno.h>
#include <stdlib.h>

#include "api/channel.h"
#include "api/late_event.h"
#include "endpoint/objects.h"
#include "drive/await.h"
#include "drive/inherit.h"

struct rddp_event_channel *rddp_create_event_channel(struct rddp_context *context)
{
    struct rddp_event_channel *channel = channel_new(context, sizeof(*channel));

    if (!channel)
        return NULL;
    channel->context = context;
    pthread_mutex_init(&channel->lock, NULL);
    return channel_complete(channel, context, MEMBER_EVENT_CHANNEL, &channel->member,
                            notifier_init(&channel->notifier));
}

/* Removes the oldest event. The caller holds channel->lock, or is the only user. */
static struct event_node *event_take(struct rddp_event_channel *channel)
{
    struct event_node *node = channel->events.first;

    if (!node)
        return NULL;
    channel->events.first = node->next;
    if (!channel->events.first) {
        channel->events.last = NULL;
        notifier_lower(&channel->notifier);
    }
    if (node->event.type == RDDP_EVENT_CONNECT_REQUEST)
        node->event.listener->untaken--;
    return node;
}

int rddp_destroy_event_channel(struct rddp_event_channel *channel)
{
    int error = context_enter(channel->context);

    if (!error && !channel->users)
        late_events_drop(channel, true, NULL); /* first: the context may be closed once the channel has left it */
    if (!error)
        error = channel_leave(channel->context, &channel->member, channel->users);
    if (error)
        return error;
    event_drop(&channel->events);
    pthread_mutex_destroy(&channel->lock);
    notifier_fini(&channel->notifier);
    free(channel);
    return 0;
}

int rddp_event_channel_fd(const struct rddp_event_channel *channel)
{
    return channel_fd(channel->context, &channel->notifier);
}

int rddp_get_event(struct rddp_event_channel *channel, struct rddp_event **event)
{
    struct event_node *node = NULL;
    int error = context_enter(channel->context);

    while (!error && !node) {
        pthread_mutex_lock(&channel->lock);
        node = event_take(channel);
        pthread_mutex_unlock(&channel->lock);
        if (!node)
            error = context_use(channel->context);
        if (!node && !error)
            error = context_await(channel->context, &channel->notifier);
    }
    if (!error)
        *event = &node->event;
    return error;
}

void rddp_ack_event(struct rddp_event *event)
{
    free(container_of(event, struct event_node, event));
}

/* --- where events go ------------------------------------------------------------------------------------------- */

/* Moves what waits under the lock under which others read *where: nothing comes in between. */
static int migrate(struct rddp_context *context, struct rddp_event_channel **where, enum event_owner kind,
                   const void *owner, struct rddp_event_channel *to)
{
    int error = context_enter(context);

    if (error)
        return error;
    if (to->context != context)
        return -EINVAL;
    pthread_mutex_lock(&context->lock);
    if (!*where) {
        error = -EINVAL;
    } else if (*where != to) {
        event_move(*where, to, kind, owner);
        to->users++;
        (*where)->users--;
        *where = to;
    }
    pthread_mutex_unlock(&context->lock);
    return error;
}

int rddp_migrate_qp(struct rddp_qp *qp, struct rddp_event_channel *channel)
{
    return migrate(qp->context, &qp->channel, EVENT_OF_QP, qp, channel);
}

int rddp_migrate_listener(struct rddp_listener *listener, struct rddp_event_channel *channel)
{
    return migrate(listener->context, &listener->channel, EVENT_OF_LISTENER, listener, channel);
}

int rddp_migrate_resolution(struct rddp_resolution *resolution, struct rddp_event_channel *channel)
{
    return migrate(resolution->context, &resolution->channel, EVENT_OF_RESOLUTION, resolution, channel);
}

/* --- events of the program's own ------------------------------------------------------------------------------- */

int rddp_post_event(struct rddp_event_channel *channel, const struct rddp_event *event)
{
    int error = context_enter(channel->context);

    if (error)
        return error;
    if (event->type < RDDP_EVENT_USER)
        return -EINVAL;
    return event_post_own(channel, event) ? 0 : -ENOMEM;
}

int rddp_withdraw_events(struct rddp_event_channel *channel, const void *user)
{
    struct event_list list = {NULL, NULL};
    int count = context_enter(channel->context);

    if (count)
        return count;
    count = (int)late_events_drop(channel, false, user); /* first: what comes meanwhile is in the channel */
    count += (int)event_withdraw(channel, EVENT_OWN, user, &list);
    event_drop(&list);
    return count;
}

int rddp_migrate_events(struct rddp_event_channel *from, struct rddp_event_channel *to, const void *user)
{
    int count = context_enter(from->context);

    if (count)
        return count;
    if (to->context != from->context)
        return -EINVAL;
    count = (int)late_events_move(from, to, user);
    return count + (int)event_move(from, to, EVENT_OWN, user);
}
