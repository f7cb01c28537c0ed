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
#include "api/reset.h"
#include "endpoint/endpoint_link.h"
#include "drive/inherit.h"
#include "drive/transports.h"
#include "roce/io/roce_port.h"
#include "tcp/io/packet_device.h"
#include "tcp/io/link_tcp.h"
#include "tcp/io/tcp.h"

static bool ends_joining(struct rddp_qp *qp)
{
    bool fails;

    pthread_mutex_lock(&qp->context->lock);
    fails = qp->fails_when_joined;
    qp->is_joining = qp->fails_when_joined = false;
    pthread_mutex_unlock(&qp->context->lock);
    return fails;
}

void qp_join(struct rddp_qp *qp, struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;
    uint64_t bit = (uint64_t)1 << (loop - loop->context->loop);

    endpoint->qp = qp;
    qp->loop = loop;
    qp->qp.waiter = bit;
    atomic_fetch_or(&container_of(qp->qp.attr.send_cq, struct rddp_cq, cq)->loops, bit);
    atomic_fetch_or(&container_of(qp->qp.attr.recv_cq, struct rddp_cq, cq)->loops, bit);
    qp_set_endpoint(qp, endpoint);
    if (ends_joining(qp))
        qp_fail_connection(endpoint);
}

bool qp_may_join(const struct rddp_qp *qp, enum rddp_wire wire)
{
    if (qp->type == RDDP_QPT_CONNECTED)
        return true;
    return qp->type == RDDP_QPT_RC && wire == RDDP_WIRE_ROCE && qp->ib.state <= RDDP_IB_INIT;
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
static int start_connect(struct loop *loop, struct rddp_qp *qp, struct link *link, const struct sockaddr_storage *peer,
                         const struct rddp_conn_attr *attr)
{
    struct endpoint *endpoint = endpoint_new(loop, link);
    uint64_t now_us = reactor_now_us();
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
        reactor_set_timer(&loop->reactor, &endpoint->timer, now_us + endpoint->conn.attr.startup_us);
        qp_join(qp, endpoint);
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    }
    endpoint_release(endpoint, ENDPOINT_DRIVER);
    return error;
}

/* Are the attributes valid, and do the objects belong to one context? */
static bool is_sayable(const struct rddp_qp *qp, const struct rddp_event_channel *channel,
                       const struct rddp_conn_attr *attr)
{
    const struct rddp_device *device = attr->wire.device;

    return qp_may_join(qp, attr->wire.wire) && wire_is_sane(&attr->wire) && !attr->wire.datagrams &&
           wire_says(wire_named(attr->wire.wire), attr) && channel->context == qp->context &&
           (!device || device->loop->context == qp->context);
}

/* bind(2) takes an address of IPv4 for the wildcard of IPv6, but says so by its length alone. */
static bool is_of_family(const struct sockaddr *local, const struct sockaddr *peer)
{
    return !local ||
           (local->sa_family == peer->sa_family && (local->sa_family == AF_INET || local->sa_family == AF_INET6));
}

/* Closes the link on failure. */
static int may_retry(struct link *link, const struct sockaddr_storage *peer, const struct rddp_conn_attr *attr)
{
    uint64_t until_us = reactor_now_us() + (uint64_t)attr->retry_refused_ms * 1000;
    int error = peer && attr->retry_refused_ms ? link_tcp_insist(link, peer, until_us) : 0;

    if (error)
        link_close(link);
    return error;
}

/* Connects over a socket that is connecting to `peer`, or that is connected (NULL). Closes it on failure. Takes the
 * loop lock. */
static int connect_over(struct rddp_qp *qp, int fd, const struct sockaddr_storage *peer,
                        const struct rddp_conn_attr *attr)
{
    struct rddp_device *device = attr->wire.device;
    struct loop *loop = device ? device->loop : loop_next(qp->context);
    struct link *link;
    int error;

    loop_lock(loop);
    link = link_tcp_new(&loop->reactor, fd, !peer, attr->wire.aligned);
    error = link ? may_retry(link, peer, attr) : -errno;
    if (!error)
        error = start_connect(loop, qp, link, peer, attr);
    loop_unlock(loop);
    return error;
}

static int connect_socket(struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_conn_attr *attr)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    int fd = tcp_connect(addr, length, attr->local);

    memcpy(&peer, addr, length < sizeof(peer) ? length : sizeof(peer));
    return fd < 0 ? fd : connect_over(qp, fd, &peer, attr);
}

static int connect_device(struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_conn_attr *attr)
{
    struct loop *loop = attr->wire.device->loop;
    struct link *link;
    int error;

    loop_lock(loop);
    link = packet_connect(attr->wire.device, addr, length, attr->local);
    error = link ? start_connect(loop, qp, link, NULL, attr) : -errno;
    loop_unlock(loop);
    return error;
}

/* Connects what has a socket, or a port, of its own kind. Locks the loop. */
static int connect_with(struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                        const struct rddp_conn_attr *attr, const struct transport *transport)
{
    struct loop *loop = qp->slot ? qp->slot->port->loop : loop_next(qp->context);
    struct endpoint *endpoint;
    int error;

    loop_lock(loop);
    error = qp_may_join(qp, attr->wire.wire) ? transport->connect(loop, qp, addr, length, attr, &endpoint) : -EINVAL;
    if (!error) {
        qp->ib.state = RDDP_IB_RTS;
        qp_join(qp, endpoint);
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
    return error;
}

int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                 const struct rddp_conn_attr *attr)
{
    int error = context_use(qp->context);
    const struct transport *transport;
    struct rddp_conn_attr defaults;

    if (error)
        return error;
    rddp_conn_attr_init(&defaults);
    if (!attr)
        attr = &defaults;
    error = transport_check(qp->context, &attr->wire);
    if (error)
        return error;
    if (packet_is_left(attr->wire.device))
        return -ENODEV;
    if (!is_of_family(attr->local, addr))
        return -EAFNOSUPPORT;
    error = is_sayable(qp, channel, attr) ? qp_claim(qp, &channel) : -EINVAL;
    if (error)
        return error;
    transport = transport_of(&attr->wire);
    if (transport)
        error = connect_with(qp, addr, length, attr, transport);
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
    if (!error && !wire_is_stream(&attr->wire))
        error = -EOPNOTSUPP;
    if (!error)
        error = context_use(qp->context);
    if (!error && packet_is_left(attr->wire.device))
        error = -ENODEV;
    if (!error && (packet_is_own(attr->wire.device) || !is_sayable(qp, channel, attr)))
        error = -EINVAL;
    if (!error)
        error = qp_claim(qp, &channel);
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
    bool established;

    if (error)
        return error;
    endpoint = qp_hold_or_lock(qp);
    established = endpoint ? endpoint->life->established : qp->was_established;
    if (endpoint && established && endpoint->life->state <= CONN_READY) {
        endpoint->kind->finish(endpoint, reactor_now_us());
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    }
    qp_release_or_unlock(qp, endpoint);
    return established ? 0 : -ENOTCONN;
}
