/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hindrance.c - options that are read from the socket, and keys for signatures, of which only the kernel's diagnosis
 * tells. */
#include "tcp/io/hindrance.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef TCP_AO_INFO
#define TCP_AO_INFO 40 /* Linux 6.7 */
#endif

enum { ANSWER_MAX = 8192, ECN_BITS = 3, AO_INFO_OCTETS = 48, ULP_NAME = 16 };

static int value_of(int fd, int level, int name)
{
    int value = 0;
    socklen_t length = sizeof(value);

    return getsockopt(fd, level, name, &value, &length) ? 0 : value;
}

/* Longer than any that is asked for. */
static bool has_options(int fd)
{
    char options[64];
    socklen_t length = sizeof(options);

    return !getsockopt(fd, IPPROTO_IP, IP_OPTIONS, options, &length) && length;
}

/* Does the socket sign its segments (RFC 5925)? A kernel that knows the option knows it of a socket with keys alone. */
static bool has_ao_keys(int fd)
{
    uint64_t info[AO_INFO_OCTETS / sizeof(uint64_t)] = {0};
    socklen_t length = sizeof(info);

    return !getsockopt(fd, IPPROTO_TCP, TCP_AO_INFO, info, &length);
}

/* Does the kernel change what is sent, for example by TLS? */
static bool has_upper_protocol(int fd)
{
    char name[ULP_NAME];
    socklen_t length = sizeof(name);

    return !getsockopt(fd, IPPROTO_TCP, TCP_ULP, name, &length) && length;
}

static bool is_paced(int fd)
{
    const int without_limit = -1;
    int rate = value_of(fd, SOL_SOCKET, SO_MAX_PACING_RATE);

    return rate && rate != without_limit;
}

static bool is_bound_to_device(int fd, const struct sockaddr_in6 *peer)
{
    char name[IFNAMSIZ] = "";
    socklen_t length = sizeof(name);

    if (peer->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&peer->sin6_addr))
        return false;
    return !getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &length) && length && name[0];
}

static void put_end(__be32 to[4], __be16 *port, const struct sockaddr_in6 *end)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)end;

    *port = end->sin6_port; /* at the same place in both */
    if (end->sin6_family == AF_INET6)
        memcpy(to, &end->sin6_addr, sizeof(end->sin6_addr));
    else
        memcpy(to, &v4->sin_addr, sizeof(v4->sin_addr));
}

/* Asks for one socket by its addresses. Returns the octets of the answer, or a negative number. */
static ssize_t ask(const struct sockaddr_in6 *local, const struct sockaddr_in6 *peer, void *answer, size_t capacity)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } request = {
        .head = {.nlmsg_len = sizeof(request), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .ask = {.sdiag_family = (uint8_t)local->sin6_family,
                .sdiag_protocol = IPPROTO_TCP,
                .idiag_ext = 1 << (INET_DIAG_INFO - 1), /* what is particular to TCP comes with it */
                .idiag_states = UINT32_MAX},
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    ssize_t n;

    if (fd < 0)
        return -1;
    put_end(request.ask.id.idiag_src, &request.ask.id.idiag_sport, local);
    put_end(request.ask.id.idiag_dst, &request.ask.id.idiag_dport, peer);
    /* A socket with a link-local address is found by its device only. */
    request.ask.id.idiag_if = local->sin6_family == AF_INET6 ? local->sin6_scope_id : 0;
    request.ask.id.idiag_cookie[0] = request.ask.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    n = send(fd, &request, sizeof(request), 0);
    if (n > 0)
        n = recv(fd, answer, capacity, 0);
    close(fd);
    return n;
}

/* Does the socket sign its segments (RFC 2385)? A kernel without diagnosis does not tell. */
static bool has_keys(const struct sockaddr_in6 *local, const struct sockaddr_in6 *peer)
{
    union {
        struct nlmsghdr head;
        char octets[ANSWER_MAX];
    } answer;
    ssize_t n = ask(local, peer, &answer, sizeof(answer));
    size_t at = NLMSG_SPACE(sizeof(struct inet_diag_msg));
    struct rtattr attr;

    if (n < (ssize_t)at || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return false;
    for (; at + sizeof(attr) <= (size_t)n; at += RTA_ALIGN(attr.rta_len)) {
        memcpy(&attr, answer.octets + at, sizeof(attr));
        if (attr.rta_type == INET_DIAG_MD5SIG)
            return true;
        if (attr.rta_len < sizeof(attr))
            return false;
    }
    return false;
}

const char *hindrance_of(int fd)
{
    struct sockaddr_in6 local = {0}, peer = {0};
    socklen_t locals = sizeof(local), peers = sizeof(peer);

    if (value_of(fd, SOL_SOCKET, SO_MARK))
        return "SO_MARK";
    if (value_of(fd, IPPROTO_IP, IP_TOS) & ~ECN_BITS || value_of(fd, IPPROTO_IPV6, IPV6_TCLASS) & ~ECN_BITS)
        return "IP_TOS or IPV6_TCLASS";
    if (value_of(fd, SOL_SOCKET, SO_PRIORITY))
        return "SO_PRIORITY";
    if (has_options(fd))
        return "IP_OPTIONS";
    if (is_paced(fd))
        return "SO_MAX_PACING_RATE";
    if (value_of(fd, IPPROTO_IP, IP_MINTTL) || value_of(fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT))
        return "IP_MINTTL or IPV6_MINHOPCOUNT";
    if (has_ao_keys(fd))
        return "TCP_AO_ADD_KEY";
    if (has_upper_protocol(fd))
        return "TCP_ULP";
    if (getsockname(fd, (struct sockaddr *)&local, &locals) || getpeername(fd, (struct sockaddr *)&peer, &peers))
        return NULL; /* it is not connected: whoever wants to take it over is told so */
    if (is_bound_to_device(fd, &peer))
        return "SO_BINDTODEVICE";
    return has_keys(&local, &peer) ? "TCP_MD5SIG" : NULL;
}
