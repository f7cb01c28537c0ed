/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.h - chooses the connection that is closed when a server has no room for another one. */
#ifndef RDDP_RPC_EVICTION_H
#define RDDP_RPC_EVICTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An existing connection. A busy one is never closed. */
struct rpc_place {
    const struct sockaddr_storage *peer;
    uint64_t idle_ms;
    bool is_busy;
};

struct place_limits {
    unsigned max, address_max; /* limits of connections, in all and from one address */
    uint64_t rest_ms;          /* a connection that has been idle for less time is not closed */
};

enum { PLACE_FREE = -1, PLACE_NONE = -2 };

/* Chooses among the `n` connections the one to close for a new one from `peer`. If `peer` has too many, it is the one
 * of `peer` that has been idle longest, else the longest idle one of the address with the most connections. PLACE_FREE:
 * there is room. PLACE_NONE: none may be closed. */
int place_find(const struct rpc_place *place, unsigned n, const struct place_limits *limits,
               const struct sockaddr_storage *peer);

/* Whether the two addresses are equal, not counting ports. */
bool place_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif
