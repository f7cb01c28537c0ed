/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.h - who gives way when a server has no place for another connection. */
#ifndef RDDP_RPC_PLACE_H
#define RDDP_RPC_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* A connection that has its place. A busy one keeps it. */
struct rpc_place {
    const struct sockaddr_storage *peer;
    uint64_t idle_ms;
    bool is_busy;
};

struct place_limits {
    unsigned max, address_max; /* connections of all peers, and of one address */
    uint64_t rest_ms;          /* who was idle for less time keeps its place, too */
};

enum { PLACE_FREE = -1, PLACE_NONE = -2 };

/* Which of the `n` connections gives way to one from `peer`: the longest idle of its own address if that has too many,
 * else of the address that has most. PLACE_FREE: none needs to. PLACE_NONE: none can. */
int place_find(const struct rpc_place *place, unsigned n, const struct place_limits *limits,
               const struct sockaddr_storage *peer);

/* Whether the two are one address, whatever their ports. */
bool place_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif
