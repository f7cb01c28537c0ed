/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.c - the answering end: a listener, connections that come and go, and whose turn it is. */
#include "rpc/responder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/clock.h"
#include "rpc/conn.h"

enum { LISTEN_BACKLOG = 64 };

/* --- connections ----------------------------------------------------------------------------------------------- */

static struct private mine(const struct responder *r)
{
    if (!r->attr.private_data)
        return (struct private){PRIVATE_SIZE_MIN, PRIVATE_SIZE_MIN, false};
    return (struct private){r->attr.send_size, r->attr.receive_size, true};
}

/* A request that was refused tells of the call that named the memory; those behind it were only flushed. */
static void note_failure(const struct link_done *done)
{
    if (done->kind == LINK_RDMA && done->wc.status != RDDP_WC_SUCCESS && done->wc.status != RDDP_WC_WR_FLUSH_ERR)
        serve_failed(done->cookie);
}

static void close_conn(struct conn *conn)
{
    struct responder *r = conn->responder;
    struct conn **at = &r->conns;

    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    link_close(&conn->link);
    serve_abandon(conn);
    backward_abandon(conn);
    if (conn->pd)
        rddp_dealloc_pd(conn->pd);
    r->stats.connections--;
    free(conn);
}

/* Everything that the peer may use from its first Send on is there before it is told. */
static int accept_conn(struct responder *r, struct conn *conn, struct rddp_event *event)
{
    struct private sizes = mine(r);
    uint8_t data[PRIVATE_OCTETS];
    struct rddp_conn_attr attr;
    struct link_attr link = {.receives = r->attr.credits + r->attr.backward_credits,
                             .receive_size = r->attr.receive_size,
                             .sends = r->attr.credits + r->attr.backward_credits + CONN_SENDS_SPARE,
                             .send_size = r->attr.send_size,
                             .user = conn};
    int rc;

    link.queue = link.sends + CONN_RDMA;
    conn->pd = rddp_alloc_pd(r->context);
    if (!conn->pd)
        return -ENOMEM;
    rc = link_open(&conn->link, r->context, conn->pd, r->channel, &link);
    if (rc)
        return rc;
    link_agree(&conn->link, &sizes, event->private_data, event->private_data_length);
    rddp_request_addr(event->request, &conn->peer);
    rddp_conn_attr_init(&attr);
    private_encode(data, &sizes);
    if (r->attr.private_data) {
        attr.private_data = data;
        attr.private_data_length = sizeof(data);
    }
    rc = rddp_accept(event->request, conn->link.qp, &attr);
    event->request = NULL;
    return rc;
}

static void take_request(struct responder *r, struct rddp_event *event)
{
    struct conn *conn = r->stats.connections < r->attr.connections_max ? calloc(1, sizeof(*conn)) : NULL;

    if (conn) {
        *conn = (struct conn){.responder = r, .next = r->conns, .back_granted = 1};
        r->conns = conn;
        r->stats.connections++;
        r->stats.accepted++;
        if (accept_conn(r, conn, event) != 0)
            conn->dead = true;
    }
    if (event->request)
        rddp_reject(event->request, NULL, 0);
}

static bool take_events(struct responder *r)
{
    struct rddp_event *event;
    bool any = false;

    while (rddp_get_event(r->events, &event) == 0) {
        any = true;
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            take_request(r, event);
        else if (event->type != RDDP_EVENT_ESTABLISHED)
            ((struct conn *)event->user)->dead = true;
        rddp_ack_event(event);
    }
    return any;
}

static void reap(struct responder *r)
{
    struct link_done done;

    for (struct conn *conn = r->conns, *next; conn; conn = next) {
        next = conn->next;
        if (!conn->dead)
            continue;
        r->stats.lost++;
        for (uint32_t left = conn->link.attr.queue + conn->link.attr.receives; left; left--)
            if (link_poll(&conn->link, &done) != 0)
                note_failure(&done);
        close_conn(conn);
    }
}

/* --- completions ----------------------------------------------------------------------------------------------- */

static void drain(struct conn *conn)
{
    struct link_done done;
    int n = 1;

    while (!conn->dead && (n = link_poll(&conn->link, &done)) > 0) {
        if (done.kind == LINK_RECEIVE)
            serve_receive(conn, &done);
        else if (done.kind == LINK_RDMA)
            serve_transferred(done.cookie);
        if (done.kind != LINK_RECEIVE && !conn->dead) {
            serve_waiting(conn);
            backward_send(conn);
        }
    }
    if (n < 0) {
        note_failure(&done);
        conn->dead = true;
    }
}

static bool take_completions(struct responder *r)
{
    struct rddp_cq *cq;
    void *user;
    bool any = false;

    while (rddp_get_cq_event(r->channel, &cq, &user) == 0) {
        struct conn *conn = user;

        any = true;
        if (conn->dead || rddp_req_notify_cq(cq, false) != 0)
            conn->dead = true;
        drain(conn);
    }
    return any;
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

void responder_attr_init(struct responder_attr *attr)
{
    *attr = (struct responder_attr){.credits = 64, .send_size = 4096, .receive_size = 4096, .private_data = true};
    attr->read_max = (1 << 20) + 65536;
    attr->connections_max = 256;
    attr->backward_credits = 2;
    attr->replay_entries = 1024;
    attr->replay_octets = 8192;
    attr->log_level = RDDP_LOG_ERROR;
    rddp_wire_attr_init(&attr->wire);
}

static int watch(struct responder *r, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        return -1;
    return epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &event);
}

static bool open_objects(struct responder *r)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.log_level = r->attr.log_level;
    r->fd = epoll_create1(EPOLL_CLOEXEC);
    r->context = rddp_open(&attr);
    if (r->fd < 0 || !r->context || replay_init(&r->replay, r->attr.replay_entries) != 0)
        return false;
    r->events = rddp_create_event_channel(r->context);
    r->channel = rddp_create_comp_channel(r->context);
    return r->events && r->channel && watch(r, rddp_event_channel_fd(r->events)) == 0 &&
           watch(r, rddp_comp_channel_fd(r->channel)) == 0;
}

static uint32_t at_least(uint32_t v, uint32_t least)
{
    return v < least ? least : v;
}

struct responder *responder_open(const struct sockaddr *addr, socklen_t length, const struct responder_attr *attr)
{
    struct responder *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->attr = *attr;
    r->attr.credits = at_least(attr->credits, 1);
    r->attr.send_size = at_least(attr->send_size, PRIVATE_SIZE_MIN);
    r->attr.receive_size = at_least(attr->receive_size, PRIVATE_SIZE_MIN);
    r->attr.replay_entries = at_least(attr->replay_entries, 1);
    errno = ENOMEM;
    if (open_objects(r))
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
    while (r->conns)
        close_conn(r->conns);
    while (r->events && rddp_get_event(r->events, &event) == 0)
        rddp_ack_event(event);
    if (r->channel)
        rddp_destroy_comp_channel(r->channel);
    if (r->events)
        rddp_destroy_event_channel(r->events);
    if (r->context)
        rddp_close(r->context);
    if (r->fd >= 0)
        close(r->fd);
    replay_fini(&r->replay);
    free(r);
    errno = error;
}

int responder_run(struct responder *r, int timeout_ms)
{
    struct pollfd fd = {.fd = r->fd, .events = POLLIN};
    bool any;

    any = take_events(r);
    any |= take_completions(r);
    reap(r);
    if (any || timeout_ms == 0)
        return 0;
    if (poll(&fd, 1, timeout_ms) < 0)
        return -errno;
    take_events(r);
    take_completions(r);
    reap(r);
    return 0;
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
}
