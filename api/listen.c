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
#include "loop/descriptors.h"
#include "drive/inherit.h"
#include "drive/transports.h"
#include "tcp/io/packet_device.h"
#include "tcp/io/packet_name.h"
#include "tcp/io/tcp.h"

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
        reactor_rewatch(&listener->loop->reactor, watch, 0);
        reactor_set_timer(&listener->loop->reactor, &listener->pause, reactor_now_us() + PAUSE_US);
    }
}

static void accept_again(struct timer *timer, uint64_t now_us)
{
    struct rddp_listener *listener = container_of(timer, struct rddp_listener, pause);

    (void)now_us;
    reactor_rewatch(&listener->loop->reactor, &listener->watch, EPOLLIN);
}

static int start_listening(struct rddp_listener *listener)
{
    struct reactor *reactor = &listener->loop->reactor;
    int error = reactor_add_timer(reactor, &listener->pause);

    if (error)
        return error;
    if (listener->wire.device)
        listener->wire.device->users++;
    listener->channel->users++;
    error = reactor_watch(reactor, &listener->watch, EPOLLIN);
    if (error) {
        listener->channel->users--;
        reactor_forget_timer(reactor, &listener->pause);
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
                                       .loop = loop_next(channel->context),
                                       .channel = channel,
                                       .user = user,
                                       .pause.fire = accept_again,
                                       .watch = {.fd = -1, .ready = accept_some},
                                       .port = {.has_space = arrivals_have_space, .arrived = arrival_from_device}};
    rddp_wire_attr_init(&listener->wire);
    if (wire)
        listener->wire = *wire;
    if (packet_successor(listener->wire.device))
        listener->loop = listener->wire.device->loop;
    if (!wire_is_sane(&listener->wire) || listener->loop->context != channel->context)
        error = -EINVAL;
    else
        error = transport_check(channel->context, &listener->wire);
    if (!error)
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

    if (!error && device->loop->context != listener->context)
        error = -EINVAL;
    if (!error) {
        listener->loop = device->loop;
        loop_lock(listener->loop);
        error = packet_listen(device, &listener->port);
        loop_unlock(listener->loop);
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

/* Listens on what has a socket, or a name, of its own kind. */
static struct rddp_listener *begin_with(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length,
                                        const struct transport *transport)
{
    int error;

    loop_lock(listener->loop);
    error = transport->listen(listener, addr, length);
    if (!error)
        listener->channel->users++;
    loop_unlock(listener->loop);
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

    if (listener && transport_of(&listener->wire))
        return begin_with(listener, addr, length, transport_of(&listener->wire));
    if (listener && packet_is_own(listener->wire.device))
        return begin_on_device(listener, addr, length);
    return listener ? listen_begin(listener, tcp_listen(addr, length, backlog)) : NULL;
}

struct rddp_listener *rddp_listen_fd(struct rddp_event_channel *channel, int fd, const struct rddp_wire_attr *wire,
                                     void *user)
{
    struct rddp_listener *listener = NULL;
    int error = tcp_adopt(fd, true);

    if (!error && wire && !wire_is_stream(wire))
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

/* Rejects a request that will not be accepted. The caller is the driver and holds the endpoint. */
static void listen_turn_away(struct endpoint *endpoint)
{
    request_answered(endpoint);
    if (endpoint->life->state == CONN_WAIT_ANSWER && !endpoint->kind->reject(endpoint, NULL, 0, reactor_now_us()))
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    else
        endpoint_abort(endpoint);
}

/* The application has taken the request and answers it, although its listener goes away. The caller is the driver. */
static void request_outlives(struct endpoint *endpoint)
{
    struct rddp_context *context = endpoint->loop->context;

    pthread_mutex_lock(&context->lock);
    endpoint->request->channel = endpoint->listener->channel;
    endpoint->request->channel->users++;
    pthread_mutex_unlock(&context->lock);
    endpoint->listener->pending--;
    endpoint->listener = NULL;
}

static void leave_listener(struct endpoint *endpoint)
{
    endpoint_hold(endpoint);
    if (endpoint->request && !endpoint->request->withdrawn)
        request_outlives(endpoint);
    else
        listen_turn_away(endpoint);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

/* Separates what this loop has of a listener that goes away: rejects what the application has not seen. Adds the events
 * that it has not taken to *unseen. By the driver. */
static void listener_leave_loop(struct rddp_listener *listener, struct loop *loop, struct event_list *unseen)
{
    struct endpoint *next;
    struct arrival *arrival;

    while ((arrival = arrival_take(loop, listener))) {
        descriptor_close(arrival->fd);
        free(arrival);
    }
    event_withdraw(listener->channel, EVENT_OF_LISTENER, listener, unseen);
    for (struct event_node *node = unseen->first; node; node = node->next)
        node->event.request->withdrawn = true;
    for (struct endpoint *endpoint = loop->endpoints; endpoint; endpoint = next) {
        next = endpoint->next;
        if (endpoint->listener == listener)
            leave_listener(endpoint);
    }
}

static void stop_listening(struct rddp_listener *listener)
{
    const struct transport *transport = transport_of(&listener->wire);
    struct loop *loop = listener->loop;

    loop_lock(loop);
    if (transport) {
        transport->unlisten(listener);
    } else if (packet_is_own(listener->wire.device)) {
        packet_unlisten(listener->wire.device, &listener->port);
    } else {
        reactor_unwatch(&loop->reactor, &listener->watch);
        reactor_forget_timer(&loop->reactor, &listener->pause);
        if (listener->watch.fd >= 0)
            descriptor_close(listener->watch.fd);
        if (listener->wire.device)
            listener->wire.device->users--;
    }
    loop_unlock(loop);
}

int rddp_destroy_listener(struct rddp_listener *listener)
{
    struct rddp_context *context = listener->context;
    int error = context_enter(context);
    struct event_list unseen = {NULL, NULL};

    if (error)
        return error;
    member_remove(&context->members, &listener->member);
    stop_listening(listener);
    for (uint32_t i = 0; i < context->loops; i++) {
        loop_lock(&context->loop[i]);
        listener_leave_loop(listener, &context->loop[i], &unseen);
        loop_unlock(&context->loop[i]);
    }
    event_drop(&unseen);
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
    if (listener->sctp || listener->roce) {
        transport_of(&listener->wire)->addr(listener, addr);
        return 0;
    }
    if (packet_is_own(listener->wire.device)) {
        packet_name_to(&listener->port.name, addr);
        return 0;
    }
    return getsockname(listener->watch.fd, (struct sockaddr *)addr, &length) ? -errno : 0;
}

/* Where the events of the queue pair go that accepts this request. */
static struct rddp_event_channel *const *channel_for(const struct endpoint *endpoint, const struct rddp_conn_attr *attr)
{
    if (attr->channel)
        return &attr->channel;
    return endpoint->listener ? &endpoint->listener->channel : &endpoint->request->channel;
}

/* Accepts for `qp`, or rejects on an error. The caller is the driver and holds the endpoint. */
static int listen_answer(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    struct rddp_context *context = endpoint->loop->context;
    int error = -EINVAL;

    if (qp_may_join(qp, endpoint->request->wire) && qp->context == context &&
        (!attr->channel || attr->channel->context == context))
        error = qp_claim(qp, channel_for(endpoint, attr));
    if (!error) {
        error = endpoint->kind->accept(endpoint, qp, attr, reactor_now_us());
        if (error) {
            qp_unclaim(qp);
        } else {
            qp->ib.state = RDDP_IB_RTS;
            qp_join(qp, endpoint);
        }
    }
    if (error) {
        listen_turn_away(endpoint);
        return error;
    }
    request_answered(endpoint);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    return 0;
}

static void request_free(struct rddp_request *request)
{
    if (request->channel)
        request->channel->users--;
    free(request);
}

int rddp_accept(struct rddp_request *request, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    struct loop *loop = request->loop;
    struct rddp_conn_attr defaults;
    struct endpoint *endpoint;
    int error = context_enter(loop->context);

    if (error)
        return error;
    error = -ECONNABORTED;
    rddp_conn_attr_init(&defaults);
    loop_lock(loop);
    endpoint = request->endpoint;
    if (endpoint) {
        endpoint_hold(endpoint);
        error = listen_answer(endpoint, qp, attr ? attr : &defaults);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
    request_free(request);
    return error;
}

static int answer_question(struct endpoint *endpoint, const struct rddp_answer *answer)
{
    int error = endpoint->kind->answer ? endpoint->kind->answer(endpoint, answer, reactor_now_us()) : -EINVAL;

    if (error) {
        listen_turn_away(endpoint);
        return error;
    }
    request_answered(endpoint);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    return 0;
}

int rddp_answer(struct rddp_request *request, const struct rddp_answer *answer)
{
    struct loop *loop = request->loop;
    struct endpoint *endpoint;
    int error = context_enter(loop->context);

    if (error)
        return error;
    error = -ECONNABORTED;
    loop_lock(loop);
    endpoint = request->endpoint;
    if (endpoint) {
        endpoint_hold(endpoint);
        error = answer_question(endpoint, answer);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
    request_free(request);
    return error;
}

int rddp_reject(struct rddp_request *request, const void *private_data, uint16_t private_data_length)
{
    struct loop *loop = request->loop;
    struct endpoint *endpoint;
    int error = context_enter(loop->context);

    if (error)
        return error;
    loop_lock(loop);
    endpoint = request->endpoint;
    if (endpoint) {
        endpoint_hold(endpoint);
        request_answered(endpoint);
        error = endpoint->kind->reject(endpoint, private_data, private_data_length, reactor_now_us());
        if (error)
            endpoint_abort(endpoint);
        else
            endpoint_pump(endpoint, ENDPOINT_DRIVER);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
    request_free(request);
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
