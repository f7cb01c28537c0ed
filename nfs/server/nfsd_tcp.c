/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_tcp.c - TCP listeners and connections: accepts them, reads calls, and decides when a peer is not read. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nfs/server/nfsd_tcp.h"
#include "rpc/clock.h"
#include "rpc/eviction.h"

enum { BACKLOG = 128, STAGE = 65536, READS = 8, PRESSED = 8 };

/* --- the end of a connection ----------------------------------------------------------------------------------- */

void nfstcp_close(struct tcp_conn *conn)
{
    if (conn->source.fd < 0)
        return;
    /* Counted first: a peer that sees the connection closed has its place back. */
    if (conn->is_unadmitted)
        conn->nfsd->tcp.unadmitted--;
    else
        atomic_fetch_sub(&conn->nfsd->counters.tcp_connections, 1);
    if (conn->packet)
        conn->stream->close(conn);
    else
        close(conn->source.fd);
    conn->source.fd = -1;
    record_fini(&conn->rx);
    free(conn->carry);
    conn->carry = NULL;
    conn->carried = 0;
    nfstcp_abandon(conn);
    conn->nfsd->tcp.resume = true;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

static void nfsd_tcp_want(struct tcp_conn *conn)
{
    bool reads = !conn->over && !conn->nfsd->stopping && conn->carried == 0 && nfstcp_may_call(conn);
    uint32_t events = (reads ? EPOLLIN : 0U) | (conn->blocked ? EPOLLOUT : 0U);

    if (conn->source.fd < 0 || conn->packet || events == conn->events)
        return;
    if (events & ~conn->events & EPOLLIN)
        conn->moved_ms = clock_ms(); /* the peer was not read until now, so its silence does not count */
    conn->events = events;
    source_change(conn->nfsd, &conn->source, events);
}

static bool take_record(struct tcp_conn *conn)
{
    size_t length;
    uint8_t *record = record_take(&conn->rx, &length);

    return nfstcp_call(conn, record, length, NULL, -1);
}

/* Parses received octets; what is left when the connection may have no more calls is kept in `carry`. Returns false if
 * the stream is broken. */
static bool nfsd_tcp_eat(struct tcp_conn *conn, const uint8_t *from, size_t n)
{
    while (n && nfstcp_may_call(conn)) {
        size_t eaten;
        int error = record_eat(&conn->rx, from, n, &eaten);

        if (error < 0 || (error > 0 && !take_record(conn)))
            return false;
        from += eaten;
        n -= eaten;
    }
    if (n) {
        conn->carry = malloc(n);
        if (!conn->carry)
            return false;
        memcpy(conn->carry, from, n);
        conn->carried = n;
    }
    return true;
}

static bool eat_carried(struct tcp_conn *conn)
{
    uint8_t *carry = conn->carry;
    size_t n = conn->carried;
    bool good;

    conn->carry = NULL;
    conn->carried = 0;
    good = nfsd_tcp_eat(conn, carry, n);
    free(carry);
    return good;
}

/* Reads an open fragment into its buffer, and the octets behind it into the stage. */
static ssize_t read_once(struct tcp_conn *conn, bool *good)
{
    struct iovec iov[2];
    size_t space;
    uint8_t *at;
    ssize_t n;

    space = record_space(&conn->rx, &at);
    iov[0] = (struct iovec){at, space};
    iov[1] = (struct iovec){conn->nfsd->tcp.stage, STAGE};
    n = space ? readv(conn->source.fd, iov, 2) : read(conn->source.fd, iov[1].iov_base, STAGE);
    if (n <= 0)
        return n;
    conn->moved_ms = clock_ms();
    space = space < (size_t)n ? space : (size_t)n;
    if (space && record_put(&conn->rx, space) && !take_record(conn))
        *good = false;
    else
        *good = nfsd_tcp_eat(conn, conn->nfsd->tcp.stage, (size_t)n - space);
    return n;
}

static void read_conn(struct tcp_conn *conn)
{
    bool good = true;

    for (int i = 0; i < READS && good && conn->carried == 0 && nfstcp_may_call(conn); i++) {
        ssize_t n = read_once(conn, &good);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            conn->over = true;
        if (n == 0 || (n < 0 && errno == EAGAIN))
            break;
        if (n < 0)
            good = false;
        else if (n < STAGE)
            break;
    }
    /* A peer may shut down its sending side and wait for replies. */
    if (!good || (conn->over && conn->owner.jobs == 0))
        nfstcp_close(conn);
}

static void conn_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    struct tcp_conn *conn = (struct tcp_conn *)source;

    (void)d;
    if (conn->source.fd < 0)
        return;
    if (events & EPOLLERR || (events & EPOLLHUP && !(events & EPOLLIN))) {
        nfstcp_close(conn);
        return;
    }
    if (events & EPOLLOUT && !nfstcp_send(conn)) {
        nfstcp_close(conn);
        return;
    }
    if (events & EPOLLIN && !conn->over)
        read_conn(conn);
    nfsd_tcp_want(conn);
}

/* --- accepting ------------------------------------------------------------------------------------------------- */

/* Lists the connections of admitted peers, or those of the others. Returns their number. */
static unsigned list_places(const struct nfsd *d, bool unadmitted, struct rpc_eviction *place, struct tcp_conn **conns)
{
    uint64_t now = clock_ms();
    unsigned n = 0;

    for (struct tcp_conn *conn = d->tcp.conns; conn; conn = conn->next) {
        if (conn->source.fd < 0 || conn->is_unadmitted != unadmitted)
            continue;
        conns[n] = conn;
        place[n++] = (struct rpc_eviction){
            .peer = &conn->peer, .idle_ms = now - conn->moved_ms, .is_busy = conn->owner.jobs > conn->outs};
    }
    return n;
}

/* Peers that are not admitted have a few places of their own, so that they take none from those that are. */
static bool nfsd_tcp_make_place(struct nfsd *d, bool unadmitted, const struct sockaddr_storage *peer)
{
    struct eviction_limits limits = {d->attr.connections_max, d->attr.address_max, d->attr.rest_ms};
    unsigned n = unadmitted ? d->tcp.unadmitted : atomic_load(&d->counters.tcp_connections);
    struct rpc_eviction *place = calloc(n + 1, sizeof(*place));
    struct tcp_conn **conns = calloc(n + 1, sizeof(struct tcp_conn *));
    int found = PLACE_NONE;

    if (unadmitted)
        limits = (struct eviction_limits){NFSD_UNADMITTED_MAX, NFSD_UNADMITTED_MAX, 0};
    if (place && conns)
        found = eviction_find_fair(place, list_places(d, unadmitted, place, conns), &limits, peer);
    if (found >= 0)
        nfstcp_close(conns[found]);
    free(place);
    free(conns);
    return found != PLACE_NONE;
}

struct tcp_conn *nfstcp_add(struct nfsd *d, int fd, const struct sockaddr_storage *peer)
{
    bool unadmitted = !nfsd_admits(d, peer);
    struct tcp_conn *conn = nfsd_tcp_make_place(d, unadmitted, peer) ? calloc(1, sizeof(*conn)) : NULL;

    if (!conn)
        return NULL;
    conn->source.fd = fd;
    conn->nfsd = d;
    conn->peer = *peer;
    conn->out_last = &conn->out;
    conn->moved_ms = clock_ms();
    conn->events = EPOLLIN;
    conn->is_unadmitted = unadmitted;
    record_init(&conn->rx, unadmitted ? NFSD_UNADMITTED : d->attr.record_max);
    conn->next = d->tcp.conns;
    d->tcp.conns = conn;
    if (unadmitted)
        d->tcp.unadmitted++;
    else
        atomic_fetch_add(&d->counters.tcp_connections, 1);
    return conn;
}

static void nfstcp_accept_one(struct nfsd *d, int fd, const struct sockaddr_storage *peer)
{
    struct tcp_conn *conn = nfstcp_add(d, fd, peer);
    int one = 1;

    if (!conn) {
        close(fd);
        return;
    }
    conn->source.ready = conn_ready;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (source_watch(d, &conn->source, conn->events) != 0)
        nfstcp_close(conn);
}

/* A listener stays readable while the process has no free descriptors. It is not polled for a while; its peers wait in
 * the backlog. */
static void pause_listener(struct nfsd *d, struct tcp_listener *listener)
{
    listener->paused = true;
    source_change(d, &listener->source, 0);
}

static void listener_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    struct tcp_listener *listener = (struct tcp_listener *)source;

    (void)events;
    for (int i = 0; i < BACKLOG; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t length = sizeof(peer);
        int fd = accept4(source->fd, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            nfstcp_accept_one(d, fd, &peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_listener(d, listener);
            return;
        } else if (errno == EAGAIN) {
            return;
        } /* on other errors the peer has gone already; try the next one */
    }
}

int nfstcp_listen(struct nfsd *d, const struct sockaddr *addr, socklen_t length)
{
    struct tcp_listener *listener = &d->tcp.listener[d->tcp.listeners];
    int one = 1, fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    *listener = (struct tcp_listener){.source = {.ready = listener_ready, .fd = fd}};
    error = bind(fd, addr, length) != 0 || listen(fd, BACKLOG) != 0 ? -errno : 0;
    if (error == 0)
        error = source_watch(d, &listener->source, EPOLLIN);
    if (error)
        close(fd);
    else
        d->tcp.listeners++;
    return error;
}

/* --- turns ----------------------------------------------------------------------------------------------------- */

static void send_dirty(struct tcp *tcp)
{
    while (tcp->dirty) {
        struct tcp_conn *conn = tcp->dirty;

        tcp->dirty = conn->next_dirty;
        conn->dirty = false;
        if (conn->source.fd >= 0 && !conn->blocked && !nfstcp_send(conn))
            nfstcp_close(conn);
        nfsd_tcp_want(conn);
    }
}

/* Goes on with connections that were not read because they had too many calls in work. */
static void nfsd_tcp_resume(struct tcp *tcp)
{
    for (struct tcp_conn **at = &tcp->conns, *conn; (conn = *at);) {
        if (conn->source.fd >= 0 && conn->carried && nfstcp_may_call(conn) && !conn->nfsd->stopping &&
            !eat_carried(conn))
            nfstcp_close(conn);
        if (conn->over && conn->owner.jobs == 0 && conn->carried == 0 && !conn->packet)
            nfstcp_close(conn);
        nfsd_tcp_want(conn);
        if (conn->source.fd < 0 && conn->owner.jobs == 0 && !conn->dirty) {
            *at = conn->next;
            if (conn->packet)
                conn->stream->free(conn);
            free(conn);
        } else {
            at = &conn->next;
        }
    }
}

void nfstcp_turn(struct nfsd *d)
{
    /* Sending a reply may admit a waiting call, which may be answered at once. */
    while (d->tcp.dirty || d->tcp.resume || d->memory.freed) {
        send_dirty(&d->tcp);
        jobs_resume(d);
        if (d->tcp.resume) {
            d->tcp.resume = false;
            nfsd_tcp_resume(&d->tcp);
        }
    }
}

/* How long nothing moved; a connection may have moved after `now_ms`. */
static uint64_t still_ms(const struct tcp_conn *conn, uint64_t now_ms)
{
    return conn->moved_ms < now_ms ? now_ms - conn->moved_ms : 0;
}

void nfstcp_tick(struct nfsd *d, uint64_t now_ms)
{
    uint64_t limit;

    for (unsigned i = 0; i < d->tcp.listeners; i++) {
        struct tcp_listener *listener = &d->tcp.listener[i];

        if (listener->paused && !d->stopping)
            source_change(d, &listener->source, EPOLLIN);
        listener->paused = false;
    }
    /* When others wait for memory, a peer that takes no replies has less time. */
    limit = memory_is_pressed(&d->memory) ? d->attr.idle_ms / PRESSED : d->attr.idle_ms;
    for (struct tcp_conn *conn = d->tcp.conns; conn; conn = conn->next) {
        bool open = record_is_open(&conn->rx) || (conn->packet && conn->stream->is_open(conn));
        bool stuck = open && nfstcp_may_call(conn) && still_ms(conn, now_ms) >= d->attr.idle_ms;
        bool waits = conn->out || (conn->packet && conn->stream->waits(conn));

        if (conn->source.fd >= 0 && (stuck || (waits && still_ms(conn, now_ms) >= limit)))
            nfstcp_close(conn);
    }
}

bool nfstcp_is_quiet(const struct nfsd *d)
{
    for (const struct tcp_conn *conn = d->tcp.conns; conn; conn = conn->next)
        if (conn->source.fd >= 0 && (conn->out || (conn->packet && conn->stream->waits(conn))))
            return false;
    return true;
}

/* --- the beginning and the end --------------------------------------------------------------------------------- */

int nfstcp_init(struct nfsd *d)
{
    d->tcp.stage = malloc(STAGE);
    return d->tcp.stage ? replay_init(&d->tcp.replay, NFSD_REPLAYS) : -ENOMEM;
}

void nfstcp_stop(struct nfsd *d)
{
    for (unsigned i = 0; i < d->tcp.listeners; i++)
        source_change(d, &d->tcp.listener[i].source, 0);
    for (struct tcp_conn *conn = d->tcp.conns; conn; conn = conn->next)
        nfsd_tcp_want(conn);
}

void nfstcp_fini(struct nfsd *d)
{
    for (struct tcp_conn *conn = d->tcp.conns; conn; conn = conn->next)
        nfstcp_close(conn);
    d->tcp.resume = true;
    nfstcp_turn(d);
    while (d->tcp.listeners)
        close(d->tcp.listener[--d->tcp.listeners].source.fd);
    replay_fini(&d->tcp.replay);
    free(d->tcp.stage);
}
