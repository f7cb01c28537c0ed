/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event_queue.c - adds connection events to their channel and withdraws them. The channel's lock guards the list; it is
 * a leaf: nothing else is locked while it is held. */
#include <stdlib.h>
#include <string.h>

#include "endpoint/objects.h"

bool event_post(struct rddp_event_channel *channel, const struct rddp_event *event)
{
    struct event_node *node = calloc(1, sizeof(*node) + event->private_data_length);

    if (!node)
        return false;
    node->event = *event;
    node->event.private_data = NULL;
    if (event->private_data_length) {
        memcpy(node->private_data, event->private_data, event->private_data_length);
        node->event.private_data = node->private_data;
    }
    pthread_mutex_lock(&channel->lock);
    if (channel->last)
        channel->last->next = node;
    else
        channel->first = node;
    channel->last = node;
    notifier_raise(&channel->notifier);
    pthread_mutex_unlock(&channel->lock);
    return true;
}

void event_forget(struct rddp_event_channel *channel, const struct rddp_qp *qp, const struct rddp_listener *listener)
{
    struct event_node **link = &channel->first, *node, *last = NULL;

    pthread_mutex_lock(&channel->lock);
    while ((node = *link)) {
        if ((qp && node->event.qp == qp) || (listener && node->event.listener == listener)) {
            *link = node->next;
            free(node->event.request); /* the application has never seen it */
            free(node);
        } else {
            last = node;
            link = &node->next;
        }
    }
    channel->last = last;
    if (!channel->first)
        notifier_lower(&channel->notifier);
    pthread_mutex_unlock(&channel->lock);
}

const char *rddp_event_str(enum rddp_event_type type)
{
    static const char *const name[] = {
        [RDDP_EVENT_CONNECT_REQUEST] = "connect request",
        [RDDP_EVENT_ESTABLISHED] = "established",
        [RDDP_EVENT_REJECTED] = "rejected",
        [RDDP_EVENT_UNREACHABLE] = "unreachable",
        [RDDP_EVENT_CONNECT_ERROR] = "connect error",
        [RDDP_EVENT_DISCONNECTED] = "disconnected",
    };

    return (unsigned)type < countof(name) ? name[type] : "unknown event";
}
