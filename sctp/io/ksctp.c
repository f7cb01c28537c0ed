/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ksctp.c - associations of the kernel's SCTP: made, accepted, read, written to, ended. */
#include "sctp/io/ksctp.h"

#include <errno.h>
#include <linux/sctp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loop/descriptors.h"
#include "sctp/io/ksctp_inner.h"
#include "sctp/io/ksctp_socket.h"
#include "loop/reactor.h"

enum { EVENTS = 64, BACKLOG = 128, SPANS_MAX = 64 };

/* What is its parent's a child of fork() can close, and nothing else. */
static bool ksctp_is_ours(const struct ksctp_port *port)
{
    return port->pid == getpid();
}

/* --- sockets ------------------------------------------------------------------------------------------------- */

static int ksctp_watch(struct ksctp_port *port, int fd, struct ksctp *s)
{
    struct epoll_event event = {.events = s ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN, .data.ptr = s};

    return epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* A child of fork() may keep the file open: closing it is not enough to end its events. */
static void ksctp_unwatch(const struct ksctp_port *port, int fd)
{
    if (fd >= 0 && ksctp_is_ours(port))
        epoll_ctl(port->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static int ksctp_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr,
                      struct sctp_socket **out, const char **why)
{
    struct ksctp_port *port;
    int fd, error;

    if (length < sctp_address_length(local->sa_family) || attr->addresses >= SCTP_ADDRESSES_MAX)
        return -EINVAL;
    fd = ksctp_socket_open(local->sa_family, attr, why);
    if (fd < 0)
        return fd;
    port = malloc(sizeof(*port));
    if (!port) {
        close(fd);
        return -ENOMEM;
    }
    memset(port, 0, offsetof(struct ksctp_port, message));
    port->base.provider = &ksctp;
    port->attr = *attr;
    port->fd = fd;
    port->pid = getpid();
    memcpy(&port->local, local, sctp_address_length(local->sa_family));
    port->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (port->epoll_fd < 0) {
        error = -errno;
        close(fd);
        free(port);
        return error;
    }
    port->base.fd = port->epoll_fd;
    *out = &port->base;
    return 0;
}

static void ksctp_local(struct sctp_socket *base, struct sockaddr_storage *local)
{
    socklen_t length = sizeof(*local);

    if (getsockname(ksctp_port_of(base)->fd, (struct sockaddr *)local, &length))
        *local = ksctp_port_of(base)->local;
}

/* Binds `first` and the further addresses, or these alone if it is NULL. */
static int ksctp_bind(const struct ksctp_port *port, const struct sockaddr_storage *first, uint16_t sctp_port)
{
    struct sockaddr_storage own[SCTP_ADDRESSES_MAX];
    uint32_t n = 0;

    if (first)
        own[n++] = *first;
    for (uint32_t i = 0; i < port->attr.addresses; i++)
        own[n++] = port->attr.address[i];
    return ksctp_socket_bind(port->fd, own, n, sctp_port);
}

static int ksctp_listen(struct sctp_socket *base, uint16_t sctp_port)
{
    struct ksctp_port *port = ksctp_port_of(base);
    int error = ksctp_bind(port, &port->local, sctp_port);

    if (!error && listen(port->fd, BACKLOG))
        error = -errno;
    if (!error)
        error = ksctp_watch(port, port->fd, NULL);
    port->listens = !error;
    return error;
}

/* Associations at a socket that is closed like this are aborted. */
static void close_at_once(const struct ksctp_port *port, int fd)
{
    struct linger at_once = {.l_onoff = 1};

    if (fd < 0 || !descriptors_are_ours())
        return;
    if (ksctp_is_ours(port))
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

static void ksctp_free(struct ksctp *s)
{
    struct ksctp **at = &s->port->assocs;

    ksctp_unwatch(s->port, s->fd);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->ready) {
        for (at = &s->port->ready; *at != s;)
            at = &(*at)->next_ready;
        *at = s->next_ready;
    }
    if (s->has_kept)
        sctp_news_free(&s->kept);
    if (s->fd != s->port->fd)
        close_at_once(s->port, s->fd);
    free(s);
}

static void ksctp_unlisten(struct sctp_socket *base)
{
    struct ksctp_port *port = ksctp_port_of(base);
    struct ksctp *s;

    while ((s = port->arrived)) {
        port->arrived = s->next_ready;
        ksctp_free(s);
    }
    ksctp_unwatch(port, port->fd);
    close_at_once(port, port->fd);
    port->fd = -1;
    port->listens = false;
}

static void ksctp_close_socket(struct sctp_socket *base)
{
    struct ksctp_port *port = ksctp_port_of(base);

    ksctp_unlisten(base);
    descriptor_close(port->epoll_fd);
    free(port);
}

/* --- associations -------------------------------------------------------------------------------------------- */

static void ksctp_mark_ready(struct ksctp *s)
{
    if (s->ready || !s->accepted)
        return;
    s->ready = true;
    s->next_ready = s->port->ready;
    s->port->ready = s;
}

static struct ksctp *ksctp_new(struct ksctp_port *port, int fd)
{
    struct ksctp *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    *s = (struct ksctp){.port = port, .fd = fd, .next = port->assocs};
    port->assocs = s;
    return s;
}

static int ksctp_connect(struct sctp_socket *base, const struct sockaddr *peer, struct sctp_assoc **assoc)
{
    struct ksctp_port *port = ksctp_port_of(base);
    struct sockaddr_storage source;
    struct ksctp *s;
    const struct sockaddr_storage *first = sctp_is_wildcard(&port->local) ? NULL : &port->local;
    int error = 0;

    if (!first && !port->attr.addresses) {
        error = ksctp_socket_source(peer, &source);
        first = &source;
    }
    if (!error)
        error = ksctp_bind(port, first, port->attr.local_port);
    if (error)
        return error;
    s = ksctp_new(port, port->fd);
    if (!s)
        return -ENOMEM;
    s->accepted = true;
    s->begun_us = reactor_now_us();
    memcpy(&s->peer, peer, sctp_address_length(peer->sa_family));
    error = ksctp_watch(port, s->fd, s);
    if (!error && connect(s->fd, peer, sctp_address_length(peer->sa_family)) && errno != EINPROGRESS)
        error = -errno;
    if (error)
        ksctp_free(s);
    else
        *assoc = &s->base;
    return error;
}

/* --- what is sent -------------------------------------------------------------------------------------------- */

static int ksctp_transmit(int fd, sctp_assoc_t id, struct iovec *iov, size_t n, uint16_t stream, uint16_t flags,
                          uint32_t ppid)
{
    union {
        struct cmsghdr align;
        char buffer[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
    } control = {0};
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = flags, .snd_ppid = htonl(ppid), .snd_assoc_id = id};
    struct msghdr m = {
        .msg_iov = iov, .msg_iovlen = n, .msg_control = control.buffer, .msg_controllen = sizeof(control.buffer)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = IPPROTO_SCTP;
    c->cmsg_type = SCTP_SNDINFO;
    c->cmsg_len = CMSG_LEN(sizeof(info));
    memcpy(CMSG_DATA(c), &info, sizeof(info));
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool ksctp_enter(struct sctp_socket *base, bool wait)
{
    (void)base;
    (void)wait;
    return true;
}

static void ksctp_leave(struct sctp_socket *base)
{
    (void)base;
}

/* Will an event follow: there is space again, or, which tells more than the errno, the association has ended? */
static bool ksctp_will_notify(const struct ksctp *s, int error)
{
    return error == -EAGAIN || (!s->over && (error == -EPIPE || error == -ENOTCONN || error == -ESHUTDOWN ||
                                             error == -ECONNRESET || error == -ECONNREFUSED || error == -ETIMEDOUT));
}

static int ksctp_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream,
                        uint32_t ppid, bool more)
{
    struct ksctp *s = ksctp_of(base);
    struct iovec iov[SPANS_MAX];
    int error;

    (void)more; /* a system call for each message leaves the kernel none to wait for */
    if (spans > SPANS_MAX)
        return -EMSGSIZE;
    for (uint32_t i = 0; i < spans; i++)
        iov[i] = (struct iovec){(void *)(uintptr_t)span[i].at, span[i].length};
    error = ksctp_transmit(s->fd, s->id, iov, spans, stream, SCTP_UNORDERED, ppid);
    return ksctp_will_notify(s, error) ? -EAGAIN : error;
}

static void ksctp_shutdown(struct sctp_assoc *base)
{
    struct ksctp *s = ksctp_of(base);

    ksctp_transmit(s->fd, s->id, NULL, 0, 0, SCTP_EOF, 0);
}

static void ksctp_abort(struct sctp_assoc *base, const char *reason, size_t octets)
{
    struct ksctp *s = ksctp_of(base);
    struct iovec iov = {(void *)(uintptr_t)reason, octets};

    s->over = true;
    ksctp_transmit(s->fd, s->id, &iov, 1, 0, SCTP_ABORT, 0);
}

/* --- who arrives --------------------------------------------------------------------------------------------- */

/* It gets a socket of its own, and takes what has come for it along. */
static void arrive(struct ksctp_port *port, sctp_assoc_t id)
{
    sctp_peeloff_flags_arg_t own = {.p_arg = {.associd = id}, .flags = SOCK_NONBLOCK | SOCK_CLOEXEC};
    socklen_t length = sizeof(own);
    struct ksctp *s;

    if (getsockopt(port->fd, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF_FLAGS, &own, &length) < 0) {
        ksctp_transmit(port->fd, id, NULL, 0, 0, SCTP_ABORT, 0); /* no descriptor for it */
        return;
    }
    s = ksctp_new(port, own.p_arg.sd);
    if (!s) {
        close_at_once(port, own.p_arg.sd);
        return;
    }
    s->id = id;
    s->up_due = true;
    ksctp_look(s); /* who the peer is */
    if (ksctp_watch(port, s->fd, s)) {
        ksctp_free(s);
        return;
    }
    s->next_ready = port->arrived;
    port->arrived = s;
}

/* Only new associations matter here: all other events are of associations without a socket of their own. */
static void read_listener(struct ksctp_port *port)
{
    struct ksctp unknown = {.port = port};
    struct sctp_news news;
    enum ksctp_item item;

    for (unsigned i = 0; port->listens && i < EVENTS; i++) {
        unknown.over = unknown.counted = false;
        item = ksctp_read(&unknown, port->fd, &news);
        if (item == ITEM_NONE)
            return;
        if (item == ITEM_NEWS && news.kind == SCTP_NEWS_UP)
            arrive(port, unknown.id);
        else if (item == ITEM_NEWS)
            sctp_news_free(&news);
    }
}

static bool ksctp_drive(struct sctp_socket *base)
{
    struct ksctp_port *port = ksctp_port_of(base);
    struct epoll_event events[EVENTS];
    int n = epoll_wait(port->epoll_fd, events, EVENTS, 0);

    for (int i = 0; i < n; i++)
        if (events[i].data.ptr)
            ksctp_mark_ready(events[i].data.ptr);
        else
            read_listener(port);
    return n == EVENTS;
}

static struct sctp_assoc *ksctp_accept(struct sctp_socket *base)
{
    struct ksctp_port *port = ksctp_port_of(base);
    struct ksctp *s = port->arrived;

    if (!s)
        return NULL;
    port->arrived = s->next_ready;
    s->accepted = true;
    ksctp_mark_ready(s);
    return &s->base;
}

static void *ksctp_ready(struct sctp_socket *base)
{
    struct ksctp_port *port = ksctp_port_of(base);
    struct ksctp *s;

    while ((s = port->ready)) {
        port->ready = s->next_ready;
        s->ready = false;
        if (s->base.owner)
            return s->base.owner;
    }
    return NULL;
}

static void ksctp_names(struct sctp_assoc *base, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    struct ksctp *s = ksctp_of(base);
    socklen_t length = sizeof(*local);

    *peer = s->peer;
    *local = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (getsockname(s->fd, (struct sockaddr *)local, &length))
        local->ss_family = AF_UNSPEC;
}

/* Tells the peer: the last close of the file, which would, may be a child's. */
static void ksctp_close(struct sctp_assoc *base)
{
    struct ksctp *s = ksctp_of(base);

    if (!s->over && ksctp_is_ours(s->port))
        ksctp_transmit(s->fd, s->id, NULL, 0, 0, SCTP_ABORT, 0);
    ksctp_free(s);
}

const struct sctp_provider ksctp = {
    .open = ksctp_open,
    .close_socket = ksctp_close_socket,
    .local = ksctp_local,
    .listen = ksctp_listen,
    .unlisten = ksctp_unlisten,
    .accept = ksctp_accept,
    .connect = ksctp_connect,
    .drive = ksctp_drive,
    .ready = ksctp_ready,
    .next = ksctp_next,
    .enter = ksctp_enter,
    .leave = ksctp_leave,
    .submit = ksctp_submit,
    .shutdown = ksctp_shutdown,
    .abort = ksctp_abort,
    .names = ksctp_names,
    .close = ksctp_close,
};
