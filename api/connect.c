/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - listening, connecting, accepting, rejecting and closing, for the application. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/api.h"

enum {
    ACCEPTS = 64,            /* new connections in one round of the loop */
    LISTENER_PENDING = 4096, /* connections of one listener that are not answered yet */
    PAUSE_US = 100000,       /* out of descriptors: try again then */
};

/* --- attributes ------------------------------------------------------------------------------------------------ */

void rddp_wire_attr_init(struct rddp_wire_attr *attr)
{
    *attr = (struct rddp_wire_attr){
        .wire = RDDP_WIRE_IWARP,
        .crc = true,
        .mpa_revision = 2,
        .rtr = RDDP_RTR_SEND | RDDP_RTR_WRITE | RDDP_RTR_READ,
        .first_delay_ms = 5,
        .startup_timeout_ms = 10000,
        .stall_timeout_ms = 30000,
        .close_timeout_ms = 2000,
    };
}

void rddp_conn_attr_init(struct rddp_conn_attr *attr)
{
    *attr = (struct rddp_conn_attr){.ird = QP_READS_MAX, .ord = QP_READS_MAX};
    rddp_wire_attr_init(&attr->wire);
}

static const struct wire *const wires[] = {
    [RDDP_WIRE_IWARP] = &wire_iwarp,
    [RDDP_WIRE_RDMATCP] = &wire_rdmatcp,
};

static bool is_sane(const struct rddp_wire_attr *wire)
{
    if ((unsigned)wire->wire >= sizeof(wires) / sizeof(wires[0]))
        return false;
    return (wire->mpa_revision == 1 || wire->mpa_revision == 2) && wire->startup_timeout_ms &&
           (!wire->peer_to_peer || (wire->mpa_revision == 2 && (wire->rtr & 7)));
}

/* Without start-up frames there is nothing that could carry private data. */
static bool is_sayable(const struct wire *wire, const struct rddp_conn_attr *attr)
{
    return !wire->frames_at_once || !attr->private_data_length;
}

static struct conn_attr engine_attr(const struct rddp_wire_attr *wire)
{
    return (struct conn_attr){
        .crc = wire->crc,
        .markers = wire->markers,
        .peer_to_peer = wire->peer_to_peer,
        .immediate = wire->immediate,
        .revision = wire->mpa_revision,
        .rtr = wire->rtr,
        .first_delay_us = (uint64_t)wire->first_delay_ms * 1000,
        .startup_us = (uint64_t)wire->startup_timeout_ms * 1000,
        .stall_us = (uint64_t)wire->stall_timeout_ms * 1000,
        .close_us = (uint64_t)wire->close_timeout_ms * 1000,
    };
}

static uint16_t at_most(uint16_t asked, uint32_t room)
{
    return asked < room ? asked : (uint16_t)room;
}

static void take_channel(struct rddp_qp *qp, struct rddp_event_channel *channel)
{
    qp->channel = channel;
    channel->users++;
}

/* --- the active side ------------------------------------------------------------------------------------------- */

void connect_done(struct endpoint *endpoint, int error)
{
    struct rddp_event event = {.type = RDDP_EVENT_UNREACHABLE, .status = error, .qp = endpoint->qp};
    struct fault_note lost = {.fault = FAULT_LOST};
    char peer[TCP_NAME];

    endpoint->connecting = false;
    if (!error) {
        endpoint_pump(endpoint);
        return;
    }
    if (endpoint->qp) {
        event.user = endpoint->qp->user;
        qp_fail(&endpoint->qp->qp, &lost);
        if (!event_post(endpoint->qp->channel, &event))
            context_log(endpoint->context, RDDP_LOG_ERROR, "out of memory: an event (unreachable) is lost");
    }
    context_log(endpoint->context, RDDP_LOG_INFO, "%s: cannot connect: %s", tcp_name(&endpoint->peer, peer),
                strerror(-error));
    endpoint_abort(endpoint);
}

/* "It is RECOMMENDED that a secure un-guessable random number generator be used" (rdma-tcp-segments.txt 3.4). */
static int draw_id(struct conn_attr *engine)
{
    ssize_t n = getrandom(&engine->connection_id, sizeof(engine->connection_id), 0);

    return n == sizeof(engine->connection_id) ? 0 : -EAGAIN;
}

static int start_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, int fd, const struct sockaddr *addr,
                         socklen_t length, const struct rddp_conn_attr *attr)
{
    const struct wire *wire = wires[attr->wire.wire];
    struct conn_attr engine = engine_attr(&attr->wire);
    struct endpoint *endpoint = endpoint_new(qp->context, fd);
    uint64_t now_us = loop_now_us();
    int error;

    if (!endpoint)
        return -errno;
    memcpy(&endpoint->peer, addr, length < sizeof(endpoint->peer) ? length : sizeof(endpoint->peer));
    engine.ird = at_most(attr->ird, qp->qp.attr.ird);
    engine.ord = at_most(attr->ord, qp->qp.attr.ord);
    error = draw_id(&engine);
    if (!error)
        error = qp_prepare(qp, wire);
    if (!error)
        error = conn_init_active(&endpoint->conn, wire, &engine, &qp->qp, attr->private_data, attr->private_data_length,
                                 now_us);
    if (error) {
        endpoint->conn.life.qp = NULL;
        endpoint_abort(endpoint);
        endpoint_free_dead(qp->context);
        return error;
    }
    endpoint->qp = qp;
    endpoint->connecting = true;
    qp->endpoint = endpoint;
    take_channel(qp, channel);
    loop_rewatch(&qp->context->loop, &endpoint->watch, EPOLLOUT);
    loop_set_timer(&qp->context->loop, &endpoint->timer, now_us + engine.startup_us);
    return 0;
}

int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                 const struct rddp_conn_attr *attr)
{
    struct rddp_conn_attr defaults;
    int fd, error;

    rddp_conn_attr_init(&defaults);
    if (!attr)
        attr = &defaults;
    if (!is_sane(&attr->wire) || !is_sayable(wires[attr->wire.wire], attr) || channel->context != qp->context)
        return -EINVAL;
    lock(qp->context);
    if (qp->channel) {
        unlock(qp->context);
        return -EINVAL;
    }
    fd = tcp_connect(addr, length);
    error = fd < 0 ? fd : start_connect(qp, channel, fd, addr, length, attr);
    unlock(qp->context);
    return error;
}

int rddp_disconnect(struct rddp_qp *qp)
{
    int error = 0;

    lock(qp->context);
    if (!qp->endpoint || qp->endpoint->connecting || !qp->endpoint->conn.life.established ||
        qp->endpoint->conn.life.state > CONN_READY) {
        error = -ENOTCONN;
    } else {
        conn_close(&qp->endpoint->conn, loop_now_us());
        endpoint_pump(qp->endpoint);
        endpoint_free_dead(qp->context);
    }
    unlock(qp->context);
    return error;
}

/* --- the passive side ------------------------------------------------------------------------------------------ */

void request_answered(struct endpoint *endpoint)
{
    if (endpoint->request)
        endpoint->request->endpoint = NULL;
    endpoint->request = NULL;
    endpoint->listener->pending--;
    endpoint->listener = NULL;
}

static void take_connection(struct rddp_listener *listener, int fd)
{
    struct conn_attr engine = engine_attr(&listener->wire);
    struct endpoint *endpoint;

    if (listener->pending >= LISTENER_PENDING) {
        context_log(listener->context, RDDP_LOG_WARN, "%u connections wait for an answer: one more is turned away",
                    listener->pending);
        close(fd);
        return;
    }
    endpoint = endpoint_new(listener->context, fd);
    if (!endpoint) {
        context_log(listener->context, RDDP_LOG_ERROR, "a connection is turned away: %s", strerror(errno));
        return;
    }
    endpoint->listener = listener;
    listener->pending++;
    conn_init_passive(&endpoint->conn, wires[listener->wire.wire], &engine, loop_now_us());
    endpoint_pump(endpoint);
}

static struct rddp_listener *of_watch(struct watch *watch)
{
    return (struct rddp_listener *)((char *)watch - offsetof(struct rddp_listener, watch));
}

static void accept_some(struct watch *watch, uint32_t events)
{
    struct rddp_listener *listener = of_watch(watch);
    int fd = 0;

    (void)events;
    for (int i = 0; i < ACCEPTS && (fd = tcp_accept(watch->fd)) >= 0; i++)
        take_connection(listener, fd);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
        context_log(listener->context, RDDP_LOG_ERROR, "cannot accept connections for now: %s", strerror(-fd));
        loop_rewatch(&listener->context->loop, watch, 0);
        loop_set_timer(&listener->context->loop, &listener->pause, loop_now_us() + PAUSE_US);
    }
}

static void accept_again(struct timer *timer, uint64_t now_us)
{
    struct rddp_listener *listener = (struct rddp_listener *)((char *)timer - offsetof(struct rddp_listener, pause));

    (void)now_us;
    loop_rewatch(&listener->context->loop, &listener->watch, EPOLLIN);
}

static int start_listening(struct rddp_listener *listener)
{
    struct loop *loop = &listener->context->loop;
    int error = loop_add_timer(loop, &listener->pause);

    if (error)
        return error;
    error = loop_watch(loop, &listener->watch, EPOLLIN);
    if (error)
        loop_forget_timer(loop, &listener->pause);
    else
        listener->channel->users++;
    return error;
}

struct rddp_listener *rddp_listen(struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                                  int backlog, const struct rddp_wire_attr *wire, void *user)
{
    struct rddp_listener *listener = calloc(1, sizeof(*listener));
    int error = 0;

    if (!listener)
        return NULL;
    *listener = (struct rddp_listener){
        .context = channel->context, .channel = channel, .user = user, .pause.fire = accept_again};
    rddp_wire_attr_init(&listener->wire);
    if (wire)
        listener->wire = *wire;
    listener->watch = (struct watch){.ready = accept_some};
    listener->watch.fd = is_sane(&listener->wire) ? tcp_listen(addr, length, backlog) : -EINVAL;
    error = listener->watch.fd < 0 ? listener->watch.fd : 0;
    if (!error) {
        lock(channel->context);
        error = start_listening(listener);
        unlock(channel->context);
        if (error)
            close(listener->watch.fd);
    }
    if (error) {
        free(listener);
        errno = -error;
        return NULL;
    }
    return listener;
}

static void turn_away(struct endpoint *endpoint)
{
    request_answered(endpoint);
    if (endpoint->conn.life.state == CONN_WAIT_ANSWER && !conn_reject(&endpoint->conn, NULL, 0, loop_now_us()))
        endpoint_pump(endpoint);
    else
        endpoint_abort(endpoint);
}

int rddp_destroy_listener(struct rddp_listener *listener)
{
    struct rddp_context *context = listener->context;
    struct endpoint *next;

    lock(context);
    loop_unwatch(&context->loop, &listener->watch);
    loop_forget_timer(&context->loop, &listener->pause);
    close(listener->watch.fd);
    for (struct endpoint *endpoint = context->endpoints; endpoint; endpoint = next) {
        next = endpoint->next;
        if (endpoint->listener == listener)
            turn_away(endpoint);
    }
    endpoint_free_dead(context);
    event_forget(listener->channel, NULL, listener);
    listener->channel->users--;
    unlock(context);
    free(listener);
    return 0;
}

int rddp_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr)
{
    socklen_t length = sizeof(*addr);

    return getsockname(listener->watch.fd, (struct sockaddr *)addr, &length) ? -errno : 0;
}

static int accept_on(struct endpoint *endpoint, struct rddp_event_channel *channel, struct rddp_qp *qp,
                     const struct rddp_conn_attr *attr)
{
    int error;

    if (qp->channel || qp->context != endpoint->context || !is_sayable(endpoint->conn.wire, attr))
        return -EINVAL;
    error = qp_prepare(qp, endpoint->conn.wire);
    if (error)
        return error;
    error =
        conn_accept(&endpoint->conn, &qp->qp, at_most(attr->ird, qp->qp.attr.ird), at_most(attr->ord, qp->qp.attr.ord),
                    attr->private_data, attr->private_data_length, loop_now_us());
    if (error)
        return error;
    endpoint->qp = qp;
    qp->endpoint = endpoint;
    take_channel(qp, channel);
    return 0;
}

int rddp_accept(struct rddp_request *request, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    struct rddp_context *context = request->context;
    struct rddp_event_channel *channel;
    struct rddp_conn_attr defaults;
    struct endpoint *endpoint;
    int error = -ECONNABORTED;

    rddp_conn_attr_init(&defaults);
    lock(context);
    endpoint = request->endpoint;
    if (endpoint) {
        channel = endpoint->listener->channel;
        error = accept_on(endpoint, channel, qp, attr ? attr : &defaults);
        if (error) {
            turn_away(endpoint);
        } else {
            request_answered(endpoint);
            endpoint_pump(endpoint);
        }
        endpoint_free_dead(context);
    }
    unlock(context);
    free(request);
    return error;
}

int rddp_reject(struct rddp_request *request, const void *private_data, uint16_t private_data_length)
{
    struct rddp_context *context = request->context;
    struct endpoint *endpoint;
    int error = 0;

    lock(context);
    endpoint = request->endpoint;
    if (endpoint) {
        request_answered(endpoint);
        error = conn_reject(&endpoint->conn, private_data, private_data_length, loop_now_us());
        if (error)
            endpoint_abort(endpoint);
        else
            endpoint_pump(endpoint);
        endpoint_free_dead(context);
    }
    unlock(context);
    free(request);
    return error;
}

int rddp_request_addr(const struct rddp_request *request, struct sockaddr_storage *peer)
{
    *peer = request->peer;
    return 0;
}
