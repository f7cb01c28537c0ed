/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - what both ends say of a wire, and the active end: connecting and closing, for the application. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/api.h"
#include "api/connect.h"

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

const struct wire *wire_named(enum rddp_wire name)
{
    return wires[name];
}

bool wire_is_sane(const struct rddp_wire_attr *wire)
{
    if ((unsigned)wire->wire >= countof(wires))
        return false;
    return (wire->mpa_revision == 1 || wire->mpa_revision == 2) && wire->startup_timeout_ms &&
           (!wire->peer_to_peer || (wire->mpa_revision == 2 && (wire->rtr & 7)));
}

bool wire_says(const struct wire *wire, const struct rddp_conn_attr *attr)
{
    return !wire->frames_at_once || !attr->private_data_length;
}

struct conn_attr wire_conn_attr(const struct rddp_wire_attr *wire)
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

uint16_t at_most(uint16_t asked, uint32_t room)
{
    return asked < room ? asked : (uint16_t)room;
}

bool qp_claim(struct rddp_qp *qp, struct rddp_event_channel *channel)
{
    bool is_free;

    pthread_mutex_lock(&qp->context->lock);
    is_free = !qp->channel;
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

void connect_done(struct endpoint *endpoint, int error)
{
    struct rddp_event event = {.type = RDDP_EVENT_UNREACHABLE, .status = error, .qp = endpoint->qp};
    struct fault_note lost = {.fault = FAULT_LOST};
    char peer[TCP_NAME];

    endpoint->connecting = false;
    if (!error) {
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
        return;
    }
    if (endpoint->qp) {
        event.user = endpoint->qp->user;
        qp_fail(&endpoint->qp->qp, &lost);
        if (!event_post(endpoint->qp->channel, &event))
            context_log(endpoint->progress->context, RDDP_LOG_ERROR, "out of memory: an event (unreachable) is lost");
    }
    context_log(endpoint->progress->context, RDDP_LOG_INFO, "%s: cannot connect: %s", tcp_name(&endpoint->peer, peer),
                strerror(-error));
    endpoint_abort(endpoint);
}

/* "It is RECOMMENDED that a secure un-guessable random number generator be used" (rdma-tcp-segments.txt 3.4). */
static int draw_id(struct conn_attr *engine)
{
    ssize_t n = getrandom(&engine->connection_id, sizeof(engine->connection_id), 0);

    return n == sizeof(engine->connection_id) ? 0 : -EAGAIN;
}

static int init_active(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                       uint64_t now_us)
{
    const struct wire *wire = wire_named(attr->wire.wire);
    struct conn_attr engine = wire_conn_attr(&attr->wire);
    int error = draw_id(&engine);

    engine.ird = at_most(attr->ird, qp->qp.attr.ird);
    engine.ord = at_most(attr->ord, qp->qp.attr.ord);
    if (!error)
        error = qp_prepare(qp, wire);
    if (!error)
        error = conn_init_active(&endpoint->conn, wire, &engine, &qp->qp, attr->private_data, attr->private_data_length,
                                 now_us);
    return error;
}

/* By the driver. */
static int start_connect(struct progress *progress, struct rddp_qp *qp, int fd, const struct sockaddr *addr,
                         socklen_t length, const struct rddp_conn_attr *attr)
{
    struct endpoint *endpoint = endpoint_new(progress, fd);
    uint64_t now_us = loop_now_us();
    int error;

    if (!endpoint)
        return -errno;
    memcpy(&endpoint->peer, addr, length < sizeof(endpoint->peer) ? length : sizeof(endpoint->peer));
    error = init_active(endpoint, qp, attr, now_us);
    if (error) {
        endpoint->conn.life.qp = NULL;
        endpoint_abort(endpoint);
    } else {
        endpoint->connecting = true;
        qp_join(qp, endpoint);
        loop_rewatch(&progress->loop, &endpoint->watch, EPOLLOUT);
        loop_set_timer(&progress->loop, &endpoint->timer, now_us + endpoint->conn.attr.startup_us);
    }
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    return error;
}

int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                 const struct rddp_conn_attr *attr)
{
    struct progress *progress = context_next_loop(qp->context);
    struct rddp_conn_attr defaults;
    int fd, error;

    rddp_conn_attr_init(&defaults);
    if (!attr)
        attr = &defaults;
    if (!wire_is_sane(&attr->wire) || !wire_says(wire_named(attr->wire.wire), attr) ||
        channel->context != qp->context || !qp_claim(qp, channel))
        return -EINVAL;
    error = fd = tcp_connect(addr, length);
    if (fd >= 0) {
        progress_take(progress);
        error = start_connect(progress, qp, fd, addr, length, attr);
        progress_give(progress);
    }
    if (error < 0)
        qp_unclaim(qp);
    return error;
}

int rddp_disconnect(struct rddp_qp *qp)
{
    struct endpoint *endpoint = qp_hold(qp);
    bool is_up;

    if (!endpoint)
        return -ENOTCONN;
    is_up = !endpoint->connecting && endpoint->conn.life.established && endpoint->conn.life.state <= CONN_READY;
    if (is_up) {
        conn_close(&endpoint->conn, loop_now_us());
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    }
    qp_let_go(endpoint);
    return is_up ? 0 : -ENOTCONN;
}
