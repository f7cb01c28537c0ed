/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interpose.c - librspreload.so: the calls of TCP programs go to rsockets. A socket of a stream of IPv4 or IPv6 is one;
 * every other descriptor is left to the C library. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "verbs/preload/program_fds.h"

INTERPOSE(int, socket, int domain, int type, int protocol)
{
    const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    int rs;

    if ((domain != AF_INET && domain != AF_INET6) || kind != SOCK_STREAM || (protocol && protocol != IPPROTO_TCP) ||
        held_is_ours(__builtin_return_address(0)))
        return real()->socket(domain, type, protocol);
    rs = rsocket(domain, type, protocol);
    return rs < 0 ? -1 : held_open(rs);
}

INTERPOSE(int, bind, int fd, const struct sockaddr *address, socklen_t length)
{
    int rs = held(fd);

    return rs < 0 ? real()->bind(fd, address, length) : rbind(rs, address, length);
}

INTERPOSE(int, listen, int fd, int backlog)
{
    int rs = held(fd);

    return rs < 0 ? real()->listen(fd, backlog) : rlisten(rs, backlog);
}

INTERPOSE(int, accept4, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    int rs = held(fd), accepted;

    if (rs < 0)
        return real()->accept4(fd, address, length, flags);
    accepted = raccept(rs, address, length);
    if (accepted < 0)
        return -1;
    if (flags & SOCK_NONBLOCK)
        rfcntl(accepted, F_SETFL, O_NONBLOCK);
    return held_open(accepted);
}

INTERPOSE(int, accept, int fd, struct sockaddr *address, socklen_t *length)
{
    return held(fd) < 0 ? real()->accept(fd, address, length) : preload_accept4(fd, address, length, 0);
}

INTERPOSE(int, connect, int fd, const struct sockaddr *address, socklen_t length)
{
    int rs = held(fd);

    return rs < 0 ? real()->connect(fd, address, length) : rconnect(rs, address, length);
}

INTERPOSE(int, shutdown, int fd, int how)
{
    int rs = held(fd);

    return rs < 0 ? real()->shutdown(fd, how) : rshutdown(rs, how);
}

INTERPOSE(int, close, int fd)
{
    return held_close(fd);
}

INTERPOSE(int, dup, int from)
{
    int rs = held(from), fd = real()->dup(from);

    if (fd >= 0 && rs >= 0)
        held_share(fd, rs);
    return fd;
}

INTERPOSE(int, dup2, int from, int to)
{
    int rs = held(from), fd = real()->dup2(from, to);

    if (fd >= 0 && from != to)
        held_replace(to, rs);
    return fd;
}

INTERPOSE(int, dup3, int from, int to, int flags)
{
    int rs = held(from), fd = real()->dup3(from, to, flags);

    if (fd >= 0)
        held_replace(to, rs);
    return fd;
}

INTERPOSE(ssize_t, recv, int fd, void *to, size_t n, int flags)
{
    int rs = held(fd);

    return rs < 0 ? real()->recv(fd, to, n, flags) : rrecv(rs, to, n, flags);
}

INTERPOSE(ssize_t, recvfrom, int fd, void *to, size_t n, int flags, struct sockaddr *address, socklen_t *length)
{
    int rs = held(fd);

    return rs < 0 ? real()->recvfrom(fd, to, n, flags, address, length) : rrecvfrom(rs, to, n, flags, address, length);
}

INTERPOSE(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
    int rs = held(fd);

    return rs < 0 ? real()->recvmsg(fd, message, flags) : rrecvmsg(rs, message, flags);
}

INTERPOSE(ssize_t, read, int fd, void *to, size_t n)
{
    int rs = held(fd);

    return rs < 0 ? real()->read(fd, to, n) : rread(rs, to, n);
}

INTERPOSE(ssize_t, readv, int fd, const struct iovec *iov, int count)
{
    int rs = held(fd);

    return rs < 0 ? real()->readv(fd, iov, count) : rreadv(rs, iov, count);
}

INTERPOSE(ssize_t, send, int fd, const void *from, size_t n, int flags)
{
    int rs = held(fd);

    return rs < 0 ? real()->send(fd, from, n, flags) : rsend(rs, from, n, flags);
}

INTERPOSE(ssize_t, sendto, int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t length)
{
    int rs = held(fd);

    return rs < 0 ? real()->sendto(fd, from, n, flags, to, length) : rsendto(rs, from, n, flags, to, length);
}

INTERPOSE(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    int rs = held(fd);

    return rs < 0 ? real()->sendmsg(fd, message, flags) : rsendmsg(rs, message, flags);
}

INTERPOSE(ssize_t, write, int fd, const void *from, size_t n)
{
    int rs = held(fd);

    return rs < 0 ? real()->write(fd, from, n) : rwrite(rs, from, n);
}

INTERPOSE(ssize_t, writev, int fd, const struct iovec *iov, int count)
{
    int rs = held(fd);

    return rs < 0 ? real()->writev(fd, iov, count) : rwritev(rs, iov, count);
}

/* What was read and could not be sent is left in the file. */
static ssize_t send_file(int rs, int in, off_t *offset, size_t n)
{
    char part[16384];
    ssize_t got, sent;
    size_t done = 0;

    while (done < n) {
        const size_t want = n - done < sizeof(part) ? n - done : sizeof(part);
        got = offset ? pread(in, part, want, *offset) : real()->read(in, part, want);
        if (got <= 0)
            return done ? (ssize_t)done : got;
        sent = rsend(rs, part, (size_t)got, 0);
        if (offset)
            *offset += sent > 0 ? sent : 0;
        else if (sent < got)
            lseek(in, (sent > 0 ? sent : 0) - got, SEEK_CUR);
        if (sent < 0)
            return done ? (ssize_t)done : -1;
        done += (size_t)sent;
        if (sent < got)
            break;
    }
    return (ssize_t)done;
}

INTERPOSE(ssize_t, sendfile, int out, int in, off_t *offset, size_t n)
{
    int rs = held(out);

    return rs < 0 ? real()->sendfile(out, in, offset, n) : send_file(rs, in, offset, n);
}

INTERPOSE(int, getpeername, int fd, struct sockaddr *address, socklen_t *length)
{
    int rs = held(fd);

    return rs < 0 ? real()->getpeername(fd, address, length) : rgetpeername(rs, address, length);
}

INTERPOSE(int, getsockname, int fd, struct sockaddr *address, socklen_t *length)
{
    int rs = held(fd);

    return rs < 0 ? real()->getsockname(fd, address, length) : rgetsockname(rs, address, length);
}

INTERPOSE(int, getsockopt, int fd, int level, int name, void *value, socklen_t *length)
{
    int rs = held(fd);

    return rs < 0 ? real()->getsockopt(fd, level, name, value, length) : rgetsockopt(rs, level, name, value, length);
}

INTERPOSE(int, setsockopt, int fd, int level, int name, const void *value, socklen_t length)
{
    int rs = held(fd);

    return rs < 0 ? real()->setsockopt(fd, level, name, value, length) : rsetsockopt(rs, level, name, value, length);
}

/* What it says of waiting is said to the rsocket; of all else /dev/null knows nothing, and says so. */
INTERPOSE(int, ioctl, int fd, unsigned long request, ...)
{
    int rs = held(fd);
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (rs < 0 || request != FIONBIO)
        return real()->ioctl(fd, request, argument);
    return rfcntl(rs, F_SETFL, *(int *)argument ? O_NONBLOCK : 0);
}

/* A command's argument is an int, a pointer, or none: all of them are passed on as a pointer would be. */
static int control(int fd, int command, void *argument)
{
    int rs = held(fd), result;

    if (rs >= 0 && (command == F_GETFL || command == F_SETFL))
        return rfcntl(rs, command, (int)(intptr_t)argument);
    result = real()->fcntl(fd, command, argument);
    if (rs >= 0 && result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
        held_share(result, rs);
    return result;
}

INTERPOSE(int, fcntl, int fd, int command, ...)
{
    va_list arguments;
    void *argument;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return control(fd, command, argument);
}

INTERPOSE(int, fcntl64, int fd, int command, ...)
{
    va_list arguments;
    void *argument;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return control(fd, command, argument);
}
