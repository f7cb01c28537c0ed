/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp_socket.c - opens UDP sockets, and asks the system about routes. */
#include "loop/udp_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/descriptors.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* Enlarges a buffer of the socket, beyond the system's limit if permitted. */
static void enlarge(int fd, int forced, int usual)
{
    int octets = UDP_SOCKET_OCTETS;

    if (setsockopt(fd, SOL_SOCKET, forced, &octets, sizeof(octets)))
        setsockopt(fd, SOL_SOCKET, usual, &octets, sizeof(octets));
}

static int set_options(int fd, int family, unsigned options)
{
    int on = 1, off = 0, discover = IP_PMTUDISC_DO;

    if (options & UDP_IN_GROUP && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)))
        return -errno;
    if (options & UDP_BOTH_FAMILIES && family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
        return -errno;
    if (options & UDP_WITHOUT_CHECKSUM && family == AF_INET6 &&
        setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on)))
        return -errno;
    if (!(options & UDP_UNFRAGMENTED))
        return 0;
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof(discover)))
        return -errno;
    return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) ? -errno : 0;
}

/* What is told of each packet that arrives. */
static void ask_for_facts(const struct udp *u, sa_family_t family)
{
    int on = 1;

    setsockopt(u->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)); /* also for IPv4 at a socket of IPv6 */
    setsockopt(u->fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
    if (family != AF_INET6)
        return;
    setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
    setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
}

static void remember_address(struct udp *u, const struct sockaddr *local)
{
    if (local->sa_family == AF_INET6) {
        memcpy(u->at, &((const struct sockaddr_in6 *)local)->sin6_addr, sizeof(u->at));
        return;
    }
    memcpy(u->at, udp_mapped, sizeof(udp_mapped));
    memcpy(u->at + sizeof(udp_mapped), &((const struct sockaddr_in *)local)->sin_addr,
           sizeof(u->at) - sizeof(udp_mapped));
}

int udp_open(struct udp *u, const struct sockaddr *local, socklen_t length)
{
    return udp_open_with(u, local, length, 0);
}

int udp_open_with(struct udp *u, const struct sockaddr *local, socklen_t length, unsigned options)
{
    int on = 1, off = 0, error;

    *u = (struct udp){.fd = socket(local->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (u->fd < 0)
        return -errno;
    u->out = malloc(UDP_BATCH_OCTETS);
    error = u->out ? set_options(u->fd, local->sa_family, options) : -ENOMEM;
    if (!error && bind(u->fd, local, length))
        error = -errno;
    if (error) {
        udp_close(u);
        return error;
    }
    enlarge(u->fd, SO_RCVBUFFORCE, SO_RCVBUF);
    enlarge(u->fd, SO_SNDBUFFORCE, SO_SNDBUF);
    setsockopt(u->fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
    if (options & UDP_AT_ADDRESS)
        remember_address(u, local);
    else
        ask_for_facts(u, local->sa_family);
    u->cuts = setsockopt(u->fd, SOL_UDP, UDP_SEGMENT, &off, sizeof(off)) == 0;
    return 0;
}

static uint64_t namespace_of(const struct udp *u)
{
    uint64_t cookie = 0;
    socklen_t length = sizeof(cookie);

    return getsockopt(u->fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) ? 0 : cookie;
}

static void share_port(const struct udp *u, int shared)
{
    setsockopt(u->fd, SOL_SOCKET, SO_REUSEPORT, &shared, sizeof(shared));
}

/* The port is shared for the moment of the bind alone. */
int udp_open_beside(struct udp *u, const struct udp *other, const struct sockaddr_storage *local, unsigned options)
{
    struct sockaddr_storage beside = *local, bound;
    int error;

    udp_local(other, &bound);
    if (local->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&beside)->sin6_port = ((struct sockaddr_in6 *)&bound)->sin6_port;
    else
        ((struct sockaddr_in *)&beside)->sin_port = ((struct sockaddr_in *)&bound)->sin_port;
    share_port(other, 1);
    error =
        udp_open_with(u, (struct sockaddr *)&beside, udp_length_of(&beside), options | UDP_IN_GROUP | UDP_AT_ADDRESS);
    share_port(other, 0);
    if (error)
        return error;
    share_port(u, 0);
    if (namespace_of(u) && namespace_of(u) == namespace_of(other))
        return 0;
    udp_close(u);
    return -EXDEV;
}

void udp_close(struct udp *u)
{
    if (u->fd >= 0)
        descriptor_close(u->fd);
    free(u->out);
    u->fd = -1;
    u->out = NULL;
}

int udp_connect(struct udp *u, const struct sockaddr_storage *peer)
{
    int on = 1;

    setsockopt(u->fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
    if (peer->ss_family == AF_INET6)
        setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
    return connect(u->fd, (const struct sockaddr *)peer, udp_length_of(peer)) ? -errno : 0;
}

void udp_local(const struct udp *u, struct sockaddr_storage *local)
{
    socklen_t length = sizeof(*local);

    memset(local, 0, sizeof(*local));
    getsockname(u->fd, (struct sockaddr *)local, &length);
}

int udp_source(const struct sockaddr_storage *peer, struct sockaddr_storage *local)
{
    struct udp u = {.fd = socket(peer->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    int error;

    *local = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (u.fd < 0)
        return -errno;
    error = udp_connect(&u, peer);
    if (!error)
        udp_local(&u, local);
    close(u.fd);
    return error;
}

int udp_route_mtu(const struct sockaddr_storage *peer)
{
    struct udp u = {.fd = socket(peer->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    bool v6 = peer->ss_family == AF_INET6;
    socklen_t length = sizeof(int);
    int mtu = 0, error;

    if (u.fd < 0)
        return -errno;
    error = udp_connect(&u, peer);
    if (!error && getsockopt(u.fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &length))
        error = -errno;
    close(u.fd);
    return error ? error : mtu;
}
