/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.c - kernel TCP sockets, non-blocking, with Nagle off (mpa.txt 7.3). */
#include "tcp/io/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A peer that vanished is noticed after about a minute and a half. */
enum { KEEP_IDLE_S = 30, KEEP_INTERVAL_S = 10, KEEP_PROBES = 6 };

static void set_option(int fd, int level, int option, int value)
{
    /* An option that cannot be set costs performance, never correctness. */
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

static void set_stream_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES);
}

static int tcp_give_up(int fd)
{
    int error = errno;

    close(fd);
    return -error;
}

static int open_socket(const struct sockaddr *addr)
{
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

    return fd < 0 ? -errno : fd;
}

/* Connections to several peers may share the port, and one of the past does not keep it. If the kernel picks it, it
 * does so when it knows the peer. */
static int tcp_bind(int fd, const struct sockaddr *local)
{
    socklen_t length = local->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    return bind(fd, local, length);
}

int tcp_connect(const struct sockaddr *addr, socklen_t length, const struct sockaddr *local)
{
    int fd = open_socket(addr);

    if (fd < 0)
        return fd;
    set_stream_options(fd);
    if ((local && tcp_bind(fd, local)) || (connect(fd, addr, length) && errno != EINPROGRESS))
        return tcp_give_up(fd);
    return fd;
}

/* An address of no family returns a socket to where bind() left it (connect(2)). */
int tcp_connect_again(int fd, const struct sockaddr_storage *addr)
{
    const struct sockaddr none = {.sa_family = AF_UNSPEC};

    if (connect(fd, &none, sizeof(none)))
        return -errno;
    return connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) && errno != EINPROGRESS ? -errno : 0;
}

int tcp_listen(const struct sockaddr *addr, socklen_t length, int backlog)
{
    int fd = open_socket(addr);

    if (fd < 0)
        return fd;
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd, addr, length) || listen(fd, backlog))
        return tcp_give_up(fd);
    return fd;
}

int tcp_accept(int fd)
{
    int stream = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (stream < 0)
        return -errno;
    set_stream_options(stream);
    return stream;
}

static int option(int fd, int name)
{
    int value = 0;
    socklen_t length = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, name, &value, &length) ? -errno : value;
}

int tcp_adopt(int fd, bool listening)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int type = option(fd, SO_TYPE);

    if (type < 0)
        return type;
    if (type != SOCK_STREAM || option(fd, SO_PROTOCOL) != IPPROTO_TCP || option(fd, SO_ACCEPTCONN) != listening)
        return -EINVAL;
    if (!listening && getpeername(fd, (struct sockaddr *)&peer, &length))
        return -errno;
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
        return -errno;
    if (!listening)
        set_stream_options(fd);
    return 0;
}

int tcp_result(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
        return -errno;
    return -error;
}

/* A short message has one span, and send() costs less than sendmsg(). */
static ssize_t send_spans(int fd, const struct span *span, uint32_t spans, int flags)
{
    struct iovec iov[TCP_SPANS];
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = spans < TCP_SPANS ? spans : TCP_SPANS};

    if (spans == 1)
        return send(fd, span->at, span->length, flags);
    for (uint32_t i = 0; i < message.msg_iovlen; i++)
        iov[i] = (struct iovec){(void *)(uintptr_t)span[i].at, span[i].length};
    return sendmsg(fd, &message, flags);
}

ssize_t tcp_send(int fd, const struct span *span, uint32_t spans, bool record)
{
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (record ? MSG_EOR : 0);
    ssize_t n;

    do
        n = send_spans(fd, span, spans, flags);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t tcp_recv(int fd, void *to, size_t capacity)
{
    ssize_t n;

    do
        n = recv(fd, to, capacity, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t tcp_recv_apart(int fd, void *to, size_t capacity, void *then, size_t then_capacity)
{
    struct iovec iov[] = {{to, capacity}, {then, then_capacity}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n;

    do
        n = recvmsg(fd, &message, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

void tcp_finish(int fd)
{
    (void)shutdown(fd, SHUT_WR);
}

uint32_t tcp_emss(int fd)
{
    int mss = 0;
    socklen_t length = sizeof(mss);

    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &length) || mss <= 0)
        return 536; /* the default MSS (RFC 1122 4.2.2.6) */
    return (uint32_t)mss;
}
