/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_link.c - a connection whose octets travel on a link: the events it waits for, and what it does on them. */
#include "endpoint/endpoint_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/objects.h"
#include "endpoint/attr.h"
#include "endpoint/transfer.h"

/* --- work ----------------------------------------------------------------------------------------------------------
 */

enum {
    POLLED_US = 300,        /* who polled between posts no longer ago than this polls again before long */
    SUCCEED_AGAIN_US = 500, /* until the peer has acknowledged what it was sent last */
};

static unsigned wants_of_link(const struct endpoint *endpoint, unsigned wanted)
{
    unsigned wants = endpoint->blocked ? LINK_WANT_WRITE : 0;

    if (wanted & CONN_RX)
        wants |= LINK_WANT_READ;
    if (conn_wants_end(&endpoint->conn))
        wants |= LINK_WANT_END;
    return wants;
}

/* Does the application poll between its posts? The first post behind a poll always says so. */
static bool is_polled(struct endpoint *endpoint, uint64_t now_us)
{
    struct turn *turn = &endpoint->turn;
    uint32_t polls;

    if (!endpoint->qp)
        return false;
    polls = qp_polls(endpoint->qp);
    if (polls != turn->polls)
        *turn = (struct turn){turn->begun, polls, now_us};
    return now_us - turn->polled_us <= POLLED_US;
}

/* Single posts share a turn. What comes behind it is sent in as few calls as it can be, by the application's next poll.
 * Where such a poll may never come, since there is no thread that would see that, or for some time no post has found
 * that there was one, each post has a turn of its own. What is posted right before the polls end may wait for the
 * thread's looks from the park. */
static uint64_t turn_begins(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    uint64_t at = endpoint->conn.agreed.tx_pos;

    if (role == ENDPOINT_POSTER) {
        if (!endpoint->loop->context->manual && is_polled(endpoint, now_us))
            return endpoint->turn.begun;
        if (at - endpoint->turn.begun >= TURN_OCTETS)
            endpoint->blocked = false;
    }
    endpoint->turn.begun = at;
    return at;
}

/* Sends until nothing is left, the link is full, or a turn is over. Returns false if the rest needs the driver and the
 * caller is a poster. *wanted: the last result of conn_wants(). */
static bool endpoint_link_send_all(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us,
                                   unsigned *wanted)
{
    struct conn *conn = &endpoint->conn;
    uint64_t begun = turn_begins(endpoint, role, now_us);

    while ((*wanted = conn_wants(conn, now_us)) & (CONN_TX | CONN_AGAIN)) {
        if (*wanted & CONN_AGAIN) {
            if (role != ENDPOINT_DRIVER)
                return false;
            transfer_eat_again(endpoint);
        } else if (conn->agreed.tx_pos - begun >= TURN_OCTETS) {
            /* Let others send. The link reports at once that it is writable, and the next turn begins. */
            endpoint->blocked = true;
            atomic_store_explicit(&endpoint->loop->asking.turn_over, true, memory_order_relaxed);
            break;
        } else if (endpoint->blocked) {
            /* A full link reports when it is writable. Trying before would only delay whoever empties it. */
            break;
        } else if (!transfer_send(endpoint, now_us)) {
            *wanted = conn_wants(conn, now_us); /* the connection may have ended without a word */
            break;
        }
    }
    return true;
}

static void put_link(struct endpoint *endpoint, struct link *link);

/* Its successor takes over, if he can already, or the link stays for good. */
static void endpoint_link_succeed(struct endpoint *endpoint)
{
    struct link *link;
    int error = endpoint->successor->take(endpoint->successor, endpoint, &link);

    if (error == -EAGAIN)
        return;
    endpoint->successor = NULL;
    if (error) {
        context_log(endpoint->loop->context, RDDP_LOG_WARN, "a connection stays with the kernel's TCP: %s",
                    strerror(-error));
        return;
    }
    put_link(endpoint, link);
    link_attach(endpoint->link);
    transfer_receive(endpoint);
}

static bool endpoint_link_work(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    struct conn *conn = &endpoint->conn;
    unsigned wanted;

    if (endpoint_succeeds(endpoint)) {
        if (role != ENDPOINT_DRIVER)
            return false;
        endpoint_link_succeed(endpoint);
        if (endpoint->successor)
            return true;
    }

    if (endpoint->carry.is_lost && role == ENDPOINT_DRIVER)
        conn_lost(conn, FAULT_MEMORY);
    transfer_look_up_emss(endpoint, now_us);
    conn_check(conn, now_us);
    if (!endpoint_link_send_all(endpoint, role, now_us, &wanted) || (endpoint->refused && role != ENDPOINT_DRIVER))
        return false;
    if (endpoint->refused) {
        transfer_end_refused(endpoint);
        wanted = 0;
    }
    if (wanted & CONN_FIN) {
        link_finish(endpoint->link);
        conn_fin(conn, now_us);
    }
    if (conn->life.out && !conn->life.out->octets)
        transfer_take_out_back(endpoint);
    return true;
}

/* What is_polled() notices stays true to the time. */
static bool endpoint_link_post(struct endpoint *endpoint)
{
    uint64_t now_us;

    if (!transfer_post(endpoint, &now_us))
        return false;
    (void)is_polled(endpoint, now_us);
    return true;
}

static uint64_t endpoint_link_rest(struct endpoint *endpoint, uint64_t now_us)
{
    uint64_t at_us = conn_deadline(&endpoint->conn, now_us), again_us = now_us + SUCCEED_AGAIN_US;

    if (endpoint_succeeds(endpoint)) {
        link_want(endpoint->link, 0);
        return again_us < at_us ? again_us : at_us;
    }
    link_want(endpoint->link, wants_of_link(endpoint, conn_wants(&endpoint->conn, now_us)));
    return at_us;
}

static void endpoint_link_tick(struct endpoint *endpoint, uint64_t now_us)
{
    if (endpoint->is_up)
        conn_tick(&endpoint->conn, now_us);
    else
        endpoint_fail_to_connect(endpoint, -ETIMEDOUT);
}

static bool endpoint_link_owes(const struct endpoint *endpoint)
{
    return conn_owes(&endpoint->conn);
}

static bool link_stay_out(struct endpoint *endpoint, bool out)
{
    bool can_rest = link_can_rest(endpoint->link);

    if (can_rest)
        link_rest(endpoint->link, out);
    return can_rest;
}

/* By the driver, who does not wait for a poster that holds the endpoint. */
static void poll_link(struct endpoint *endpoint)
{
    if (!endpoint_try(endpoint))
        return;
    endpoint_rest_if_polled(endpoint);
    if (transfer_receive(endpoint) && !endpoint->conn.is_straight &&
        (endpoint->timer.place || !conn_is_at_rest(&endpoint->conn)))
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

/* --- for the application -------------------------------------------------------------------------------------------
 */

bool endpoint_in_order(const struct endpoint *endpoint)
{
    return endpoint->link->kind->in_order && !endpoint->successor;
}

static int endpoint_link_accept_conn(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                                     uint64_t now_us)
{
    bool in_order = endpoint_in_order(endpoint);
    int error = wire_says(endpoint->conn.wire, attr) ? qp_prepare(qp, endpoint->conn.wire, in_order) : -EINVAL;

    return error ? error
                 : conn_accept(&endpoint->conn, &qp->qp, at_most(attr->ird, qp->qp.attr.ird),
                               at_most(attr->ord, qp->qp.attr.ord), attr->private_data, attr->private_data_length,
                               now_us);
}

static int reject_conn(struct endpoint *endpoint, const void *private_data, uint16_t length, uint64_t now_us)
{
    return conn_reject(&endpoint->conn, private_data, length, now_us);
}

static void endpoint_link_finish(struct endpoint *endpoint, uint64_t now_us)
{
    conn_close(&endpoint->conn, now_us);
}

static void endpoint_link_detach(struct endpoint *endpoint, uint64_t now_us)
{
    conn_detach(&endpoint->conn, now_us);
}

static void endpoint_link_lost(struct endpoint *endpoint, enum fault fault)
{
    conn_lost(&endpoint->conn, fault);
}

static void endpoint_link_fill_event(const struct endpoint *endpoint, struct rddp_event *event)
{
    const struct mpa_frame *peer = &endpoint->conn.start.peer;

    event->private_data = peer->private_data;
    event->private_data_length = peer->private_length;
    event->ird = peer->ird;
    event->ord = peer->ord;
}

static void endpoint_link_info_of(const struct endpoint *endpoint, struct rddp_qp_info *info)
{
    const struct conn *conn = &endpoint->conn;
    struct link_counts counts;

    info->wire = conn->wire == &wire_rdmatcp ? RDDP_WIRE_RDMATCP : RDDP_WIRE_IWARP;
    info->mpa_revision = conn->start.revision;
    info->crc = conn->agreed.crc;
    info->tx_markers = conn->agreed.tx_markers;
    info->rx_markers = conn->agreed.rx_markers;
    info->ird = conn->start.ird;
    info->ord = conn->start.ord;
    info->emss = conn->attr.emss;
    info->own_tcp = !endpoint->link->kind->in_order;
    link_count(endpoint->link, &counts);
    info->placed_early = counts.placed_early;
    info->kept_max = counts.kept_max;
    info->sent_again = counts.sent_again;
}

static void close_carrier(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;

    link_close(endpoint->link);
    transfer_take_out_back(endpoint);
    if (endpoint->carry.at)
        pool_put(&loop->carries, endpoint->carry.at);
    if (loop->stage.owner == endpoint)
        loop->stage.owner = NULL;
}

static const struct endpoint_kind stream = {
    .termination = "Terminate",
    .post = endpoint_link_post,
    .work = endpoint_link_work,
    .rest = endpoint_link_rest,
    .tick = endpoint_link_tick,
    .owes = endpoint_link_owes,
    .poll = poll_link,
    .polls_for_sleepers = true,
    .stay_out = link_stay_out,
    .accept = endpoint_link_accept_conn,
    .reject = reject_conn,
    .finish = endpoint_link_finish,
    .detach = endpoint_link_detach,
    .lost = endpoint_link_lost,
    .fill_event = endpoint_link_fill_event,
    .info = endpoint_link_info_of,
    .close = close_carrier,
};

/* --- what the link says ------------------------------------------------------------------------------------------- */

/* Reads what has arrived before evaluating other events, because reading tells more about the end. */
void endpoint_link_event(struct endpoint *endpoint, unsigned events)
{
    if (!endpoint->link->is_up) {
        endpoint_fail_to_connect(endpoint, endpoint->link->error);
        return;
    }
    if (events & LINK_UP)
        link_names(endpoint->link, &endpoint->local, &endpoint->peer);
    endpoint->is_up = true;
    if (events & LINK_WRITABLE)
        endpoint->blocked = false;
    if (transfer_wants(endpoint))
        transfer_receive(endpoint);
    else if (events & LINK_LOST)
        conn_lost(&endpoint->conn, transfer_fault_of(endpoint->link->error));
    else if (events & LINK_ENDED)
        conn_rx_end_unread(&endpoint->conn, reactor_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

/* The callback of a link, by the driver. */
static void on_link(struct link *link, unsigned events)
{
    struct endpoint *endpoint = link->owner;

    endpoint_hold(endpoint);
    endpoint_link_event(endpoint, events);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

static void own_link(struct endpoint *endpoint, struct link *link)
{
    endpoint->link = link;
    link->owner = endpoint;
    link->on_event = on_link;
    endpoint->is_up = link->is_up;
    link_names(link, &endpoint->local, &endpoint->peer);
}

/* In place of the one that it has. */
static void put_link(struct endpoint *endpoint, struct link *link)
{
    if (endpoint->loop->resting == endpoint)
        endpoint->loop->resting = NULL;
    link_close(endpoint->link);
    own_link(endpoint, link);
    endpoint->blocked = false;
    endpoint->emss_us = 0;
}

struct endpoint *endpoint_new(struct loop *loop, struct link *link)
{
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
    int error = endpoint ? endpoint_begin(endpoint, loop, &stream) : -ENOMEM;

    if (error) {
        link_close(link);
        free(endpoint);
        errno = -error;
        return NULL;
    }
    endpoint->life = &endpoint->conn.life;
    own_link(endpoint, link);
    return endpoint;
}

void endpoint_exchange_link(struct endpoint *endpoint, struct link *link)
{
    put_link(endpoint, link);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}
