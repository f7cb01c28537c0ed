/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* late_event.c - a timer of the first loop for each event that is to come later. The lock of that loop guards them. */
#include "api/late_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "drive/inherit.h"

struct late_event {
    struct timer timer;
    struct rddp_event_channel *channel;
    struct late_event *next, **before; /* in rddp_context.late */
    struct rddp_event event;
    uint8_t private_data[]; /* event.private_data points to it */
};

static void late_event_free(struct late_event *late)
{
    struct rddp_context *context = late->channel->context;

    reactor_forget_timer(&context->loop->reactor, &late->timer);
    *late->before = late->next;
    if (late->next)
        late->next->before = late->before;
    atomic_fetch_sub(&context->late_count, 1);
    free(late);
}

/* Without memory it comes as soon as there is some. */
static void late_event_on_time(struct timer *timer, uint64_t now_us)
{
    enum { AGAIN_US = 100000 };
    struct late_event *late = container_of(timer, struct late_event, timer);

    if (event_post_own(late->channel, &late->event))
        late_event_free(late);
    else
        reactor_set_timer(&late->channel->context->loop->reactor, timer, now_us + AGAIN_US);
}

static struct late_event *late_event_new(struct rddp_event_channel *channel, const struct rddp_event *event)
{
    struct late_event *late = calloc(1, sizeof(*late) + event->private_data_length);

    if (!late)
        return NULL;
    late->timer.fire = late_event_on_time;
    late->channel = channel;
    late->event = *event;
    late->event.private_data = late->private_data;
    if (event->private_data_length)
        memcpy(late->private_data, event->private_data, event->private_data_length);
    return late;
}

int rddp_post_event_later(struct rddp_event_channel *channel, const struct rddp_event *event, uint32_t delay_ms)
{
    struct rddp_context *context = channel->context;
    struct loop *loop = context->loop;
    int error = context_use(context);
    struct late_event *late;

    if (error)
        return error;
    if (event->type < RDDP_EVENT_USER)
        return -EINVAL;
    late = late_event_new(channel, event);
    if (!late)
        return -ENOMEM;
    loop_lock(loop);
    error = reactor_add_timer(&loop->reactor, &late->timer);
    if (error) {
        free(late);
    } else {
        late->next = context->late;
        late->before = &context->late;
        if (late->next)
            late->next->before = &late->next;
        context->late = late;
        atomic_fetch_add(&context->late_count, 1);
        reactor_set_timer(&loop->reactor, &late->timer, reactor_now_us() + (uint64_t)delay_ms * 1000);
    }
    loop_unlock(loop);
    return error;
}

uint32_t late_events_drop(struct rddp_event_channel *channel, bool all, const void *user)
{
    struct rddp_context *context = channel->context;
    struct late_event *late, *next;
    uint32_t count = 0;

    if (!atomic_load(&context->late_count))
        return 0;
    loop_lock(context->loop);
    for (late = context->late; late; late = next) {
        next = late->next;
        if (late->channel != channel || (!all && late->event.user != user))
            continue;
        late_event_free(late);
        count++;
    }
    loop_unlock(context->loop);
    return count;
}

uint32_t late_events_move(struct rddp_event_channel *from, struct rddp_event_channel *to, const void *user)
{
    struct rddp_context *context = from->context;
    uint32_t count = 0;

    if (!atomic_load(&context->late_count))
        return 0;
    loop_lock(context->loop);
    for (struct late_event *late = context->late; late; late = late->next) {
        if (late->channel != from || late->event.user != user)
            continue;
        late->channel = to;
        count++;
    }
    loop_unlock(context->loop);
    return count;
}
