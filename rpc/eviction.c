/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - chooses the connection that is closed when a server has no room for another one. */
#include "rpc/eviction.h"

#include <netinet/in.h>
#include <string.h>

bool place_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
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

static unsigned rpc_place_count(const struct rpc_place *place, unsigned n, const struct sockaddr_storage *peer)
{
    unsigned same = 0;

    for (unsigned i = 0; i < n; i++)
        same += place_same_address(place[i].peer, peer);
    return same;
}

/* The connection that has been idle longest: among those of `peer`, or, if that is NULL, of the address with the most
 * connections. */
static int longest_idle(const struct rpc_place *place, unsigned n, uint64_t rest_ms,
                        const struct sockaddr_storage *peer)
{
    unsigned most = 0;
    int found = PLACE_NONE;

    for (unsigned i = 0; i < n; i++) {
        unsigned same;

        if (place[i].is_busy || place[i].idle_ms < rest_ms || (peer && !place_same_address(place[i].peer, peer)))
            continue;
        same = peer ? 0 : rpc_place_count(place, n, place[i].peer);
        if (found >= 0 && (same < most || (same == most && place[i].idle_ms < place[found].idle_ms)))
            continue;
        found = (int)i;
        most = same;
    }
    return found;
}

int place_find(const struct rpc_place *place, unsigned n, const struct place_limits *limits,
               const struct sockaddr_storage *peer)
{
    if (rpc_place_count(place, n, peer) >= limits->address_max)
        return longest_idle(place, n, limits->rest_ms, peer);
    if (n >= limits->max)
        return longest_idle(place, n, limits->rest_ms, NULL);
    return PLACE_FREE;
}
