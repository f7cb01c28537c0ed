/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* request.h - one call of a requester: its registrations, its message, and what its reply may be. For requester.c. */
#ifndef RDDP_RPC_REQUEST_H
#define RDDP_RPC_REQUEST_H

#include "rpc/requester.h"
#include "rpc/rpcrdma.h"

struct request_limits {
    uint32_t send_max, receive_max, credits;
    unsigned access; /* of every region, beside its own: RDDP_ACCESS_ZERO_BASED where offsets have 32 bits */
};

/* Registers what the call offers and writes the message, whose length it returns; 0 if it cannot be built, and then
 * nothing is registered. `to` has send_max octets. */
size_t request_build(struct request *q, struct rddp_pd *pd, const struct request_limits *limits, uint8_t *to);

/* Takes the memory out of the responder's reach. False if that failed for a piece. */
bool request_fence(struct request *q);

/* Whether `handle` is one that the call offers. */
bool request_owns(const struct request *q, uint32_t handle);

/* Judges a decoded reply and takes it over: copies an inline one, notes what was written. The call must be fenced. */
enum request_status request_take(struct request *q, const struct rpcrdma *h, const uint8_t *payload, size_t length);

#endif
