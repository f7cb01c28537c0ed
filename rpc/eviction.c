/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eviction.c - chooses the connection that is closed when a server has no room for another one. */
#include "rpc/eviction.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

bool eviction_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    if (a->ss_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                       &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, sizeof(struct in6_addr));
    return true;
}

/* How many octets of an IPv6 address are its network: one host has as many addresses as it likes of 64 bits (RFC 4291
 * 2.5.4, RFC 8981). On a link of its own, and with IPv4, an address is all there is to tell hosts by. */
static size_t network_octets(const struct in6_addr *v6)
{
    return IN6_IS_ADDR_V4MAPPED(v6) || IN6_IS_ADDR_LINKLOCAL(v6) ? sizeof(*v6) : sizeof(*v6) / 2;
}

bool eviction_same_network(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct in6_addr *x = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    const struct in6_addr *y = &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr;

    if (a->ss_family != AF_INET6 || b->ss_family != AF_INET6)
        return eviction_same_address(a, b);
    return network_octets(x) == network_octets(y) && !memcmp(x, y, network_octets(x));
}

/* --- who has how many --------------------------------------------------------------------------------------------- */

/* The places of a network, and those of an address in it. */
struct holders {
    unsigned network, address;
};

static struct holders holders_of(const struct rpc_eviction *place, unsigned n, const struct sockaddr_storage *peer)
{
    struct holders h = {0, 0};

    for (unsigned i = 0; i < n; i++) {
        h.network += eviction_same_network(place[i].peer, peer);
        h.address += eviction_same_address(place[i].peer, peer);
    }
    return h;
}

/* An order in which the addresses of a network follow each other. */
static int compare_places(const void *a, const void *b)
{
    const struct sockaddr_storage *x = (*(const struct rpc_eviction *const *)a)->peer;
    const struct sockaddr_storage *y = (*(const struct rpc_eviction *const *)b)->peer;

    if (x->ss_family != y->ss_family)
        return x->ss_family < y->ss_family ? -1 : 1;
    if (x->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)(const void *)x)->sin6_addr,
                      &((const struct sockaddr_in6 *)(const void *)y)->sin6_addr, sizeof(struct in6_addr));
    return memcmp(&((const struct sockaddr_in *)(const void *)x)->sin_addr,
                  &((const struct sockaddr_in *)(const void *)y)->sin_addr, sizeof(struct in_addr));
}

/* How many places from the first one on are like that. */
static unsigned run_of(const struct rpc_eviction **at, unsigned n,
                       bool (*same)(const struct sockaddr_storage *, const struct sockaddr_storage *))
{
    unsigned i = 1;

    while (i < n && same(at[0]->peer, at[i]->peer))
        i++;
    return i;
}

/* For each place what its peer has. They are sorted for it: a server may have thousands, and whoever connects makes it
 * look. NULL: no memory. */
static struct holders *holders_of_all(const struct rpc_eviction *place, unsigned n)
{
    const struct rpc_eviction **order = calloc(n + 1U, sizeof(*order));
    struct holders *h = order ? calloc(n + 1U, sizeof(*h)) : NULL, run = {0, 0};

    for (unsigned i = 0; h && i < n; i++)
        order[i] = &place[i];
    if (h)
        qsort(order, n, sizeof(*order), compare_places);
    for (unsigned i = 0, networks = 0, addresses = 0; h && i < n; i++) {
        if (i == networks)
            networks += run.network = run_of(order + i, n - i, eviction_same_network);
        if (i == addresses)
            addresses += run.address = run_of(order + i, n - i, eviction_same_address);
        h[order[i] - place] = run;
    }
    free(order);
    return h;
}

/* --- who gives way ------------------------------------------------------------------------------------------------ */

/* The connection that has been idle longest: among those of `peer`, or, if that is NULL, of the address with the most
 * connections. */
static int longest_idle(const struct rpc_eviction *place, unsigned n, uint64_t rest_ms,
                        const struct sockaddr_storage *peer)
{
    struct holders *h = peer ? NULL : holders_of_all(place, n);
    unsigned most = 0;
    int found = PLACE_NONE;

    for (unsigned i = 0; i < n && (h || peer); i++) {
        unsigned same = h ? h[i].address : 0;

        if (place[i].is_busy || place[i].idle_ms < rest_ms || (peer && !eviction_same_address(place[i].peer, peer)))
            continue;
        if (found >= 0 && (same < most || (same == most && place[i].idle_ms < place[found].idle_ms)))
            continue;
        found = (int)i;
        most = same;
    }
    free(h);
    return found;
}

int eviction_find(const struct rpc_eviction *place, unsigned n, const struct eviction_limits *limits,
                  const struct sockaddr_storage *peer)
{
    if (holders_of(place, n, peer).address >= limits->address_max)
        return longest_idle(place, n, limits->rest_ms, peer);
    if (n >= limits->max)
        return longest_idle(place, n, limits->rest_ms, NULL);
    return PLACE_FREE;
}

static bool has_more(struct holders a, struct holders b)
{
    return a.network != b.network ? a.network > b.network : a.address > b.address;
}

int eviction_find_fair(const struct rpc_eviction *place, unsigned n, const struct eviction_limits *limits,
                       const struct sockaddr_storage *peer)
{
    struct holders own = holders_of(place, n, peer), *h;
    int found = eviction_find(place, n, limits, peer);

    if (found != PLACE_NONE || own.address >= limits->address_max)
        return found;
    h = holders_of_all(place, n);
    own.network++;
    own.address++;
    for (unsigned i = 0; h && i < n; i++) {
        bool same = eviction_same_network(place[i].peer, peer);

        if (same ? h[i].address <= own.address : h[i].network <= own.network)
            continue;
        if (found < 0 || has_more(h[i], h[found]) ||
            (!has_more(h[found], h[i]) && place[i].idle_ms > place[found].idle_ms))
            found = (int)i;
    }
    free(h);
    return found;
}
