/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* option.c - options, flags and names of rsockets. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "verbs/rsock/rsock_datagram.h"

/* Options that are an int and say nothing to the connection. */
static const struct remembered {
    int level, name;
    size_t at;
} remembered[] = {
    {SOL_SOCKET, SO_REUSEADDR, offsetof(struct rs_options, reuse_addr)},
    {SOL_SOCKET, SO_REUSEPORT, offsetof(struct rs_options, reuse_port)},
    {SOL_SOCKET, SO_KEEPALIVE, offsetof(struct rs_options, keepalive)},
    {SOL_SOCKET, SO_OOBINLINE, offsetof(struct rs_options, oob_inline)},
    {IPPROTO_TCP, TCP_NODELAY, offsetof(struct rs_options, no_delay)},
    {IPPROTO_TCP, TCP_MAXSEG, offsetof(struct rs_options, max_segment)},
    {IPPROTO_TCP, TCP_KEEPIDLE, offsetof(struct rs_options, keep_idle)},
    {IPPROTO_TCP, TCP_KEEPINTVL, offsetof(struct rs_options, keep_interval)},
    {IPPROTO_TCP, TCP_KEEPCNT, offsetof(struct rs_options, keep_count)},
    {IPPROTO_IPV6, IPV6_V6ONLY, offsetof(struct rs_options, v6_only)},
};

/* Sizes, which the connection is made with. The kernel doubles those of buffers. */
static const struct sized {
    int level, name;
    size_t at;
    uint32_t factor, least, most;
} sized[] = {
    {SOL_SOCKET, SO_SNDBUF, offsetof(struct rs_sizes, send_buffer), 2, RS_BUFFER_MIN, RS_BUFFER_MAX},
    {SOL_SOCKET, SO_RCVBUF, offsetof(struct rs_sizes, recv_buffer), 2, RS_BUFFER_MIN, RS_BUFFER_MAX},
    {SOL_RDMA, RDMA_SQSIZE, offsetof(struct rs_sizes, send_queue), 1, RS_QUEUE_MIN, RS_QUEUE_MAX},
    {SOL_RDMA, RDMA_RQSIZE, offsetof(struct rs_sizes, recv_queue), 1, RS_QUEUE_MIN, RS_QUEUE_MAX},
    {SOL_RDMA, RDMA_INLINE, offsetof(struct rs_sizes, inline_data), 1, RS_INLINE_MIN, RS_INLINE_MAX},
    {SOL_RDMA, RDMA_IOMAPSIZE, offsetof(struct rs_sizes, iomaps), 1, 0, RS_IOMAPS_MAX},
};

static int *find_remembered(struct rs_options *options, int level, int name)
{
    for (size_t i = 0; i < sizeof(remembered) / sizeof(remembered[0]); i++)
        if (remembered[i].level == level && remembered[i].name == name)
            return (int *)((char *)options + remembered[i].at);
    return NULL;
}

static const struct sized *find_sized(int level, int name)
{
    for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]); i++)
        if (sized[i].level == level && sized[i].name == name)
            return &sized[i];
    return NULL;
}

static uint32_t *size_at(struct rsocket *rs, const struct sized *size)
{
    return (uint32_t *)((char *)&rs->sizes + size->at);
}

/* Two of them are rdma_cm's, too. */
static int report_id(struct rsocket *rs, int level, int name, int value)
{
    int option;

    if (level == SOL_SOCKET && name == SO_REUSEADDR)
        option = RDMA_OPTION_ID_REUSEADDR;
    else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
        option = RDMA_OPTION_ID_AFONLY;
    else
        return 0;
    if (rs->state != RS_NEW || rs->is_bound)
        return 0;
    return rdma_set_option(rs->id, RDMA_OPTION_ID, option, &value, sizeof(value)) ? errno : 0;
}

/* What a connection was made with does not change: a size of buffers comes too late, as TCP's may; another is refused.
 */
static int size_set(struct rsocket *rs, const struct sized *size, int value)
{
    if (rs->datagrams ? rs_datagram_is_open(rs) : rs->state != RS_NEW && rs->state != RS_LISTENING)
        return size->level == SOL_RDMA ? EINVAL : 0;
    if (value < 0)
        return EINVAL;
    *size_at(rs, size) = rs_bounded((int64_t)value * size->factor, size->least, size->most);
    return 0;
}

static int option_set(struct rsocket *rs, int level, int name, const void *value, socklen_t length)
{
    const struct sized *size = find_sized(level, name);
    int *at = find_remembered(&rs->options, level, name), number;

    if (rs->datagrams && !size) /* a socket of UDP knows what its options mean */
        return setsockopt(rs->datagrams->udp, level, name, value, length) ? errno : 0;
    if (level == SOL_SOCKET && name == SO_LINGER) {
        if (length < sizeof(struct linger))
            return EINVAL;
        memcpy(&rs->options.linger, value, sizeof(struct linger));
        return 0;
    }
    if (!size && !at)
        return ENOPROTOOPT;
    if (length < sizeof(number))
        return EINVAL;
    memcpy(&number, value, sizeof(number));
    if (size)
        return size_set(rs, size, number);
    *at = number;
    return report_id(rs, level, name, number);
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
    struct rsocket *rs = rs_get(socket);
    int error;

    if (!rs)
        return -1;
    rs_lock(rs);
    error = optval ? option_set(rs, level, optname, optval, optlen) : EFAULT;
    return rs_leave(rs, error);
}

int rs_take_error(struct rsocket *rs)
{
    int error = rs->error;

    rs->error = 0;
    return error;
}

/* What is answered, and remembered by nothing. */
static int fact_get(struct rsocket *rs, int name, int *value)
{
    switch (name) {
    case SO_ERROR:
        rs_advance(rs);
        *value = rs_take_error(rs);
        return 0;
    case SO_TYPE:
        *value = SOCK_STREAM;
        return 0;
    case SO_DOMAIN:
        *value = rs->family;
        return 0;
    case SO_ACCEPTCONN:
        *value = rs->state == RS_LISTENING;
        return 0;
    default:
        return ENOPROTOOPT;
    }
}

static int option_get(struct rsocket *rs, int level, int name, void *value, socklen_t *length)
{
    const struct sized *size = find_sized(level, name);
    const int *at = find_remembered(&rs->options, level, name);
    int number = 0, error = 0;

    if (rs->datagrams && !size && (level != SOL_SOCKET || name != SO_ERROR))
        return getsockopt(rs->datagrams->udp, level, name, value, length) ? errno : 0;
    if (level == SOL_SOCKET && name == SO_LINGER) {
        if (*length > sizeof(struct linger))
            *length = sizeof(struct linger);
        memcpy(value, &rs->options.linger, *length);
        return 0;
    }
    if (size)
        number = (int)*size_at(rs, size);
    else if (at)
        number = *at;
    else
        error = level == SOL_SOCKET ? fact_get(rs, name, &number) : ENOPROTOOPT;
    if (error)
        return error;
    if (*length > sizeof(number))
        *length = sizeof(number);
    memcpy(value, &number, *length);
    return 0;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
    struct rsocket *rs = rs_get(socket);
    int error;

    if (!rs)
        return -1;
    rs_lock(rs);
    error = optval && optlen ? option_get(rs, level, optname, optval, optlen) : EFAULT;
    return rs_leave(rs, error);
}

int rfcntl(int socket, int cmd, ...)
{
    struct rsocket *rs = rs_get(socket);
    int error = 0, result = 0;
    va_list arguments;

    if (!rs)
        return -1;
    va_start(arguments, cmd);
    rs_lock(rs);
    switch (cmd) {
    case F_GETFL:
        result = O_RDWR | (rs->is_nonblocking ? O_NONBLOCK : 0);
        break;
    case F_SETFL:
        rs->is_nonblocking = va_arg(arguments, int) & O_NONBLOCK;
        break;
    case F_GETFD:
        result = fcntl(socket, F_GETFD);
        break;
    case F_SETFD:
        result = fcntl(socket, F_SETFD, va_arg(arguments, int));
        break;
    default:
        error = EINVAL;
    }
    va_end(arguments);
    return rs_leave(rs, error) ? -1 : result;
}

void rs_copy_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *length)
{
    const socklen_t whole = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    memcpy(to, from, *length < whole ? *length : whole);
    *length = whole;
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rsocket *rs = rs_get(socket);
    struct sockaddr_storage none = {0};
    const struct sockaddr *name = (struct sockaddr *)&none;

    if (!rs)
        return -1;
    rs_lock(rs);
    if (rs->datagrams)
        return rs_leave(rs, getsockname(rs->datagrams->udp, addr, addrlen) ? errno : 0);
    none.ss_family = (sa_family_t)rs->family;
    if (rs->id && rs->id->route.addr.src_addr.sa_family)
        name = &rs->id->route.addr.src_addr;
    rs_copy_address(name, addr, addrlen);
    return rs_leave(rs, 0);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rsocket *rs = rs_get(socket);
    int error = 0;

    if (!rs)
        return -1;
    rs_lock(rs);
    if (rs->datagrams)
        error = getpeername(rs->datagrams->udp, addr, addrlen) ? errno : 0;
    else if (rs->state < RS_ACCEPTING)
        error = ENOTCONN;
    else
        rs_copy_address(&rs->id->route.addr.dst_addr, addr, addrlen);
    return rs_leave(rs, error);
}
