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

int source_watch(struct nfsd *d, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    return epoll_ctl(d->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0 ? 0 : -errno;
}

void source_change(struct nfsd *d, const struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = (void *)(uintptr_t)source};

    epoll_ctl(d->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

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
    for (struct work *work = workers_take(d->workers), *next; work; work = next) {
        struct nfsd_job *job = (struct nfsd_job *)work;

        next = work->next;
        d->in_work--;
        if (work == &d->tend)
            d->is_tending = false;
        else if (job->search)
            nfsd_search(d, job);
        else
            job_finish(job);
    }
}

static void mounted_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
    for (struct work *work = workers_take(d->mounter), *next; work; work = next) {
        next = work->next;
        d->in_work--;
        job_finish((struct nfsd_job *)work);
    }
}

static void found_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
    nfsd_search_done(d);
}

static int open_threads(struct nfsd *d)
{
    struct source *source[] = {&d->stop, &d->done, &d->found, &d->mounted};
    int error = 0;

    d->workers = workers_open(d->attr.workers);
    d->searcher = workers_open(1);
    d->mounter = workers_open(1);
    if (!d->workers || !d->searcher || !d->mounter)
        return -errno;
    d->done = (struct source){.ready = done_ready, .fd = workers_fd(d->workers)};
    d->found = (struct source){.ready = found_ready, .fd = workers_fd(d->searcher)};
    d->mounted = (struct source){.ready = mounted_ready, .fd = workers_fd(d->mounter)};
    for (size_t i = 0; error == 0 && i < sizeof(source) / sizeof(*source); i++)
        error = source_watch(d, source[i], EPOLLIN);
    return error;
}

static int open_all(struct nfsd *d, char *message)
{
    int error;

    snprintf(message, EXPORT_TEXT, "cannot start: ");
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    d->stop = (struct source){.ready = stop_ready, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    error = d->epoll < 0 || d->stop.fd < 0 ? -errno : nfstcp_init(d);
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

    if (!d) {
        snprintf(message, EXPORT_TEXT, "out of memory");
        return NULL;
    }
    d->attr = *attr;
    nfsd_log_init(d);
    for (unsigned i = 0; i < attr->server->exports; i++)
        d->in_memory = d->in_memory || attr->server->export[i].in_memory;
    if (!d->attr.address_max)
        d->attr.address_max = attr->connections_max - attr->connections_max / 2;
    memory_init(&d->memory, attr->memory_max);
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

static void tend(struct work *work)
{
    struct nfsd *d = (struct nfsd *)((char *)work - offsetof(struct nfsd, tend));

    atomic_store(&d->is_open, objects_tend(d->attr.server->objects));
}

static void nfsd_tick(struct nfsd *d, uint64_t now)
{
    if (now - d->ticked_ms < NFSD_TICK_MS && now - d->ticked_ms < d->attr.idle_ms / 4)
        return;
    d->ticked_ms = now;
    nfstcp_tick(d, now);
    if (d->is_tending || d->stopping)
        return;
    d->is_tending = true;
    d->in_work++;
    d->tend.run = tend;
    workers_give(d->workers, &d->tend);
}

/* Milliseconds until the next tick, which finds stalled peers and unused objects; -1 if there is nothing to look
 * after. */
static int wait_ms(const struct nfsd *d)
{
    bool alone = !d->tcp.conns && !atomic_load(&d->counters.rdma_connections) && !atomic_load(&d->is_open);
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

/* Finishes and answers all calls before the transports close. */
void nfsd_close(struct nfsd *d)
{
    d->stopping = true;
    drop_waiting(d);
    while (d->in_work) {
        struct pollfd done[] = {{.fd = workers_fd(d->workers), .events = POLLIN},
                                {.fd = workers_fd(d->searcher), .events = POLLIN},
                                {.fd = workers_fd(d->mounter), .events = POLLIN}};

        poll(done, sizeof(done) / sizeof(*done), -1);
        done_ready(d, &d->done, 0);
        nfsd_search_done(d);
        mounted_ready(d, &d->mounted, 0);
    }
    nfsrdma_fini(d);
    nfstcp_fini(d);
    if (d->workers)
        workers_close(d->workers);
    if (d->searcher)
        workers_close(d->searcher);
    if (d->mounter)
        workers_close(d->mounter);
    if (d->stop.fd >= 0)
        close(d->stop.fd);
    if (d->epoll >= 0)
        close(d->epoll);
    memory_fini(&d->memory);
    free(d);
}
