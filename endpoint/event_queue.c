/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event_queue.c - adds connection events to their channel and withdraws them. The channel's lock guards the list; it is
 * a leaf: nothing else is locked while it is held. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/objects.h"

/* The node has space for the private data. */
static void event_fill(struct event_node *node, const struct rddp_event *event)
{
    node->event = *event;
    node->event.private_data = NULL;
    if (event->private_data_length) {
        memcpy(node->private_data, event->private_data, event->private_data_length);
        node->event.private_data = node->private_data;
    }
}

static struct event_node *event_copy(const struct rddp_event *event)
{
    struct event_node *node = calloc(1, sizeof(*node) + event->private_data_length);

    if (node)
        event_fill(node, event);
    return node;
}

/* Moves a list to the end of the channel's. */
static void event_append(struct rddp_event_channel *channel, const struct event_list *list)
{
    if (!list->first)
        return;
    pthread_mutex_lock(&channel->lock);
    if (channel->events.last)
        channel->events.last->next = list->first;
    else
        channel->events.first = list->first;
    channel->events.last = list->last;
    notifier_raise(&channel->notifier);
    pthread_mutex_unlock(&channel->lock);
}

bool event_post_own(struct rddp_event_channel *channel, const struct rddp_event *event)
{
    struct event_node *node = event_copy(event);

    if (node)
        event_append(channel, &(struct event_list){node, node});
    return node;
}

bool event_post(struct rddp_context *context, struct rddp_event_channel *const *channel, const struct rddp_event *event)
{
    struct event_node *node = event_copy(event);

    if (!node)
        return false;
    pthread_mutex_lock(&context->lock);
    event_append(*channel, &(struct event_list){node, node});
    pthread_mutex_unlock(&context->lock);
    return true;
}

enum { NODE_BEGIN, NODE_END };

int event_reserve(struct rddp_qp *qp)
{
    for (int i = NODE_BEGIN; i <= NODE_END; i++) {
        if (!qp->node[i])
            qp->node[i] = calloc(1, sizeof(*qp->node[i]) + (i == NODE_BEGIN ? EVENT_PRIVATE_MAX : 0));
        if (!qp->node[i])
            return -ENOMEM;
    }
    return 0;
}

void event_unreserve(struct rddp_qp *qp)
{
    for (int i = NODE_BEGIN; i <= NODE_END; i++) {
        free(qp->node[i]);
        qp->node[i] = NULL;
    }
}

bool event_has_begun(const struct rddp_qp *qp)
{
    return !qp->node[NODE_BEGIN];
}

/* A connection is reported to have begun, or that it will not, and then that it has ended. */
void event_post_qp(struct rddp_qp *qp, const struct rddp_event *event)
{
    struct event_node **place = &qp->node[event->type == RDDP_EVENT_DISCONNECTED ? NODE_END : NODE_BEGIN];
    struct event_node *node = *place;

    assert(node && event->private_data_length <= (place == qp->node ? EVENT_PRIVATE_MAX : 0));
    *place = NULL;
    event_fill(node, event);
    pthread_mutex_lock(&qp->context->lock);
    event_append(qp->channel, &(struct event_list){node, node});
    pthread_mutex_unlock(&qp->context->lock);
}

int event_reserve_resolution(struct rddp_resolution *resolution)
{
    resolution->node = calloc(1, sizeof(*resolution->node) + EVENT_PRIVATE_MAX);
    return resolution->node ? 0 : -ENOMEM;
}

void event_post_resolution(struct rddp_resolution *resolution, const struct rddp_event *event)
{
    struct event_node *node = resolution->node;

    assert(node && event->private_data_length <= EVENT_PRIVATE_MAX);
    resolution->node = NULL;
    event_fill(node, event);
    pthread_mutex_lock(&resolution->context->lock);
    event_append(resolution->channel, &(struct event_list){node, node});
    pthread_mutex_unlock(&resolution->context->lock);
}

static void list_add(struct event_list *list, struct event_node *node)
{
    node->next = NULL;
    if (list->last)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
}

static bool is_of(const struct rddp_event *event, enum event_owner kind, const void *owner)
{
    bool is_own = event->type >= RDDP_EVENT_USER;

    switch (kind) {
    case EVENT_OF_QP:
        return !is_own && event->qp == owner;
    case EVENT_OF_LISTENER:
        return !is_own && event->listener == owner;
    case EVENT_OF_RESOLUTION:
        return !is_own && event->resolution == owner;
    default:
        return is_own && event->user == owner;
    }
}

uint32_t event_withdraw(struct rddp_event_channel *channel, enum event_owner kind, const void *owner,
                        struct event_list *out)
{
    struct event_list stay = {NULL, NULL};
    struct event_node *node, *next;
    uint32_t count = 0;

    pthread_mutex_lock(&channel->lock);
    for (node = channel->events.first; node; node = next) {
        bool found = is_of(&node->event, kind, owner);

        next = node->next;
        list_add(found ? out : &stay, node);
        count += found;
    }
    channel->events = stay;
    if (!stay.first)
        notifier_lower(&channel->notifier);
    pthread_mutex_unlock(&channel->lock);
    return count;
}

uint32_t event_move(struct rddp_event_channel *from, struct rddp_event_channel *to, enum event_owner kind,
                    const void *owner)
{
    struct event_list list = {NULL, NULL};
    uint32_t count = event_withdraw(from, kind, owner, &list);

    event_append(to, &list);
    return count;
}

void event_drop(struct event_list *list)
{
    struct event_node *node;

    while ((node = list->first)) {
        list->first = node->next;
        if (node->event.type == RDDP_EVENT_CONNECT_REQUEST)
            free(node->event.request); /* the application has never seen it */
        free(node);
    }
    list->last = NULL;
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
        [RDDP_EVENT_RESOLVED] = "resolved",
    };

    if (type >= RDDP_EVENT_USER)
        return "event of the program";
    return (unsigned)type < countof(name) ? name[type] : "unknown event";
}
