/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.c - the life of a connection on its link: who works on it, what it waits for, how it is told and closed. */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/transfer.h"

/* Closed now; the struct stays until its holder has let go of it. */
static void close_endpoint(struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;

    if (endpoint->qp) {
        endpoint_info(endpoint, &endpoint->qp->last);
        qp_set_endpoint(endpoint->qp, NULL);
    }
    if (endpoint->listener)
        request_answered(endpoint);
    loop_forget_timer(&progress->loop, &endpoint->timer);
    link_close(endpoint->link);
    transfer_take_out_back(endpoint);
    if (endpoint->carry)
        pool_put(&progress->carries, endpoint->carry);
    if (progress->stage.owner == endpoint)
        progress->stage.owner = NULL;
    if (progress->hot == endpoint)
        progress->hot = NULL;
    progress_bury(endpoint);
    endpoint->closed = true;
}

static unsigned wants_of_link(const struct endpoint *endpoint, unsigned wanted)
{
    unsigned wants = endpoint->blocked ? LINK_WANT_WRITE : 0;

    if (wanted & CONN_RX)
        wants |= LINK_WANT_READ;
    if (endpoint->conn.life.state == CONN_WAIT_ANSWER && !endpoint->conn.attr.immediate)
        wants |= LINK_WANT_END; /* nothing is read, but a peer that gives up is noticed */
    return wants;
}

/* Sends until there is nothing left, the socket is full, or a turn is over. False: what is left takes the driver, who
 * is somebody else. *wanted: as of conn_wants(), now. */
static bool send_all(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us, unsigned *wanted)
{
    struct conn *conn = &endpoint->conn;
    uint64_t begun = conn->w.tx_pos;

    while ((*wanted = conn_wants(conn, now_us)) & (CONN_TX | CONN_AGAIN)) {
        if (*wanted & CONN_AGAIN) {
            if (role != ENDPOINT_DRIVER)
                return false;
            transfer_eat_again(endpoint);
        } else if (endpoint->blocked || !transfer_send(endpoint, now_us)) {
            /* A socket that is full says when it is not: asking it before would only hold up the one who empties it. */
            break;
        } else if (conn->w.tx_pos - begun >= TURN_OCTETS) {
            /* Others are next. The socket says at once that it is not blocked, and that is the next turn. */
            endpoint->blocked = true;
        }
    }
    return true;
}

/* The driver is called at once. */
static void call_driver(struct endpoint *endpoint, uint64_t now_us)
{
    loop_set_timer(&endpoint->progress->loop, &endpoint->timer, now_us);
}

void endpoint_pump(struct endpoint *endpoint, enum endpoint_role role)
{
    struct conn *conn = &endpoint->conn;
    uint64_t now_us = loop_now_us();
    unsigned wanted;

    if (endpoint->closed || !endpoint->link->is_up)
        return;
    if (endpoint->starved && role == ENDPOINT_DRIVER)
        conn_lost(conn, FAULT_MEMORY);
    transfer_look_up_emss(endpoint, now_us);
    conn_check(conn, now_us);
    if (!send_all(endpoint, role, now_us, &wanted)) {
        call_driver(endpoint, now_us);
        return;
    }
    if (wanted & CONN_FIN) {
        link_finish(endpoint->link);
        conn_fin(conn, now_us);
        wanted = conn_wants(conn, now_us);
    }
    if (conn->life.out && !conn->life.out->octets)
        transfer_take_out_back(endpoint);
    if (conn->life.news)
        endpoint_tell(endpoint);
    if (conn->life.state == CONN_OVER) {
        if (role == ENDPOINT_DRIVER)
            close_endpoint(endpoint);
        else
            call_driver(endpoint, now_us);
        return;
    }
    link_want(endpoint->link, wants_of_link(endpoint, wanted));
    loop_set_timer(&endpoint->progress->loop, &endpoint->timer, conn_deadline(conn, now_us));
}

void endpoint_hold(struct endpoint *endpoint)
{
    doorbell_hold(&endpoint->bell);
}

void endpoint_let_go(struct endpoint *endpoint, enum endpoint_role role)
{
    while (!doorbell_let_go(&endpoint->bell))
        endpoint_pump(endpoint, role);
}

void endpoint_poll(struct endpoint *endpoint)
{
    if (!doorbell_try(&endpoint->bell))
        return;
    if (transfer_receive(endpoint) && (endpoint->timer.place || !conn_is_at_rest(&endpoint->conn)))
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
}

void endpoint_abort(struct endpoint *endpoint)
{
    conn_lost(&endpoint->conn, FAULT_LOST);
    endpoint->conn.life.news = 0;
    if (!endpoint->closed)
        close_endpoint(endpoint);
}

/* --- what the link and the loop say ------------------------------------------------------------------------------ */

static void fail_to_connect(struct endpoint *endpoint, int error)
{
    if (endpoint->qp)
        qp_fail(&endpoint->qp->qp, &(struct fault_note){.fault = FAULT_LOST});
    endpoint_tell_unreachable(endpoint, error);
    endpoint_abort(endpoint);
}

/* What has arrived is read before anything else is believed: the reader learns more. */
static void react(struct endpoint *endpoint, unsigned events)
{
    if (events & LINK_UP)
        link_names(endpoint->link, &endpoint->local, &endpoint->peer);
    if (events & LINK_WRITABLE)
        endpoint->blocked = false;
    if (transfer_wants(endpoint))
        transfer_receive(endpoint);
    else if (events & LINK_ENDED)
        conn_rx_end(&endpoint->conn, 0, loop_now_us());
    else if (events & LINK_LOST)
        conn_lost(&endpoint->conn, FAULT_LOST);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

static void on_link(struct link *link, unsigned events)
{
    struct endpoint *endpoint = link->owner;

    endpoint_hold(endpoint);
    if (link->is_up)
        react(endpoint, events);
    else
        fail_to_connect(endpoint, link->error);
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
}

static void on_time(struct timer *timer, uint64_t now_us)
{
    struct endpoint *endpoint = container_of(timer, struct endpoint, timer);

    endpoint_hold(endpoint);
    if (endpoint->link->is_up) {
        conn_tick(&endpoint->conn, now_us);
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    } else {
        fail_to_connect(endpoint, -ETIMEDOUT);
    }
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
}

static void own_link(struct endpoint *endpoint, struct link *link)
{
    endpoint->link = link;
    link->owner = endpoint;
    link->told = on_link;
}

struct endpoint *endpoint_new(struct progress *progress, struct link *link)
{
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
    int error = endpoint ? 0 : -ENOMEM;

    if (!error) {
        *endpoint = (struct endpoint){.progress = progress, .timer = {.fire = on_time}};
        error = loop_add_timer(&progress->loop, &endpoint->timer);
    }
    if (error) {
        link_close(link);
        free(endpoint);
        errno = -error;
        return NULL;
    }
    own_link(endpoint, link);
    doorbell_hold(&endpoint->bell);
    link_names(link, &endpoint->local, &endpoint->peer);
    progress_add(endpoint);
    return endpoint;
}

void endpoint_exchange_link(struct endpoint *endpoint, struct link *link)
{
    link_close(endpoint->link);
    own_link(endpoint, link);
    endpoint->blocked = false;
    endpoint->emss_us = 0;
    link_names(link, &endpoint->local, &endpoint->peer);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

/* --- for others --------------------------------------------------------------------------------------------------- */

struct endpoint *qp_hold(struct rddp_qp *qp)
{
    struct progress *progress = qp->progress;

    if (!progress)
        return NULL;
    progress_take(progress);
    if (qp->endpoint)
        endpoint_hold(qp->endpoint);
    else
        progress_give(progress);
    return qp->endpoint;
}

void qp_let_go(struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;

    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    progress_give(progress);
}

void endpoint_info(const struct endpoint *endpoint, struct rddp_qp_info *info)
{
    const struct conn *conn = &endpoint->conn;

    *info = (struct rddp_qp_info){
        .wire = conn->wire == &wire_rdmatcp ? RDDP_WIRE_RDMATCP : RDDP_WIRE_IWARP,
        .mpa_revision = conn->start.revision,
        .crc = conn->w.crc,
        .tx_markers = conn->w.tx_markers,
        .rx_markers = conn->w.rx_markers,
        .ird = conn->start.ird,
        .ord = conn->start.ord,
        .emss = conn->attr.emss,
        .terminate = conn->life.peer_term,
        .local = endpoint->local,
        .peer = endpoint->peer,
    };
}
