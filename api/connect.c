/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - the active side: rddp_connect() and rddp_disconnect(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "endpoint/attr.h"
#include "api/connect.h"
#include "endpoint/endpoint_link.h"
#include "sctp/io/endpoint_sctp.h"
#include "drive/inherit.h"
#include "tcp/io/packet_device.h"
#include "tcp/io/link_tcp.h"

/* The channel counts its users outside context->lock: destroying it must not overlap with this call. */
bool qp_claim(struct rddp_qp *qp, struct rddp_event_channel *channel)
{
    bool is_free;

    pthread_mutex_lock(&qp->context->lock);
    is_free = !qp->channel && qp->qp.state == QP_IDLE;
    if (is_free)
        qp->channel = channel;
    pthread_mutex_unlock(&qp->context->lock);
    if (is_free)
        channel->users++;
    return is_free;
}

void qp_unclaim(struct rddp_qp *qp)
{
    struct rddp_event_channel *channel = qp->channel;

    pthread_mutex_lock(&qp->context->lock);
    qp->channel = NULL;
    pthread_mutex_unlock(&qp->context->lock);
    channel->users--;
}

void qp_join(struct rddp_qp *qp, struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;
    uint64_t bit = (uint64_t)1 << (progress - progress->context->progress);

    endpoint->qp = qp;
    qp->progress = progress;
    atomic_fetch_or(&container_of(qp->qp.attr.send_cq, struct rddp_cq, cq)->loops, bit);
    atomic_fetch_or(&container_of(qp->qp.attr.recv_cq, struct rddp_cq, cq)->loops, bit);
    qp_set_endpoint(qp, endpoint);
}

/* --- the active side ------------------------------------------------------------------------------------------- */

/* "It is RECOMMENDED that a secure un-guessable random number generator be used" (rdma-tcp-segments.txt 3.4). */
static int draw_id(struct conn_attr *engine)
{
    ssize_t n = getrandom(&engine->connection_id, sizeof(engine->connection_id), 0);

    return n == sizeof(engine->connection_id) ? 0 : -EAGAIN;
}

static int connect_init_active(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                               uint64_t now_us)
{
    const struct wire *wire = wire_named(attr->wire.wire);
    struct conn_attr engine = wire_conn_attr(&attr->wire);
    int error = draw_id(&engine);

    engine.ird = at_most(attr->ird, qp->qp.attr.ird);
    engine.ord = at_most(attr->ord, qp->qp.attr.ord);
    if (!error)
        error = qp_prepare(qp, wire, endpoint_in_order(endpoint));
    if (!error)
        error = conn_init_active(&endpoint->conn, wire, &engine, &qp->qp, attr->private_data, attr->private_data_length,
                                 now_us);
    if (!error)
        link_attach(endpoint->link);
    return error;
}

/* Starts to connect over `link`, which is closed on failure. By the driver. `peer` is the address while the link is
 * connecting; NULL: it is up and knows its peer. */
static int start_connect(struct progress *progress, struct rddp_qp *qp, struct link *link,
                         const struct sockaddr_storage *peer, const struct rddp_conn_attr *attr)
{
    struct endpoint *endpoint = endpoint_new(progress, link);
    uint64_t now_us = loop_now_us();
    int error;

    if (!endpoint)
        return -errno;
    endpoint->successor = packet_successor(attr->wire.device);
    if (peer)
        endpoint->peer = *peer;
    error = connect_init_active(endpoint, qp, attr, now_us);
    if (error) {
        endpoint->conn.life.qp = NULL;
        endpoint_abort(endpoint);
    } else {
        qp_join(qp, endpoint);
        loop_set_timer(&progress->loop, &endpoint->timer, now_us + endpoint->conn.attr.startup_us);
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    }
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    return error;
}

/* Are the attributes valid, and do the objects belong to one context? */
static bool is_sayable(const struct rddp_qp *qp, const struct rddp_event_channel *channel,
                       const struct rddp_conn_attr *attr)
{
    const struct rddp_device *device = attr->wire.device;

    return wire_is_sane(&attr->wire) && wire_says(wire_named(attr->wire.wire), attr) &&
           channel->context == qp->context && (!device || device->progress->context == qp->context);
}

/* Connects over a socket that is connecting to `peer`, or that is connected (NULL). Closes it on failure. Takes the
 * token. */
static int connect_over(struct rddp_qp *qp, int fd, const struct sockaddr_storage *peer,
                        const struct rddp_conn_attr *attr)
{
    struct rddp_device *device = attr->wire.device;
    struct progress *progress = device ? device->progress : progress_next(qp->context);
    struct link *link;
    int error;

    progress_take(progress);
    link = link_tcp_new(&progress->loop, fd, !peer, attr->wire.aligned);
    error = link ? start_connect(progress, qp, link, peer, attr) : -errno;
    progress_give(progress);
    return error;
}

static int connect_socket(struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_conn_attr *attr)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    int fd = tcp_connect(addr, length);

    memcpy(&peer, addr, length < sizeof(peer) ? length : sizeof(peer));
    return fd < 0 ? fd : connect_over(qp, fd, &peer, attr);
}

static int connect_device(struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_conn_attr *attr)
{
    struct progress *progress = attr->wire.device->progress;
    struct link *link;
    int error;

    progress_take(progress);
    link = packet_connect(attr->wire.device, addr, length);
    error = link ? start_connect(progress, qp, link, NULL, attr) : -errno;
    progress_give(progress);
    return error;
}

/* Starts an association. Takes the token. */
static int connect_sctp(struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                        const struct rddp_conn_attr *attr)
{
    struct progress *progress = progress_next(qp->context);
    struct endpoint *endpoint;
    int error;

    progress_take(progress);
    error = endpoint_sctp_connect(progress, qp, addr, length, attr, &endpoint);
    if (!error) {
        qp_join(qp, endpoint);
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
    progress_give(progress);
    return error;
}

int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                 const struct rddp_conn_attr *attr)
{
    int error = context_use(qp->context);
    struct rddp_conn_attr defaults;

    if (error)
        return error;
    rddp_conn_attr_init(&defaults);
    if (!attr)
        attr = &defaults;
    if (packet_is_left(attr->wire.device))
        return -ENODEV;
    if (!is_sayable(qp, channel, attr) || !qp_claim(qp, channel))
        return -EINVAL;
    if (attr->wire.wire == RDDP_WIRE_SCTP)
        error = connect_sctp(qp, addr, length, attr);
    else
        error = packet_is_own(attr->wire.device) ? connect_device(qp, addr, length, attr)
                                                 : connect_socket(qp, addr, length, attr);
    if (error)
        qp_unclaim(qp);
    return error;
}

int rddp_connect_fd(struct rddp_qp *qp, struct rddp_event_channel *channel, int fd, const struct rddp_conn_attr *attr)
{
    struct rddp_conn_attr defaults;
    int error = tcp_adopt(fd, false);

    rddp_conn_attr_init(&defaults);
    if (!attr)
        attr = &defaults;
    if (!error && attr->wire.wire == RDDP_WIRE_SCTP)
        error = -EOPNOTSUPP;
    if (!error)
        error = context_use(qp->context);
    if (!error && packet_is_left(attr->wire.device))
        error = -ENODEV;
    if (!error && (packet_is_own(attr->wire.device) || !is_sayable(qp, channel, attr) || !qp_claim(qp, channel)))
        error = -EINVAL;
    if (error) {
        close(fd);
        return error;
    }
    error = connect_over(qp, fd, NULL, attr);
    if (error)
        qp_unclaim(qp);
    return error;
}

int rddp_disconnect(struct rddp_qp *qp)
{
    int error = context_enter(qp->context);
    struct endpoint *endpoint;
    bool is_up;

    if (error)
        return error;
    endpoint = qp_hold(qp);
    if (!endpoint)
        return -ENOTCONN;
    is_up = endpoint->life->established && endpoint->life->state <= CONN_READY;
    if (is_up) {
        endpoint->kind->finish(endpoint, loop_now_us());
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    }
    qp_let_go(endpoint);
    return is_up ? 0 : -ENOTCONN;
}
