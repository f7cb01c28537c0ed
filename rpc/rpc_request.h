/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_request.h - one call of a requester: its registrations, its message, and the check of its reply. For calls.c,
 * intake.c and requester.c. */
#ifndef RDDP_RPC_RPC_REQUEST_H
#define RDDP_RPC_RPC_REQUEST_H

#include "rpc/requester.h"
#include "rpc/rpcrdma.h"

struct request_limits {
    uint32_t send_max, receive_max, credits;
    unsigned access; /* added to the access of every region: RDDP_ACCESS_ZERO_BASED on wires with 32-bit offsets */
    uint64_t secret; /* the responder must not know it */
};

/* Registers the memory that the call offers and writes its message to `to`, which has send_max octets. Returns the
 * length, or 0 if the message cannot be built; nothing is registered then. */
size_t request_build(struct request *q, struct rddp_pd *pd, const struct request_limits *limits, uint8_t *to);

/* Deregisters the memory that the call offers, so that the responder cannot reach it. Returns false if a region could
 * not be deregistered. */
bool request_fence(struct request *q);

/* Whether `handle` is a region that the call offers. */
bool request_owns(const struct request *q, uint32_t handle);

/* Checks a decoded reply and stores its outcome in `q`: copies an inline payload, and notes how much of each result was
 * written. request_fence() must have succeeded. */
enum request_status request_take(struct request *q, const struct rpcrdma *h, const uint8_t *payload, size_t length);

#endif
