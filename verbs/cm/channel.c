/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.c - event channels: each is one of rddp, whose descriptor the application sees. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/cm/cm.h"

static pthread_cond_t event_given_back = PTHREAD_COND_INITIALIZER;

struct rddp_event_channel *cm_channel_new(void)
{
    return verbs_process() ? rddp_create_event_channel(verbs_process()) : NULL;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct cm_channel *channel = calloc(1, sizeof(*channel));

    if (!channel)
        return NULL;
    channel->rddp = cm_channel_new();
    if (!channel->rddp) {
        free(channel);
        return NULL;
    }
    channel->ibv.fd = rddp_event_channel_fd(channel->rddp);
    return &channel->ibv;
}

/* Those that were destroyed and cannot go yet: a thread waits there, or a request that came there is not answered. */
static struct cm_channel *leaving;

/* A program that ends often destroys its channel while a thread of it waits there. That thread must not wake up, and
 * has the channel without limit. */
void rdma_destroy_event_channel(struct rdma_event_channel *ibv)
{
    struct cm_channel *channel = cm_channel_of(ibv), **at = &leaving;

    verbs_enter();
    channel->next_leaving = leaving;
    leaving = channel;
    while ((channel = *at)) {
        if (channel->waiting || rddp_destroy_event_channel(channel->rddp)) {
            at = &channel->next_leaving;
            continue;
        }
        *at = channel->next_leaving;
        free(channel);
    }
    verbs_leave();
}

int cm_channel_post(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
    const struct rddp_event event = {.type = RDDP_EVENT_USER + (unsigned)type, .status = status, .user = id};

    return rddp_post_event(cm_channel_of(id->ibv.channel)->rddp, &event);
}

void cm_channel_settle(struct cm_id *id)
{
    while (id->taken != id->given_back)
        verbs_wait(&event_given_back);
}

static void cm_channel_give_back(struct cm_id *id)
{
    id->given_back++;
    pthread_cond_broadcast(&event_given_back);
}

static bool is_readable(int fd)
{
    struct pollfd at_once = {.fd = fd, .events = POLLIN};

    return poll(&at_once, 1, 0) > 0;
}

/* The descriptor is that of a socket: recv() minds O_NONBLOCK and SA_RESTART. */
static int wait_readable(int fd)
{
    char octet;

    return recv(fd, &octet, 1, MSG_PEEK) < 0 ? -errno : 0;
}

/* A thread was cancelled while it waited. */
static void wait_cancelled(void *arg)
{
    struct cm_channel *channel = arg;

    pthread_mutex_lock(&verbs_lock);
    channel->waiting--;
    pthread_mutex_unlock(&verbs_lock);
}

/* Waits without the lock until there may be an event. The caller holds the lock and cannot be cancelled, but here, if
 * its `cancel_state` was so. */
static int channel_wait(struct cm_channel *channel, int fd, int cancel_state)
{
    int error;

    channel->waiting++;
    pthread_mutex_unlock(&verbs_lock);
    pthread_cleanup_push(wait_cancelled, channel);
    pthread_setcancelstate(cancel_state, NULL);
    error = wait_readable(fd);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(false);
    pthread_mutex_lock(&verbs_lock);
    channel->waiting--;
    return error;
}

/* An event is taken with the lock held, so that no id or queue pair is destroyed between that and its translation; what
 * withdraws events has the lock, too, so rddp does not wait for one that is there. Returns 0, with NULL if another
 * thread was faster, or if the event is for an id that is gone. */
static int channel_take(struct cm_channel *channel, struct cm_event **out, int cancel_state)
{
    int fd = rddp_event_channel_fd(channel->rddp);
    int error = is_readable(fd) ? 0 : channel_wait(channel, fd, cancel_state);
    struct cm_event *to = NULL;
    struct rddp_event *event;

    *out = NULL;
    if (error || !is_readable(fd))
        return error;
    to = calloc(1, sizeof(*to)); /* first: what was taken must not get lost */
    error = to ? rddp_get_event(channel->rddp, &event) : -ENOMEM;
    if (!error && cm_event_translate(to, event)) {
        to->counted->taken++;
        *out = to;
    }
    if (!error)
        rddp_ack_event(event);
    if (!*out)
        free(to);
    return error;
}

int rdma_get_cm_event(struct rdma_event_channel *ibv, struct rdma_cm_event **out)
{
    struct cm_event *event = NULL;
    int error = 0, cancel_state;

    if (!ibv || !out)
        return cm_fail(EINVAL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&verbs_lock);
    while (!error && !event)
        error = channel_take(cm_channel_of(ibv), &event, cancel_state);
    pthread_mutex_unlock(&verbs_lock);
    pthread_setcancelstate(cancel_state, NULL);
    if (event)
        *out = &event->ibv;
    return cm_result(error);
}

int rdma_ack_cm_event(struct rdma_cm_event *ibv)
{
    struct cm_event *event = (struct cm_event *)ibv;

    if (!event)
        return cm_fail(EINVAL);
    verbs_enter();
    cm_channel_give_back(event->counted);
    verbs_leave();
    free(event);
    return 0;
}

/* Moves all events of the id, those that wait and those to come. */
static void channel_move(struct cm_id *id, struct rdma_event_channel *to)
{
    struct rddp_event_channel *rddp = cm_channel_of(to)->rddp;

    if (id->qp)
        rddp_migrate_qp(id->qp->rddp, rddp); /* refused by one that was never connected, and has no events */
    if (id->resolution)
        rddp_migrate_resolution(id->resolution, rddp);
    for (unsigned i = 0; i < CM_DEVICES; i++) {
        if (id->listener[i].rddp)
            rddp_migrate_listener(id->listener[i].rddp, rddp);
    }
    rddp_migrate_events(cm_channel_of(id->ibv.channel)->rddp, rddp, id);
    id->ibv.channel = to;
}

int rdma_migrate_id(struct rdma_cm_id *ibv, struct rdma_event_channel *channel)
{
    struct cm_id *id = cm_of(ibv);
    struct rdma_event_channel *old = ibv->channel;
    bool was_sync = id->is_sync, is_sync = !channel;

    if (is_sync && was_sync)
        return 0;
    if (is_sync && !(channel = rdma_create_event_channel()))
        return -1;
    if (was_sync && ibv->event) { /* the last call's */
        rdma_ack_cm_event(ibv->event);
        ibv->event = NULL;
    }
    verbs_enter();
    channel_move(id, channel);
    id->is_sync = is_sync;
    cm_channel_settle(id); /* what was taken from the old channel is given back before the call returns */
    verbs_leave();
    if (was_sync)
        rdma_destroy_event_channel(old);
    return 0;
}
