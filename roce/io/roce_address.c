/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_address.c - addresses of RoCE, from and to those of sockets. */
#include "roce/io/roce_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "roce/grh.h"

enum { V4_AT = 12 }; /* where an IPv4 address lies in a mapped one */

static const uint8_t v4_prefix[V4_AT] = {[10] = 0xff, [11] = 0xff};

bool roce_address_read(const struct sockaddr_storage *from, struct roce_address *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

    if (from->ss_family == AF_INET6) {
        memcpy(address->octets, &v6->sin6_addr, sizeof(address->octets));
        return true;
    }
    if (from->ss_family != AF_INET)
        return false;
    memcpy(address->octets, v4_prefix, V4_AT);
    memcpy(address->octets + V4_AT, &v4->sin_addr, sizeof(v4->sin_addr));
    return true;
}

bool roce_address_write(const struct roce_address *address, sa_family_t family, uint16_t port, uint32_t scope,
                        struct sockaddr_storage *to)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

    *to = (struct sockaddr_storage){.ss_family = family};
    if (family == AF_INET6) {
        memcpy(&v6->sin6_addr, address->octets, sizeof(v6->sin6_addr));
        v6->sin6_port = htons(port);
        v6->sin6_scope_id = scope;
        return true;
    }
    memcpy(&v4->sin_addr, address->octets + V4_AT, sizeof(v4->sin_addr));
    v4->sin_port = htons(port);
    return roce_address_is_v4(address);
}

void roce_address_name(const struct roce_address *address, uint16_t port, uint32_t scope, struct sockaddr_storage *to)
{
    (void)roce_address_write(address, roce_address_is_v4(address) ? AF_INET : AF_INET6, port, scope, to);
}

bool roce_address_read_grh(const uint8_t *grh, struct roce_address *from, struct roce_address *to)
{
    return grh_read(grh, from->octets, to->octets);
}

bool roce_address_copy(const struct sockaddr *from, socklen_t length, struct sockaddr_storage *to)
{
    socklen_t need = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    if ((from->sa_family != AF_INET && from->sa_family != AF_INET6) || length < need)
        return false;
    *to = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    memcpy(to, from, need);
    return true;
}

bool roce_address_is_any(const struct sockaddr_storage *address)
{
    static const struct in6_addr any = IN6ADDR_ANY_INIT;

    if (address->ss_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, &any, sizeof(any));
    return ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

bool roce_address_is_open(const struct sockaddr_storage *address, sa_family_t family)
{
    return address->ss_family == AF_UNSPEC || (address->ss_family == family && roce_address_is_any(address));
}

/* A socket can be bound to it. */
int roce_address_is_here(const struct sockaddr_storage *address)
{
    struct sockaddr_storage bound = *address;
    int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;

    if (fd < 0)
        return -errno;
    roce_address_set_port(&bound, 0);
    if (bind(fd, (struct sockaddr *)&bound, sizeof(bound)))
        error = -errno;
    close(fd);
    return error;
}

void roce_address_unmap(struct sockaddr_storage *address)
{
    struct roce_address octets;

    if (address->ss_family == AF_INET6 && roce_address_read(address, &octets) && roce_address_is_v4(&octets))
        (void)roce_address_write(&octets, AF_INET, roce_address_port(address), 0, address);
}

bool roce_address_is_v4(const struct roce_address *address)
{
    return !memcmp(address->octets, v4_prefix, V4_AT);
}

bool roce_address_is_loopback(const struct roce_address *address)
{
    static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;

    if (roce_address_is_v4(address))
        return address->octets[V4_AT] == 127;
    return !memcmp(address->octets, &loopback, sizeof(loopback));
}

uint16_t roce_address_port(const struct sockaddr_storage *from)
{
    if (from->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)from)->sin6_port);
    return from->ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)from)->sin_port) : 0;
}

uint32_t roce_address_scope(const struct sockaddr_storage *from)
{
    return from->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)from)->sin6_scope_id : 0;
}

void roce_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
}

static void path_address(const struct roce_address *address, bool is_v4, uint8_t *p)
{
    if (is_v4)
        memcpy(p, address->octets + V4_AT, sizeof(address->octets) - V4_AT);
    else
        memcpy(p, address->octets, sizeof(address->octets));
}

struct icrc_path roce_address_path(const struct roce_address *from, uint16_t from_port, const struct roce_address *to,
                                   uint16_t to_port)
{
    bool is_v4 = roce_address_is_v4(from);
    struct icrc_path path = {.ipv6 = !is_v4, .source_port = from_port, .destination_port = to_port};

    path_address(from, is_v4, path.source);
    path_address(to, is_v4, path.destination);
    return path;
}
