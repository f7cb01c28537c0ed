/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eviction.h - chooses the connection that is closed when a server has no room for another one. */
#ifndef RDDP_RPC_EVICTION_H
#define RDDP_RPC_EVICTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An existing connection. Only eviction_find_fair() may choose a busy one. */
struct rpc_eviction {
    const struct sockaddr_storage *peer;
    uint64_t idle_ms;
    bool is_busy;
};

struct eviction_limits {
    unsigned max, address_max; /* limits of connections, in all and from one address */
    uint64_t rest_ms;          /* a connection that has been idle for less time is not closed */
};

enum { PLACE_FREE = -1, PLACE_NONE = -2 };

/* Chooses among the `n` connections the one to close for a new one from `peer`. If `peer` has too many, it is the one
 * of `peer` that has been idle longest, else the longest idle one of the address with the most connections. PLACE_FREE:
 * there is room. PLACE_NONE: none may be closed. */
int eviction_find(const struct rpc_eviction *place, unsigned n, const struct eviction_limits *limits,
                  const struct sockaddr_storage *peer);

/* Like eviction_find(). If none may be closed, and the address of `peer` is below its limit, the network with the most
 * connections gives up one, if it still has as many as that of `peer` then; of its connections it is one of the address
 * with the most, and of those the one that has been idle longest, even if it is busy or was not idle for long. Within
 * the network of `peer` its addresses are compared so. An IPv4 address is a network; of IPv6 the first 64 bits are. */
int eviction_find_fair(const struct rpc_eviction *place, unsigned n, const struct eviction_limits *limits,
                       const struct sockaddr_storage *peer);

/* Whether the two addresses are equal, not counting ports. */
bool eviction_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
bool eviction_same_network(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif
