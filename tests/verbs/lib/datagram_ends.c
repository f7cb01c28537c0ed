/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram_ends.c - rsockets for datagrams at loopback's address, and what they send to each other. */
#include "tests/verbs/lib/datagram_ends.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>

socklen_t datagram_length(const union address *address)
{
    return address->any.ss_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

union address datagram_loopback(int family)
{
    union address address = {.any = {.ss_family = (sa_family_t)family}};

    if (family == AF_INET6)
        address.v6.sin6_addr = in6addr_loopback;
    else
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

union address datagram_name(int fd)
{
    union address name;
    socklen_t length = sizeof(name);

    memset(&name, 0, sizeof(name));
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&name.any, &length), 0);
    return name;
}

int datagram_bound(int family, union address *name)
{
    int fd = rsocket(family, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    *name = datagram_loopback(family);
    assert_int_equal(rbind(fd, (struct sockaddr *)&name->any, datagram_length(name)), 0);
    *name = datagram_name(fd);
    assert_int_not_equal(name->v4.sin_port, 0);
    return fd;
}

int datagram_events(int fd, short events, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = events};
    int n = rpoll(&one, 1, timeout_ms);

    assert_true(n >= 0);
    return n ? one.revents : 0;
}

ssize_t datagram_send(int fd, const void *data, size_t n, const union address *to)
{
    return rsendto(fd, data, n, 0, (const struct sockaddr *)&to->any, datagram_length(to));
}

void datagram_expect(int fd, const void *data, size_t n, const union address *from)
{
    static char buffer[4096];
    union address name;
    socklen_t length = sizeof(name);

    assert_int_equal(datagram_events(fd, POLLIN, DATAGRAM_WAIT_MS), POLLIN);
    assert_int_equal(rrecvfrom(fd, buffer, sizeof(buffer), 0, (struct sockaddr *)&name.any, &length), (ssize_t)n);
    assert_memory_equal(buffer, data, n);
    assert_int_equal(length, datagram_length(from));
    assert_int_equal(name.any.ss_family, from->any.ss_family);
    assert_int_equal(name.v4.sin_port, from->v4.sin_port);
    if (from->any.ss_family == AF_INET6)
        assert_memory_equal(&name.v6.sin6_addr, &from->v6.sin6_addr, 16);
    else
        assert_int_equal(name.v4.sin_addr.s_addr, from->v4.sin_addr.s_addr);
}
