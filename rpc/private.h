/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* private.h - what the two ends say of themselves while they connect: RFC 8797's private data. */
#ifndef RDDP_RPC_PRIVATE_H
#define RDDP_RPC_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRIVATE_OCTETS = 8, PRIVATE_SIZE_MIN = 1024, PRIVATE_SIZE_MAX = 262144 };

struct private
{
    uint32_t send_size, receive_size; /* the largest inline message it sends, and takes */
    bool remote_invalidation;         /* it can take Send with Invalidate */
};

/* Sizes are rounded down to whole KiB and kept in the range that the format has. */
void private_encode(uint8_t to[PRIVATE_OCTETS], const struct private *mine);

/* Looks for the data of version 1 anywhere in `p`. Without it the peer is what RFC 8166 3.3.3 assumes: 1024 both ways,
 * no remote invalidation; then false. */
bool private_decode(struct private *peer, const uint8_t *p, size_t n);

#endif
