/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c - event channels, and taking events from them. */
#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"
#include "drive/inherit.h"

struct rddp_event_channel *rddp_create_event_channel(struct rddp_context *context)
{
    struct rddp_event_channel *channel = calloc(1, sizeof(*channel));
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
    member_add(&context->members, MEMBER_EVENT_CHANNEL, &channel->member);
    return channel;
}

/* Removes the oldest event. The caller holds channel->lock, or is the only user. */
static struct event_node *event_take(struct rddp_event_channel *channel)
{
    struct event_node *node = channel->first;

    if (!node)
        return NULL;
    channel->first = node->next;
    if (!channel->first) {
        channel->last = NULL;
        notifier_lower(&channel->notifier);
    }
    return node;
}

int rddp_destroy_event_channel(struct rddp_event_channel *channel)
{
    int error = context_enter(channel->context);
    struct event_node *node;

    if (error)
        return error;
    if (channel->users)
        return -EBUSY;
    member_remove(&channel->context->members, &channel->member);
    while ((node = event_take(channel)))
        free(node);
    channel->context->objects--;
    pthread_mutex_destroy(&channel->lock);
    notifier_fini(&channel->notifier);
    free(channel);
    return 0;
}

int rddp_event_channel_fd(const struct rddp_event_channel *channel)
{
    int error = context_use(channel->context);

    return error ? error : channel->notifier.read_fd;
}

int rddp_get_event(struct rddp_event_channel *channel, struct rddp_event **event)
{
    struct rddp_context *context = channel->context;
    struct event_node *node;
    int error = context_use(context);

    if (error)
        return error;
    for (;;) {
        pthread_mutex_lock(&channel->lock);
        node = event_take(channel);
        pthread_mutex_unlock(&channel->lock);
        if (node)
            break;
        error = notifier_wait(&channel->notifier, context->manual ? 0 : -1);
        if (error)
            return error;
        if (context->manual)
            rddp_progress(context, 1);
    }
    *event = &node->event;
    return 0;
}

void rddp_ack_event(struct rddp_event *event)
{
    free(container_of(event, struct event_node, event));
}
