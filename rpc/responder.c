/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.c - the answering end: a listener and its connections. */
#include "rpc/responder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/clock.h"
#include "rpc/responder_inner.h"
#include "rpc/eviction.h"

enum { LISTEN_BACKLOG = 64 };

/* --- connections ----------------------------------------------------------------------------------------------- */

static struct private responder_mine(const struct responder *r)
{
    if (!r->attr.private_data)
        return (struct private){PRIVATE_SIZE_MIN, PRIVATE_SIZE_MIN, false};
    return (struct private){r->attr.send_size, r->attr.receive_size, true};
}

void conn_take_down(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;
    uint32_t tag = conn->tag;

    rpc_link_close(&conn->link);
    serve_abandon(conn);
    backward_abandon(conn);
    if (conn->pd)
        rddp_dealloc_pd(conn->pd);
    r->slot[tag] = NULL;
    r->slot_idle[r->slots_idle++] = tag;
    r->stats.connections--;
    free(conn);
}

/* Everything that the peer may use with its first Send is ready before the connection is accepted. */
static int responder_accept_conn(struct responder *r, struct rpc_conn *conn, struct rddp_event *event)
{
    struct private sizes = responder_mine(r);
    uint8_t data[PRIVATE_OCTETS];
    struct rddp_conn_attr attr;
    struct link_attr link = {.receives = r->attr.credits + r->attr.backward_credits,
                             .receive_size = r->attr.receive_size,
                             .sends = r->attr.credits + r->attr.backward_credits + CONN_SENDS_SPARE,
                             .send_size = r->attr.send_size,
                             .cq = r->cq,
                             .tag = conn->tag,
                             .user = conn};
    int error;

    link.queue = link.sends + CONN_RDMA;
    conn->pd = rddp_alloc_pd(r->context);
    if (!conn->pd)
        return -ENOMEM;
    error = rpc_link_open(&conn->link, conn->pd, &link);
    if (error)
        return error;
    rpc_link_agree(&conn->link, &sizes, event->private_data, event->private_data_length);
    rddp_conn_attr_init(&attr);
    private_encode(data, &sizes);
    if (r->attr.private_data) {
        attr.private_data = data;
        attr.private_data_length = sizeof(data);
    }
    error = rddp_accept(event->request, conn->link.qp, &attr);
    event->request = NULL;
    return error;
}

/* Finds the connection to close so that one from `peer` can be accepted. */
static int responder_find_place(const struct responder *r, const struct sockaddr_storage *peer, struct rpc_conn **loser)
{
    const struct place_limits limits = {r->attr.connections_max, r->attr.address_max, r->attr.rest_ms};
    struct rpc_place *place = calloc(r->attr.connections_max, sizeof(*place));
    struct rpc_conn **conns = calloc(r->attr.connections_max, sizeof(struct rpc_conn *));
    unsigned n = 0;
    int found = PLACE_NONE;

    for (uint32_t i = 0; place && conns && i < r->attr.connections_max; i++) {
        struct rpc_conn *conn = r->slot[i];

        if (!conn)
            continue;
        conns[n] = conn;
        place[n++] = (struct rpc_place){
            .peer = &conn->peer,
            .idle_ms = r->now_ms - (conn->heard_ms > conn->moved_ms ? conn->heard_ms : conn->moved_ms),
            .is_busy = conn->is_dirty || conn->calls || conn->back_queued || conn->back_sent,
        };
    }
    if (place && conns)
        found = place_find(place, n, &limits, peer);
    *loser = found >= 0 ? conns[found] : NULL;
    free(place);
    free(conns);
    return found;
}

static bool responder_make_place(struct responder *r, const struct sockaddr_storage *peer)
{
    struct rpc_conn *loser;
    int found;

    if (r->attr.admit && !r->attr.admit(r->attr.user, peer))
        return false;
    if (r->dying)
        responder_reap(r);
    found = responder_find_place(r, peer, &loser);
    if (found < 0)
        return found == PLACE_FREE;
    r->stats.displaced++;
    conn_take_down(loser);
    return true;
}

static void responder_take_request(struct responder *r, struct rddp_event *event)
{
    struct sockaddr_storage peer = {0};
    struct rpc_conn *conn = NULL;

    if (rddp_request_addr(event->request, &peer) == 0 && responder_make_place(r, &peer))
        conn = calloc(1, sizeof(*conn));
    if (conn) {
        *conn = (struct rpc_conn){.responder = r, .back_granted = 1, .tag = r->slot_idle[--r->slots_idle]};
        conn->peer = peer;
        conn->heard_ms = r->now_ms;
        r->slot[conn->tag] = conn;
        r->stats.connections++;
        r->stats.accepted++;
        if (responder_accept_conn(r, conn, event) != 0)
            conn_end(conn);
    }
    if (!event->request)
        return;
    r->stats.rejected++;
    rddp_reject(event->request, NULL, 0);
}

bool responder_take_events(struct responder *r)
{
    struct rddp_event *event;
    bool any = false;

    while (rddp_get_event(r->events, &event) == 0) {
        any = true;
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            responder_take_request(r, event);
        else if (event->type != RDDP_EVENT_ESTABLISHED)
            conn_end(event->user);
        rddp_ack_event(event);
    }
    return any;
}

/* --- the responder --------------------------------------------------------------------------------------------- */

void responder_attr_init(struct responder_attr *attr)
{
    struct rddp_context_attr context;

    *attr = (struct responder_attr){.credits = 64, .send_size = 4096, .receive_size = 4096, .private_data = true};
    attr->read_max = (1 << 20) + 65536;
    attr->connections_max = 256;
    attr->rest_ms = 1000;
    attr->stall_ms = 30000;
    attr->backward_credits = 2;
    attr->replay_entries = 1024;
    attr->replay_octets = 8192;
    attr->memory_max = 512 << 20;
    attr->spin_us = 20;
    rddp_context_attr_init(&context);
    attr->log_level = context.log_level;
    rddp_wire_attr_init(&attr->wire);
}

static int responder_watch(struct responder *r, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &event);
}

/* The most completions that one connection can have outstanding. */
static uint32_t completions(const struct responder *r)
{
    return 2 * (r->attr.credits + r->attr.backward_credits) + CONN_SENDS_SPARE + CONN_RDMA;
}

static bool open_slots(struct responder *r)
{
    uint32_t n = COMPLETIONS_MAX / completions(r);

    if (r->attr.connections_max > n)
        r->attr.connections_max = n;
    r->slot = calloc(r->attr.connections_max, sizeof(*r->slot));
    r->slot_idle = calloc(r->attr.connections_max, sizeof(*r->slot_idle));
    if (!r->slot || !r->slot_idle)
        return false;
    while (r->slots_idle < r->attr.connections_max) {
        r->slot_idle[r->slots_idle] = r->attr.connections_max - 1 - r->slots_idle;
        r->slots_idle++;
    }
    return true;
}

/* The context has no thread: responder_run() does its work, and the caller may sleep in poll(). */
static bool responder_open_objects(struct responder *r)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.log_level = r->attr.log_level;
    attr.log = rpc_log_line;
    attr.log_user = &r->log;
    attr.manual_progress = true;
    r->fd = epoll_create1(EPOLL_CLOEXEC);
    r->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    r->context = rddp_open(&attr);
    if (r->fd < 0 || r->kick < 0 || r->timer < 0 || !r->context || replay_init(&r->replay, r->attr.replay_entries) != 0)
        return false;
    r->events = rddp_create_event_channel(r->context);
    if (!open_slots(r) || !r->events)
        return false;
    r->cq = rddp_create_cq(r->context, (int)(completions(r) * r->attr.connections_max), NULL, NULL);
    return r->cq && fcntl(rddp_event_channel_fd(r->events), F_SETFL, O_NONBLOCK) == 0 &&
           responder_watch(r, r->kick) == 0 && responder_watch(r, r->timer) == 0 &&
           responder_watch(r, rddp_event_channel_fd(r->events)) == 0 &&
           responder_watch(r, rddp_progress_fd(r->context)) == 0;
}

static uint32_t responder_at_least(uint32_t v, uint32_t least)
{
    return v < least ? least : v;
}

struct responder *responder_open(const struct sockaddr *addr, socklen_t length, const struct responder_attr *attr)
{
    struct responder *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->fd = r->kick = r->timer = -1;
    r->now_ms = clock_ms();
    rpc_log_init(&r->log, attr->log, attr->user);
    r->attr = *attr;
    r->attr.private_data = attr->private_data && rpc_link_has_private_data(&attr->wire);
    r->attr.credits = responder_at_least(attr->credits, 1);
    r->attr.send_size = responder_at_least(attr->send_size, PRIVATE_SIZE_MIN);
    r->attr.receive_size = responder_at_least(attr->receive_size, PRIVATE_SIZE_MIN);
    r->attr.replay_entries = responder_at_least(attr->replay_entries, 1);
    r->attr.connections_max = responder_at_least(attr->connections_max, 1);
    if (!attr->address_max)
        r->attr.address_max = r->attr.connections_max - r->attr.connections_max / 2;
    budget_init(&r->budget, r->attr.memory_max);
    errno = ENOMEM;
    if (responder_open_objects(r))
        r->listener = rddp_listen(r->events, addr, length, LISTEN_BACKLOG, &r->attr.wire, NULL);
    if (r->listener)
        return r;
    responder_close(r);
    return NULL;
}

void responder_close(struct responder *r)
{
    struct rddp_event *event;
    int error = errno;

    if (r->listener)
        rddp_destroy_listener(r->listener);
    r->in_round = true;
    for (uint32_t i = 0; r->slot && i < r->attr.connections_max; i++)
        if (r->slot[i])
            conn_take_down(r->slot[i]);
    while (r->events && rddp_get_event(r->events, &event) == 0)
        rddp_ack_event(event);
    if (r->cq)
        rddp_destroy_cq(r->cq);
    if (r->events)
        rddp_destroy_event_channel(r->events);
    if (r->context)
        rddp_close(r->context);
    if (r->fd >= 0)
        close(r->fd);
    if (r->kick >= 0)
        close(r->kick);
    if (r->timer >= 0)
        close(r->timer);
    replay_fini(&r->replay);
    budget_fini(&r->budget);
    serve_free_spares(r);
    free(r->slot);
    free(r->slot_idle);
    free(r);
    errno = error;
}

int responder_fd(const struct responder *r)
{
    return r->fd;
}

int responder_addr(const struct responder *r, struct sockaddr_storage *addr)
{
    return rddp_listener_addr(r->listener, addr);
}

void responder_stats(const struct responder *r, struct responder_stats *stats)
{
    *stats = r->stats;
    stats->memory = r->budget.reserved;
}
