/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* private.h - the private data of RFC 8797, with which the two ends describe themselves while they connect. */
#ifndef RDDP_RPC_PRIVATE_H
#define RDDP_RPC_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRIVATE_OCTETS = 8, PRIVATE_SIZE_MIN = 1024, PRIVATE_SIZE_MAX = 262144 };

struct private
{
    uint32_t send_size, receive_size; /* the largest inline message that it sends, and that it receives, in octets */
    bool remote_invalidation;         /* it accepts Send with Invalidate */
};

/* A size of our own: at least the default of RFC 8166, which every peer may use. */
static inline uint32_t private_size(uint32_t octets)
{
    return octets < PRIVATE_SIZE_MIN ? PRIVATE_SIZE_MIN : octets;
}

/* Sizes are rounded down to whole KiB and clamped to the range that the format can express. */
void private_encode(uint8_t to[PRIVATE_OCTETS], const struct private *mine);

/* What an end says of itself: these sizes, or the defaults of RFC 8166 3.3.3 if it sends no private data. */
struct private private_own(bool sends_private_data, uint32_t send_size, uint32_t receive_size);

/* Finds private data of version 1 anywhere in `p`. Without it, returns false and sets the defaults of RFC 8166 3.3.3:
 * 1024 octets both ways, no remote invalidation. */
bool private_decode(struct private *peer, const uint8_t *p, size_t n);

#endif
