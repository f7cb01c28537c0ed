/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ddp.h - the DDP and RDMAP headers of one ULPDU to a segment and back (RFC 5041 4, RFC 5040 4). */
#ifndef RDDP_WIRE_DDP_H
#define RDDP_WIRE_DDP_H

#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "core/seg.h"

enum {
    DDP_TAGGED_HEAD = 14,     /* octets of the DDP header of a Write or Read Response */
    DDP_UNTAGGED_HEAD = 18,   /* of anything else */
    RDMAP_READ_HEAD = 28,     /* behind it in a Read Request */
    RDMAP_ATOMIC_HEAD = 52,   /* behind it in an Atomic Request (RFC 7306 figure 4) */
    RDMAP_ATOMIC_ANSWER = 12, /* behind it in an Atomic Response (RFC 7306 figure 6) */
    RDMAP_IMMEDIATE_HEAD = 8, /* behind it in Immediate Data (RFC 7306 6.2) */
    DDP_HEAD_MAX = DDP_UNTAGGED_HEAD + RDMAP_ATOMIC_HEAD,
};

/* The DDP header behind which payload, or an RDMAP header, begins: T of the first octet decides. */
static inline uint32_t ddp_head_octets(uint8_t first)
{
    return first & 0x80 ? DDP_TAGGED_HEAD : DDP_UNTAGGED_HEAD;
}

/* Reads the ULPDU of `n` octets (none is allowed, and too short); `version` is the only one accepted for DDP and RDMAP.
 * Makes every check that the headers alone allow. begin and end of the segment are the caller's. On a fault *seg holds
 * what was understood: op agrees with the T bit at least, and head, head_length, data and length say where what came
 * lies. */
enum fault ddp_decode(struct seg *seg, const uint8_t *ulpdu, size_t n, unsigned version);

/* Writes the headers of `seg` (DDP_HEAD_MAX octets of room) and returns where the payload goes. */
uint8_t *ddp_encode(uint8_t *p, const struct seg *seg, unsigned version);

/* Which operation the header at `head`, a copy inside a Terminate, belonged to; SEG_OPS if to none that we know. */
enum seg_op ddp_op(const uint8_t *head, size_t n);

#endif
