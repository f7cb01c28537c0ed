/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.c - a TCP socket and the connection on it: octets are moved between the two here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/api.h"

enum {
    TURN_OCTETS = 1 << 20, /* read from one socket, or sent to it, before the others get their turn */
    GAP_LEAST = 8192,      /* octets that are worth a read of their own */
    APART_READS = 4,       /* so many reads may bring nothing of that kind, and still the next is thought to: it ... */
    APART_ROOM = 1024,     /* ... brings no more than so many octets into the stage */
    EMSS_AGE_US = 100000,  /* TCP's segment size is looked up this often */
};

/* --- receiving: every socket reads into the one stage ---------------------------------------------------------- */

/* Another socket needs the stage: what its owner has left in it moves into a buffer of the owner's own. */
static void evict(struct progress *progress)
{
    struct stage *stage = &progress->stage;
    struct endpoint *owner = stage->owner;

    if (owner && stage->octets) {
        owner->carry = pool_get(&progress->carries);
        if (owner->carry) {
            memcpy(owner->carry, stage->room + stage->from, stage->octets);
            owner->carry_octets = stage->octets;
        } else {
            endpoint_hold(owner);
            conn_lost(&owner->conn, FAULT_MEMORY);
            loop_set_timer(&progress->loop, &owner->timer, loop_now_us()); /* tells of it in its own turn */
            endpoint_let_go(owner, ENDPOINT_POSTER);
        }
    }
    stage->owner = NULL;
    stage->from = stage->octets = 0;
}

static void occupy(struct endpoint *endpoint)
{
    struct stage *stage = &endpoint->progress->stage;

    if (stage->owner != endpoint) {
        evict(endpoint->progress);
        stage->owner = endpoint;
        if (endpoint->carry) {
            memcpy(stage->room, endpoint->carry, endpoint->carry_octets);
            stage->octets = endpoint->carry_octets;
            pool_put(&endpoint->progress->carries, endpoint->carry);
            endpoint->carry = NULL;
        }
    }
    if (stage->from + stage->octets > WIRE_UNIT_MAX) {
        memmove(stage->room, stage->room + stage->from, stage->octets);
        stage->from = 0;
    }
}

/* The connection takes what it can of what the stage has for it. */
static void eat(struct endpoint *endpoint)
{
    struct stage *stage = &endpoint->progress->stage;
    size_t eaten = conn_rx(&endpoint->conn, stage->room + stage->from, stage->octets, loop_now_us());

    stage->from += (uint32_t)eaten;
    stage->octets -= (uint32_t)eaten;
    if (!stage->octets)
        stage->from = 0;
}

/* One read, a large payload straight to its place. Octets, or as tcp_recv(); *full if there may be more. */
static ssize_t receive(struct endpoint *endpoint, bool *full)
{
    struct stage *stage = &endpoint->progress->stage;
    struct conn *conn = &endpoint->conn;
    struct conn_gap gap = {.octets = 0};
    uint32_t room = STAGE_OCTETS, placed = 0;
    uint8_t *end;
    ssize_t n;

    occupy(endpoint);
    if (stage->octets && conn_gap(conn, stage->room + stage->from, &stage->octets, GAP_LEAST, &gap, loop_now_us()))
        endpoint->apart = APART_READS;
    if (endpoint->apart) {
        endpoint->apart -= !gap.octets;
        room = gap.behind + APART_ROOM;
    }
    end = stage->room + stage->from + stage->octets;
    n = gap.octets ? tcp_recv_apart(endpoint->watch.fd, gap.at, gap.octets, end, room)
                   : tcp_recv(endpoint->watch.fd, end, room);
    if (n <= 0)
        return n;
    *full = n == gap.octets + room;
    if (gap.octets) {
        placed = n < gap.octets ? (uint32_t)n : gap.octets;
        conn_filled(conn, placed);
    }
    stage->octets += (uint32_t)n - placed;
    eat(endpoint);
    return n;
}

/* What it had to leave there, and perhaps in a buffer of its own since. */
static void eat_again(struct endpoint *endpoint)
{
    occupy(endpoint);
    eat(endpoint);
}

/* Whether octets are wanted does not depend on the time, and a poller has none to spare for looking at the clock. */
static bool wants_octets(const struct endpoint *endpoint)
{
    return conn_wants(&endpoint->conn, 0) & CONN_RX;
}

/* False if nothing came. */
static bool receive_all(struct endpoint *endpoint)
{
    size_t octets = 0;
    bool full = true;

    while (full && octets < TURN_OCTETS && wants_octets(endpoint)) {
        ssize_t n = receive(endpoint, &full);

        if (n == -EAGAIN)
            break;
        if (n < 0)
            conn_lost(&endpoint->conn, FAULT_LOST);
        else if (n == 0)
            conn_rx_end(&endpoint->conn, endpoint->progress->stage.octets, loop_now_us());
        else
            endpoint->progress->hot = endpoint;
        if (n <= 0)
            return true;
        octets += (size_t)n;
    }
    return octets;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

static bool lend_out(struct endpoint *endpoint)
{
    struct conn *conn = &endpoint->conn;
    struct out *out;

    if (conn->life.out)
        return true;
    out = pool_get(&endpoint->progress->outs);
    if (!out)
        return false;
    out_init(out, (uint8_t *)out + OUT_ROOM_AT);
    conn->life.out = out;
    return true;
}

static void take_out_back(struct endpoint *endpoint)
{
    if (!endpoint->conn.life.out)
        return;
    out_drop(endpoint->conn.life.out);
    pool_put(&endpoint->progress->outs, endpoint->conn.life.out);
    endpoint->conn.life.out = NULL;
}

static void look_up_emss(struct endpoint *endpoint, uint64_t now_us)
{
    if (endpoint->emss_us && now_us - endpoint->emss_us < EMSS_AGE_US)
        return;
    endpoint->emss_us = now_us;
    endpoint->conn.attr.emss = tcp_emss(endpoint->watch.fd);
}

/* Fills and sends once. False if the socket takes no more, or there is nothing. */
static bool send_some(struct endpoint *endpoint, uint64_t now_us)
{
    struct conn *conn = &endpoint->conn;
    struct out *out;
    ssize_t n;

    if (!lend_out(endpoint)) {
        conn_lost(conn, FAULT_MEMORY);
        return false;
    }
    out = conn->life.out;
    conn_fill(conn, now_us);
    if (!out->octets)
        return false;
    n = tcp_send(endpoint->watch.fd, out->span + out->first, out->spans);
    if (n == -EFAULT && out_is_volatile(out)) {
        out_own(out);
        n = tcp_send(endpoint->watch.fd, out->span + out->first, out->spans);
    }
    endpoint->blocked = n == -EAGAIN;
    if (n < 0 && n != -EAGAIN)
        conn_lost(conn, FAULT_LOST);
    if (n <= 0)
        return false;
    conn_sent(conn, (size_t)n, now_us);
    atomic_store_explicit(&endpoint->sent_us, now_us, memory_order_relaxed);
    return true;
}

/* --- the rest of its life -------------------------------------------------------------------------------------- */

static void unlink_endpoint(struct endpoint *endpoint)
{
    *endpoint->link = endpoint->next;
    if (endpoint->next)
        endpoint->next->link = endpoint->link;
}

static void link_endpoint(struct endpoint *endpoint, struct endpoint **list)
{
    endpoint->next = *list;
    endpoint->link = list;
    if (endpoint->next)
        endpoint->next->link = &endpoint->next;
    *list = endpoint;
}

/* Closed now; the struct stays until the round of the loop that may still name it is over. */
static void close_endpoint(struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;

    if (endpoint->qp) {
        endpoint_info(endpoint, &endpoint->qp->last);
        qp_set_endpoint(endpoint->qp, NULL);
    }
    if (endpoint->listener)
        request_answered(endpoint);
    loop_unwatch(&progress->loop, &endpoint->watch);
    loop_forget_timer(&progress->loop, &endpoint->timer);
    close(endpoint->watch.fd);
    take_out_back(endpoint);
    if (endpoint->carry)
        pool_put(&progress->carries, endpoint->carry);
    if (progress->stage.owner == endpoint)
        progress->stage.owner = NULL;
    if (progress->hot == endpoint)
        progress->hot = NULL;
    unlink_endpoint(endpoint);
    link_endpoint(endpoint, &progress->dead);
    endpoint->closed = true;
}

void endpoint_free_dead(struct progress *progress)
{
    struct endpoint *endpoint;

    while ((endpoint = progress->dead)) {
        unlink_endpoint(endpoint);
        free(endpoint);
    }
}

static uint32_t readiness(const struct endpoint *endpoint, unsigned wanted)
{
    uint32_t events = endpoint->blocked ? EPOLLOUT : 0;

    if (wanted & CONN_RX)
        events |= EPOLLIN;
    if (endpoint->conn.life.state == CONN_WAIT_ANSWER && !endpoint->conn.attr.immediate)
        events |= EPOLLRDHUP; /* nothing is read, but a peer that gives up is noticed */
    return events;
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
            eat_again(endpoint);
        } else if (endpoint->blocked || !send_some(endpoint, now_us)) {
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

    if (endpoint->closed || endpoint->connecting)
        return;
    look_up_emss(endpoint, now_us);
    conn_check(conn, now_us);
    if (!send_all(endpoint, role, now_us, &wanted)) {
        call_driver(endpoint, now_us);
        return;
    }
    if (wanted & CONN_FIN) {
        tcp_finish(endpoint->watch.fd);
        conn_fin(conn, now_us);
        wanted = conn_wants(conn, now_us);
    }
    if (conn->life.out && !conn->life.out->octets)
        take_out_back(endpoint);
    if (conn->life.news)
        endpoint_tell(endpoint);
    if (conn->life.state == CONN_OVER) {
        if (role == ENDPOINT_DRIVER)
            close_endpoint(endpoint);
        else
            call_driver(endpoint, now_us);
        return;
    }
    loop_rewatch(&endpoint->progress->loop, &endpoint->watch, readiness(endpoint, wanted));
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
    if (receive_all(endpoint) && (endpoint->timer.place || !conn_is_at_rest(&endpoint->conn)))
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

/* --- what the loop says ---------------------------------------------------------------------------------------- */

static void be_ready(struct endpoint *endpoint, uint32_t events)
{
    if (endpoint->connecting) {
        connect_done(endpoint, tcp_result(endpoint->watch.fd));
        return;
    }
    if (events & EPOLLOUT)
        endpoint->blocked = false;
    if (wants_octets(endpoint))
        receive_all(endpoint);
    else if (events & EPOLLRDHUP)
        conn_rx_end(&endpoint->conn, 0, loop_now_us());
    else if (events & (EPOLLERR | EPOLLHUP))
        conn_lost(&endpoint->conn, FAULT_LOST);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

static void on_ready(struct watch *watch, uint32_t events)
{
    struct endpoint *endpoint = container_of(watch, struct endpoint, watch);

    if (endpoint->closed)
        return;
    endpoint_hold(endpoint);
    be_ready(endpoint, events);
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
}

static void on_time(struct timer *timer, uint64_t now_us)
{
    struct endpoint *endpoint = container_of(timer, struct endpoint, timer);

    endpoint_hold(endpoint);
    if (endpoint->connecting) {
        connect_done(endpoint, -ETIMEDOUT);
    } else {
        conn_tick(&endpoint->conn, now_us);
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    }
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
}

static void look_up_names(struct endpoint *endpoint)
{
    socklen_t local = sizeof(endpoint->local), peer = sizeof(endpoint->peer);

    getsockname(endpoint->watch.fd, (struct sockaddr *)&endpoint->local, &local);
    getpeername(endpoint->watch.fd, (struct sockaddr *)&endpoint->peer, &peer);
}

struct endpoint *endpoint_new(struct progress *progress, int fd)
{
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
    int error = endpoint ? 0 : -ENOMEM;

    if (!error) {
        *endpoint =
            (struct endpoint){.progress = progress, .watch = {.fd = fd, .ready = on_ready}, .timer = {.fire = on_time}};
        doorbell_hold(&endpoint->bell);
        error = loop_add_timer(&progress->loop, &endpoint->timer);
    }
    if (!error && (error = loop_watch(&progress->loop, &endpoint->watch, 0)))
        loop_forget_timer(&progress->loop, &endpoint->timer);
    if (error) {
        free(endpoint);
        close(fd);
        errno = -error;
        return NULL;
    }
    look_up_names(endpoint);
    link_endpoint(endpoint, &progress->endpoints);
    return endpoint;
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
