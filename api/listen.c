/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listen.c - the passive side: listening, accepting and rejecting, for the application. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "drive/arrivals.h"
#include "endpoint/attr.h"
#include "api/connect.h"
#include "sctp/io/endpoint_sctp.h"
#include "drive/inherit.h"
#include "tcp/io/packet_device.h"
#include "tcp/io/packet_name.h"

enum {
    ACCEPTS = 64,      /* connections accepted in one round of the loop */
    PAUSE_US = 100000, /* the pause after a lack of descriptors */
};

/* --- arriving connections ----------------------------------------------------------------------------------- */

/* Accepts connections, by the driver of the listener's loop. */
static void accept_some(struct watch *watch, uint32_t events)
{
    struct rddp_listener *listener = container_of(watch, struct rddp_listener, watch);
    int fd = 0;

    (void)events;
    for (int i = 0; i < ACCEPTS && (fd = tcp_accept(watch->fd)) >= 0; i++)
        arrival_give(listener, fd);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
        context_log(listener->context, RDDP_LOG_ERROR, "cannot accept connections for now: %s", strerror(-fd));
        loop_rewatch(&listener->progress->loop, watch, 0);
        loop_set_timer(&listener->progress->loop, &listener->pause, loop_now_us() + PAUSE_US);
    }
}

static void accept_again(struct timer *timer, uint64_t now_us)
{
    struct rddp_listener *listener = container_of(timer, struct rddp_listener, pause);

    (void)now_us;
    loop_rewatch(&listener->progress->loop, &listener->watch, EPOLLIN);
}

static int start_listening(struct rddp_listener *listener)
{
    struct loop *loop = &listener->progress->loop;
    int error = loop_add_timer(loop, &listener->pause);

    if (error)
        return error;
    if (listener->wire.device)
        listener->wire.device->users++;
    listener->channel->users++;
    error = loop_watch(loop, &listener->watch, EPOLLIN);
    if (error) {
        listener->channel->users--;
        loop_forget_timer(loop, &listener->pause);
        if (listener->wire.device)
            listener->wire.device->users--;
    }
    return error;
}

/* Makes a listener with nothing to listen on. NULL: errno. */
static struct rddp_listener *new_listener(struct rddp_event_channel *channel, const struct rddp_wire_attr *wire,
                                          void *user)
{
    struct rddp_listener *listener = calloc(1, sizeof(*listener));
    int error;

    if (!listener)
        return NULL;
    *listener = (struct rddp_listener){.context = channel->context,
                                       .progress = progress_next(channel->context),
                                       .channel = channel,
                                       .user = user,
                                       .pause.fire = accept_again,
                                       .watch = {.fd = -1, .ready = accept_some},
                                       .port = {.has_space = arrivals_have_space, .arrived = arrival_from_device}};
    rddp_wire_attr_init(&listener->wire);
    if (wire)
        listener->wire = *wire;
    if (packet_successor(listener->wire.device))
        listener->progress = listener->wire.device->progress;
    if (!wire_is_sane(&listener->wire) || listener->progress->context != channel->context)
        error = -EINVAL;
    else
        error = context_use(channel->context);
    if (!error && packet_is_left(listener->wire.device))
        error = -ENODEV;
    if (!error)
        return listener;
    free(listener);
    errno = -error;
    return NULL;
}

/* Starts to listen on a descriptor; `fd` may be the negative errno of the call that should have made it. Closes it on
 * failure, and frees the listener. */
static struct rddp_listener *listen_begin(struct rddp_listener *listener, int fd)
{
    int error = fd < 0 ? fd : 0;

    listener->watch.fd = fd;
    if (!error)
        error = start_listening(listener);
    if (!error) {
        member_add(&listener->context->members, MEMBER_LISTENER, &listener->member);
        return listener;
    }
    if (fd >= 0)
        close(fd);
    free(listener);
    errno = -error;
    return NULL;
}

static struct rddp_listener *begin_on_device(struct rddp_listener *listener, const struct sockaddr *addr,
                                             socklen_t length)
{
    struct rddp_device *device = listener->wire.device;
    int error = packet_name_from(&listener->port.name, addr, length);

    if (!error && device->progress->context != listener->context)
        error = -EINVAL;
    if (!error) {
        listener->progress = device->progress;
        progress_take(listener->progress);
        error = packet_listen(device, &listener->port);
        progress_give(listener->progress);
    }
    if (!error) {
        listener->channel->users++;
        member_add(&listener->context->members, MEMBER_LISTENER, &listener->member);
        return listener;
    }
    free(listener);
    errno = -error;
    return NULL;
}

static struct rddp_listener *begin_sctp(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length)
{
    int error;

    progress_take(listener->progress);
    error = endpoint_sctp_listen(listener, addr, length);
    if (!error)
        listener->channel->users++;
    progress_give(listener->progress);
    if (!error) {
        member_add(&listener->context->members, MEMBER_LISTENER, &listener->member);
        return listener;
    }
    free(listener);
    errno = -error;
    return NULL;
}

struct rddp_listener *rddp_listen(struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                                  int backlog, const struct rddp_wire_attr *wire, void *user)
{
    struct rddp_listener *listener = new_listener(channel, wire, user);

    if (listener && listener->wire.wire == RDDP_WIRE_SCTP)
        return begin_sctp(listener, addr, length);
    if (listener && packet_is_own(listener->wire.device))
        return begin_on_device(listener, addr, length);
    return listener ? listen_begin(listener, tcp_listen(addr, length, backlog)) : NULL;
}

struct rddp_listener *rddp_listen_fd(struct rddp_event_channel *channel, int fd, const struct rddp_wire_attr *wire,
                                     void *user)
{
    struct rddp_listener *listener = NULL;
    int error = tcp_adopt(fd, true);

    if (!error && wire && wire->wire == RDDP_WIRE_SCTP)
        error = -EOPNOTSUPP;
    if (!error && wire && packet_is_own(wire->device))
        error = -EINVAL;
    if (!error && !(listener = new_listener(channel, wire, user)))
        error = -errno;
    if (!error)
        return listen_begin(listener, fd);
    close(fd);
    errno = -error;
    return NULL;
}

/* Rejects a request that nobody will accept. The caller is the driver and holds the endpoint. */
static void listen_turn_away(struct endpoint *endpoint)
{
    request_answered(endpoint);
    if (endpoint->life->state == CONN_WAIT_ANSWER && !endpoint->kind->reject(endpoint, NULL, 0, loop_now_us()))
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    else
        endpoint_abort(endpoint);
}

/* Rejects the requests that this loop has of a listener that goes away. By the driver. */
static void turn_away_all(struct progress *progress, struct rddp_listener *listener)
{
    struct endpoint *next;
    struct arrival *arrival;

    while ((arrival = arrival_take(progress, listener))) {
        close(arrival->fd);
        free(arrival);
    }
    for (struct endpoint *endpoint = progress->endpoints; endpoint; endpoint = next) {
        next = endpoint->next;
        if (endpoint->listener != listener)
            continue;
        endpoint_hold(endpoint);
        listen_turn_away(endpoint);
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
}

static void stop_listening(struct rddp_listener *listener)
{
    struct progress *progress = listener->progress;

    progress_take(progress);
    if (listener->wire.wire == RDDP_WIRE_SCTP) {
        endpoint_sctp_unlisten(listener);
    } else if (packet_is_own(listener->wire.device)) {
        packet_unlisten(listener->wire.device, &listener->port);
    } else {
        loop_unwatch(&progress->loop, &listener->watch);
        loop_forget_timer(&progress->loop, &listener->pause);
        if (listener->watch.fd >= 0)
            close(listener->watch.fd);
        if (listener->wire.device)
            listener->wire.device->users--;
    }
    progress_give(progress);
}

int rddp_destroy_listener(struct rddp_listener *listener)
{
    struct rddp_context *context = listener->context;
    int error = context_enter(context);

    if (error)
        return error;
    member_remove(&context->members, &listener->member);
    stop_listening(listener);
    for (uint32_t i = 0; i < context->loops; i++) {
        progress_take(&context->progress[i]);
        turn_away_all(&context->progress[i], listener);
        progress_give(&context->progress[i]);
    }
    event_forget(listener->channel, NULL, listener);
    listener->channel->users--;
    free(listener);
    return 0;
}

int rddp_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr)
{
    socklen_t length = sizeof(*addr);
    int error = context_enter(listener->context);

    if (error)
        return error;
    if (listener->sctp) {
        endpoint_sctp_addr(listener, addr);
        return 0;
    }
    if (packet_is_own(listener->wire.device)) {
        packet_name_to(&listener->port.name, addr);
        return 0;
    }
    return getsockname(listener->watch.fd, (struct sockaddr *)addr, &length) ? -errno : 0;
}

/* Accepts for `qp`, or rejects on an error. The caller is the driver and holds the endpoint. */
static int listen_answer(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    int error = -EINVAL;

    if (qp->context == endpoint->progress->context && qp_claim(qp, endpoint->listener->channel)) {
        error = endpoint->kind->accept(endpoint, qp, attr, loop_now_us());
        if (error)
            qp_unclaim(qp);
        else
            qp_join(qp, endpoint);
    }
    if (error) {
        listen_turn_away(endpoint);
        return error;
    }
    request_answered(endpoint);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    return 0;
}

int rddp_accept(struct rddp_request *request, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    struct progress *progress = request->progress;
    struct rddp_conn_attr defaults;
    struct endpoint *endpoint;
    int error = context_enter(progress->context);

    if (error)
        return error;
    error = -ECONNABORTED;
    rddp_conn_attr_init(&defaults);
    progress_take(progress);
    endpoint = request->endpoint;
    if (endpoint) {
        endpoint_hold(endpoint);
        error = listen_answer(endpoint, qp, attr ? attr : &defaults);
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
    progress_give(progress);
    free(request);
    return error;
}

int rddp_reject(struct rddp_request *request, const void *private_data, uint16_t private_data_length)
{
    struct progress *progress = request->progress;
    struct endpoint *endpoint;
    int error = context_enter(progress->context);

    if (error)
        return error;
    progress_take(progress);
    endpoint = request->endpoint;
    if (endpoint) {
        endpoint_hold(endpoint);
        request_answered(endpoint);
        error = endpoint->kind->reject(endpoint, private_data, private_data_length, loop_now_us());
        if (error)
            endpoint_abort(endpoint);
        else
            endpoint_pump(endpoint, ENDPOINT_DRIVER);
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
    progress_give(progress);
    free(request);
    return error;
}

int rddp_request_addr(const struct rddp_request *request, struct sockaddr_storage *peer)
{
    *peer = request->peer;
    return 0;
}

int rddp_request_local_addr(const struct rddp_request *request, struct sockaddr_storage *local)
{
    *local = request->local;
    return 0;
}
