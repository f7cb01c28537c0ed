/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.c - the NFS server: opens the listeners and runs the main thread, which waits for them and for the workers. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nfs/server/nfsd_in.h"
#include "rpc/clock.h"

enum { EVENTS = 64, STOP_MS = 2000 };

/* --- listening ------------------------------------------------------------------------------------------------- */

typedef int listen_on(struct nfsd *d, const struct sockaddr *addr, socklen_t length);

/* Tries IPv6 first: an IPv6 socket on the wildcard address also serves IPv4, but not vice versa. */
static int try_families(struct nfsd *d, const struct addrinfo *list, listen_on *try)
{
    int error = -EADDRNOTAVAIL;

    for (int pass = 0; pass < 2; pass++)
        for (const struct addrinfo *a = list; a; a = a->ai_next) {
            if ((a->ai_family == AF_INET6) != (pass == 0))
                continue;
            error = try(d, a->ai_addr, a->ai_addrlen);
            /* IPv4 alone would not help either. */
            if (error == 0 || error == -EADDRINUSE || error == -EACCES)
                return error;
        }
    return error;
}

static int nfsd_listen_at(struct nfsd *d, int port, listen_on *try, const char *what, char *message)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_PASSIVE}, *list = NULL;
    const char *address = d->attr.address;
    char service[16];
    int error;

    snprintf(service, sizeof(service), "%d", port);
    error = getaddrinfo(address, service, &hints, &list);
    if (error) {
        snprintf(message, EXPORT_TEXT, "cannot resolve %s: %s", address ? address : "an address", gai_strerror(error));
        return -EADDRNOTAVAIL;
    }
    error = try_families(d, list, try);
    freeaddrinfo(list);
    if (error)
        snprintf(message, EXPORT_TEXT, "cannot listen for %s on port %d of %s: %s", what, port,
                 address ? address : "any address", strerror(-error));
    return error;
}

static int nfsd_port_of(const struct sockaddr_storage *addr)
{
    uint16_t port;

    /* Both address families have the port at the same offset. */
    memcpy(&port, (const uint8_t *)addr + offsetof(struct sockaddr_in, sin_port), sizeof(port));
    return ntohs(port);
}

static int tcp_port_of(const struct tcp_listener *listener)
{
    struct sockaddr_storage addr = {0};
    socklen_t length = sizeof(addr);

    getsockname(listener->source.fd, (struct sockaddr *)&addr, &length);
    return nfsd_port_of(&addr);
}

static int open_listeners(struct nfsd *d, char *message)
{
    const struct nfsd_attr *attr = &d->attr;
    struct sockaddr_storage addr;
    int error = 0;

    d->rdma_port = d->tcp_port = d->mount_port = -1;
    if (attr->rdma_port >= 0) {
        error = nfsd_listen_at(d, attr->rdma_port, nfsrdma_listen, "NFS over RDMA", message);
        if (error == 0 && responder_addr(d->rdma.responder, &addr) == 0)
            d->rdma_port = nfsd_port_of(&addr);
    }
    if (error == 0 && attr->tcp_port >= 0) {
        error = nfsd_listen_at(d, attr->tcp_port, nfstcp_listen, "NFS over TCP", message);
        if (error == 0)
            d->mount_port = d->tcp_port = tcp_port_of(&d->tcp.listener[0]);
    }
    if (error == 0 && attr->mount_port >= 0 && (attr->mount_port == 0 || attr->mount_port != d->tcp_port)) {
        error = nfsd_listen_at(d, attr->mount_port, nfstcp_listen, "MOUNT", message);
        if (error == 0)
            d->mount_port = tcp_port_of(&d->tcp.listener[d->tcp.listeners - 1]);
    }
    if (error == 0 && attr->net) {
        error = nfspacket_listen(d);
        if (error)
            snprintf(message, EXPORT_TEXT, "cannot listen behind the TUN device: %s", strerror(-error));
    }
    return error;
}

/* --- opening --------------------------------------------------------------------------------------------------- */

void nfsd_attr_init(struct nfsd_attr *attr)
{
    struct rddp_context_attr context;

    *attr = (struct nfsd_attr){.rdma_port = NFS_RDMA_PORT, .tcp_port = NFS_PORT, .mount_port = MOUNT_PORT};
    attr->workers = 4;
    attr->connections_max = 256;
    attr->rest_ms = 1000;
    attr->memory_max = 512 << 20;
    attr->record_max = RECORD_MAX;
    attr->calls_max = 64;
    attr->credits = 64;
    attr->idle_ms = 30000;
    rddp_context_attr_init(&context);
    attr->log_level = context.log_level;
    rddp_wire_attr_init(&attr->wire);
}

static void stop_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
    source_change(d, &d->stop, 0);
    d->stopping = true;
    nfstcp_stop(d);
}

static void done_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
    for (struct work *work = finished_take(&d->finished), *next; work; work = next) {
        next = work->next;
        d->in_work--;
        work->done(work);
    }
}

static int open_threads(struct nfsd *d)
{
    const struct nfs_server *server = d->attr.server;

    d->export = calloc(server->exports ? server->exports : 1, sizeof(*d->export));
    for (unsigned i = 0; d->export && i < server->exports; i++) {
        struct nfsd_export *e = &d->export[i];

        *e = (struct nfsd_export){.nfsd = d, .export = &server->export[i]};
        e->calls = workers_open(&d->finished, d->attr.workers);
        e->mounts = workers_open(&d->finished, 1);
        e->searches = workers_open(&d->finished, 1);
        if (!e->calls || !e->mounts || !e->searches)
            return -ENOMEM;
    }
    return d->export ? 0 : -ENOMEM;
}

static void close_threads(struct nfsd *d)
{
    for (unsigned i = 0; d->export && i < d->attr.server->exports; i++) {
        struct workers *const pool[] = {d->export[i].calls, d->export[i].mounts, d->export[i].searches};

        for (size_t k = 0; k < sizeof(pool) / sizeof(*pool); k++)
            if (pool[k])
                workers_close(pool[k]);
    }
    free(d->export);
}

static int open_sources(struct nfsd *d)
{
    int error;

    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    d->stop = (struct source){.ready = stop_ready, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    if (d->epoll < 0 || d->stop.fd < 0)
        return -errno;
    error = source_watch(d, &d->stop, EPOLLIN);
    d->done = (struct source){.ready = done_ready, .fd = d->finished.fd};
    return error ? error : source_watch(d, &d->done, EPOLLIN);
}

static int open_all(struct nfsd *d, char *message)
{
    int error = open_sources(d);

    if (error == 0)
        error = nfstcp_init(d);
    if (error == 0)
        error = open_threads(d);
    if (error)
        snprintf(message, EXPORT_TEXT, "cannot start: %s", strerror(-error));
    return error ? error : open_listeners(d, message);
}

struct nfsd *nfsd_open(const struct nfsd_attr *attr, char *message)
{
    struct nfsd *d = calloc(1, sizeof(*d));
    int error;

    if (!d || finished_init(&d->finished)) {
        snprintf(message, EXPORT_TEXT, "out of memory or descriptors");
        free(d);
        return NULL;
    }
    d->attr = *attr;
    nfsd_log_init(d);
    if (!d->attr.address_max)
        d->attr.address_max = attr->connections_max - attr->connections_max / 2;
    memory_init(&d->memory, attr->memory_max, attr->memory_max / (attr->server->exports > 1 ? 2 : 1));
    error = open_all(d, message);
    if (error == 0)
        return d;
    nfsd_close(d);
    errno = -error;
    return NULL;
}

int nfsd_rdma_port(const struct nfsd *d)
{
    return d->rdma_port;
}

int nfsd_tcp_port(const struct nfsd *d)
{
    return d->tcp_port;
}

int nfsd_mount_port(const struct nfsd *d)
{
    return d->mount_port;
}

/* --- running --------------------------------------------------------------------------------------------------- */

static struct nfsd_export *export_of_tend(struct work *work)
{
    return (struct nfsd_export *)((char *)work - offsetof(struct nfsd_export, tend));
}

static void run_tend(struct work *work)
{
    struct nfsd_export *e = export_of_tend(work);

    objects_tend(e->nfsd->attr.server->objects, e->export);
}

static void run_settle(struct work *work)
{
    struct nfsd_export *e = export_of_tend(work);

    objects_settle(e->nfsd->attr.server->objects, e->export);
}

static void tend_done(struct work *work)
{
    export_of_tend(work)->is_tending = false;
}

/* Closes objects: all that are unused, or those that have left the cache. While this waits for a file system, it is not
 * begun again there. */
static void tend(struct nfsd *d, bool unused)
{
    const struct nfs_server *server = d->attr.server;

    for (unsigned i = 0; i < server->exports && !d->stopping; i++) {
        struct nfsd_export *e = &d->export[i];

        if (e->is_tending || !(unused || objects_are_unsettled(server->objects, e->export)))
            continue;
        e->tend = (struct work){.run = unused ? run_tend : run_settle, .done = tend_done};
        e->is_tending = workers_give(e->calls, &e->tend);
        d->in_work += e->is_tending;
    }
}

static void nfsd_tick(struct nfsd *d, uint64_t now)
{
    if (now - d->ticked_ms < NFSD_TICK_MS && now - d->ticked_ms < d->attr.idle_ms / 4)
        return;
    d->ticked_ms = now;
    nfstcp_tick(d, now);
    if (objects_are_open(d->attr.server->objects))
        tend(d, true);
}

/* Milliseconds until the next tick, which finds stalled peers and unused objects; -1 if there is nothing to look
 * after. */
static int wait_ms(const struct nfsd *d)
{
    bool alone =
        !d->tcp.conns && !atomic_load(&d->counters.rdma_connections) && !objects_are_open(d->attr.server->objects);
    uint32_t ms = d->attr.idle_ms / 4 < NFSD_TICK_MS ? d->attr.idle_ms / 4 : NFSD_TICK_MS;

    for (unsigned i = 0; i < d->tcp.listeners; i++)
        alone = alone && !d->tcp.listener[i].paused;
    return alone && !d->stopping ? -1 : (int)ms + 1;
}

static int nfsd_turn(struct nfsd *d)
{
    struct epoll_event event[EVENTS];
    uint64_t now = clock_ms();
    int n = epoll_wait(d->epoll, event, EVENTS, wait_ms(d));

    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n; i++) {
        struct source *source = event[i].data.ptr;

        source->ready(d, source, event[i].events);
    }
    if (d->rdma.answered)
        nfsrdma_run(d);
    nfspacket_turn(d);
    /* What arrived until `now` has been read: a peer's silence is its own, however long the server got no processor. */
    nfsd_tick(d, now);
    if (objects_are_open(d->attr.server->objects))
        tend(d, false);
    nfstcp_turn(d);
    return 0;
}

int nfsd_run(struct nfsd *d)
{
    int error = 0;
    uint64_t until;

    while (error == 0 && !d->stopping)
        error = nfsd_turn(d);
    /* Finish the calls that have begun and send their replies, as long as their peers receive them, for STOP_MS at
     * most. */
    until = clock_ms() + STOP_MS;
    while (error == 0 && (d->in_work || !nfstcp_is_quiet(d) || !nfsrdma_is_quiet(d)) && clock_ms() < until)
        error = nfsd_turn(d);
    identity_drop();
    return error;
}

void nfsd_stop(struct nfsd *d)
{
    static const uint64_t one = 1;
    int error = errno;

    if (write(d->stop.fd, &one, sizeof(one)) < 0)
        errno = error; /* EAGAIN: the eventfd is readable already */
}

void nfsd_stats(struct nfsd *d, struct nfsd_stats *stats)
{
    struct counters *c = &d->counters;

    *stats = (struct nfsd_stats){.calls = atomic_load(&c->calls),
                                 .errors = atomic_load(&c->errors),
                                 .replayed = atomic_load(&c->replayed) + atomic_load(&c->rdma_replayed),
                                 .read_octets = atomic_load(&c->read_octets),
                                 .written_octets = atomic_load(&c->written_octets),
                                 .placed_octets = atomic_load(&c->placed_octets),
                                 .rdma_connections = atomic_load(&c->rdma_connections),
                                 .tcp_connections = atomic_load(&c->tcp_connections)};
}

/* --- closing --------------------------------------------------------------------------------------------------- */

static void drop_waiting(struct nfsd *d)
{
    struct nfsd_job *job = memory_withdraw(&d->memory, NULL);

    while (job) {
        struct nfsd_job *next = job->next;

        job->ops->drop(job);
        job = next;
    }
}

/* Finishes and answers the calls that have begun, for STOP_MS at most. Returns whether none is left. */
static bool finish_calls(struct nfsd *d)
{
    uint64_t until = clock_ms() + STOP_MS, now;

    while (d->in_work && (now = clock_ms()) < until) {
        struct pollfd done = {.fd = d->finished.fd, .events = POLLIN};

        poll(&done, 1, (int)(until - now));
        done_ready(d, &d->done, 0);
    }
    return !d->in_work;
}

bool nfsd_close(struct nfsd *d)
{
    d->stopping = true;
    drop_waiting(d);
    if (!finish_calls(d))
        return false;
    nfsrdma_fini(d);
    nfstcp_fini(d);
    close_threads(d);
    finished_fini(&d->finished);
    if (d->stop.fd >= 0)
        close(d->stop.fd);
    if (d->epoll >= 0)
        close(d->epoll);
    memory_fini(&d->memory);
    free(d);
    return true;
}
