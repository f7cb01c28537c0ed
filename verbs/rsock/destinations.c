/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* destinations.c - where the datagrams of an rsocket go: addresses, and the queue pairs behind them. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/rsock/rsock_datagram.h"

static in_port_t *address_port_at(struct sockaddr_storage *address)
{
    return &((struct sockaddr_in *)address)->sin_port; /* at the same place for IPv6 */
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The octets that distinguish hosts. */
static const void *host_of(const struct sockaddr_storage *address, size_t *n)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

    *n = address->ss_family == AF_INET6 ? sizeof(v6->sin6_addr) : sizeof(struct in_addr);
    return address->ss_family == AF_INET6 ? (const void *)&v6->sin6_addr
                                          : &((const struct sockaddr_in *)address)->sin_addr;
}

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b, bool any_scope)
{
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a, *b6 = (const struct sockaddr_in6 *)b;
    size_t n;
    const void *host_a = host_of(a, &n), *host_b = host_of(b, &n);

    return a->ss_family == b->ss_family && a6->sin6_port == b6->sin6_port && !memcmp(host_a, host_b, n) &&
           (any_scope || a->ss_family == AF_INET || a6->sin6_scope_id == b6->sin6_scope_id);
}

static struct rs_destination **bucket_of(struct rs_datagrams *d, const struct sockaddr_storage *address)
{
    const uint32_t prime = 16777619;
    uint32_t hash = ((const struct sockaddr_in *)address)->sin_port;
    size_t n;
    const uint8_t *host = host_of(address, &n);

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ host[i]) * prime;
    return &d->buckets[(hash ^ hash >> 16) % RD_BUCKETS];
}

static struct rs_destination *destination_find(struct rs_datagrams *d, const struct sockaddr_storage *address,
                                               bool any_scope)
{
    struct rs_destination *at = *bucket_of(d, address);

    while (at && !is_same(&at->address, address, any_scope))
        at = at->next;
    return at;
}

static void destination_free(struct rs_destination *to)
{
    if (to->ah)
        ibv_destroy_ah(to->ah);
    free(to);
}

static void destination_remove(struct rs_datagrams *d, struct rs_destination *to)
{
    struct rs_destination **at = bucket_of(d, &to->address);

    while (*at != to)
        at = &(*at)->next;
    *at = to->next;
    d->destinations--;
    destination_free(to);
}

static void destination_evict(struct rs_datagrams *d)
{
    struct rs_destination *oldest = NULL;

    if (d->destinations < RD_DESTINATIONS)
        return;
    for (unsigned i = 0; i < RD_BUCKETS; i++)
        for (struct rs_destination *at = d->buckets[i]; at; at = at->next)
            if (at != d->connected && (!oldest || at->used < oldest->used))
                oldest = at;
    destination_remove(d, oldest);
}

/* The MTU of the route of a socket that is connected; it may be of IPv6, to an address of IPv4 that is mapped. */
static int route_mtu(int fd, const struct rs_destination *to, int *mtu)
{
    struct sockaddr_storage plain = to->peer;
    socklen_t length = sizeof(*mtu);

    rs_address_plain(&plain);
    if (plain.ss_family == AF_INET6)
        return getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, mtu, &length);
    return getsockopt(fd, IPPROTO_IP, IP_MTU, mtu, &length);
}

/* Asks the routing table which own address leads there; of a bound socket it is that one. */
static int destination_route(const struct rsocket *rs, struct rs_destination *to, int *mtu)
{
    const int fd = socket(rs->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t own = sizeof(to->local), other = sizeof(to->peer);
    int error = fd < 0 || getsockname(rs->datagrams->udp, (struct sockaddr *)&to->local, &own) ? errno : 0;
    in_port_t port = *address_port_at(&to->local);

    *address_port_at(&to->local) = 0;
    if (!error && (bind(fd, (struct sockaddr *)&to->local, own) ||
                   connect(fd, (struct sockaddr *)&to->address, length_of(&to->address)) ||
                   getsockname(fd, (struct sockaddr *)&to->local, &own) ||
                   getpeername(fd, (struct sockaddr *)&to->peer, &other) || route_mtu(fd, to, mtu)))
        error = errno;
    *address_port_at(&to->local) = port;
    if (fd >= 0)
        close(fd);
    return error;
}

/* The path MTU of RoCE: the largest that the route has space for with all headers. */
static uint32_t path_mtu_in(int route)
{
    enum { LEAST = 256, MOST = 4096, HEADERS = 84 };
    uint32_t mtu = LEAST;

    while (mtu < MOST && 2 * (int)mtu + HEADERS <= route)
        mtu *= 2;
    return mtu;
}

static int destination_reach(const struct rsocket *rs, struct rs_destination *to)
{
    int route, error = destination_route(rs, to, &route);
    uint32_t mtu;

    if (error)
        return error;
    rs_address_plain(&to->local);
    rs_address_plain(&to->peer);
    mtu = path_mtu_in(route);
    to->origin_length = rs_origin_encode(to->origin, &to->local);
    to->most = mtu < RD_MESSAGE ? mtu - to->origin_length : RD_MESSAGE - RD_GREETING_MAX;
    return 0;
}

int rs_destination_get(struct rsocket *rs, const struct sockaddr_storage *address, struct rs_destination **out)
{
    struct rs_datagrams *d = rs->datagrams;
    struct rs_destination *to = destination_find(d, address, false), **at;
    int error;

    if (!to) {
        to = calloc(1, sizeof(*to));
        if (!to)
            return ENOMEM;
        to->address = *address;
        error = destination_reach(rs, to);
        if (error) {
            destination_free(to);
            return error;
        }
        destination_evict(d);
        at = bucket_of(d, address);
        to->next = *at;
        *at = to;
        d->destinations++;
    }
    to->used = ++d->uses;
    *out = to;
    return 0;
}

struct rs_destination *rs_destination_known(struct rsocket *rs, const struct sockaddr_storage *address)
{
    return destination_find(rs->datagrams, address, false);
}

struct rs_destination *rs_destination_of(struct rsocket *rs, const struct sockaddr_storage *origin)
{
    return destination_find(rs->datagrams, origin, true); /* no message says of which interface its address is */
}

static void gid_of(const struct sockaddr_storage *address, union ibv_gid *gid)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

    memset(gid, 0, sizeof(*gid));
    if (address->ss_family == AF_INET6) {
        memcpy(gid->raw, &v6->sin6_addr, sizeof(gid->raw));
        return;
    }
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, &v4->sin_addr, sizeof(v4->sin_addr));
}

/* Each interface may have the same address of its link. */
static bool is_address_of(const struct ibv_gid_entry *entry, const struct sockaddr_storage *address)
{
    const uint32_t scope = address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_scope_id : 0;
    union ibv_gid gid;

    gid_of(address, &gid);
    return !memcmp(&entry->gid, &gid, sizeof(gid)) && (!scope || entry->ndev_ifindex == scope);
}

static bool path_to(struct ibv_context *context, const struct rs_destination *to, struct ibv_ah_attr *attr)
{
    enum { GIDS = 256 }; /* an index has eight bits */
    struct ibv_gid_entry table[GIDS];
    ssize_t n = ibv_query_gid_table(context, table, GIDS, 0);

    *attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh.hop_limit = UINT8_MAX};
    gid_of(&to->peer, &attr->grh.dgid);
    for (ssize_t i = 0; i < n; i++) {
        attr->grh.sgid_index = (uint8_t)table[i].gid_index;
        if (is_address_of(&table[i], &to->local))
            return true;
    }
    return false;
}

void rs_destination_greeted(struct rs_destination *to, uint32_t qpn)
{
    to->qpn = qpn;
    to->is_asked = false;
    to->fresh_until_us = rs_now_us() + RD_FRESH_US;
}

bool rs_destination_has_way(struct rsocket *rs, struct rs_destination *to)
{
    struct ibv_ah_attr attr;

    if (!to->qpn || rs_now_us() > to->fresh_until_us)
        return false;
    if (!to->ah && path_to(rs->queues.pd->context, to, &attr))
        to->ah = ibv_create_ah(rs->queues.pd, &attr);
    return to->ah;
}

void rs_destinations_free(struct rsocket *rs)
{
    struct rs_datagrams *d = rs->datagrams;

    d->connected = NULL;
    for (unsigned i = 0; i < RD_BUCKETS; i++)
        while (d->buckets[i])
            destination_remove(d, d->buckets[i]);
}
