/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ddp.h - converts the DDP and RDMAP headers of one ULPDU to a segment and back (RFC 5041 4, RFC 5040 4). */
#ifndef RDDP_WIRE_DDP_H
#define RDDP_WIRE_DDP_H

#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "core/seg.h"

enum {
    DDP_TAGGED_HEAD = 14,     /* octets of the DDP header of a Write or Read Response */
    DDP_UNTAGGED_HEAD = 18,   /* octets of the DDP header of every other message */
    RDMAP_READ_HEAD = 28,     /* octets of the RDMAP header of a Read Request */
    RDMAP_ATOMIC_HEAD = 52,   /* of an Atomic Request (RFC 7306 figure 4) */
    RDMAP_ATOMIC_ANSWER = 12, /* of an Atomic Response (RFC 7306 figure 6) */
    RDMAP_IMMEDIATE_HEAD = 8, /* of Immediate Data (RFC 7306 6.2) */
    DDP_HEAD_MAX = DDP_UNTAGGED_HEAD + RDMAP_ATOMIC_HEAD,
};

/* Returns the octets of the DDP header. `first` is the header's first octet; its T bit decides. */
static inline uint32_t ddp_head_octets(uint8_t first)
{
    return first & 0x80 ? DDP_TAGGED_HEAD : DDP_UNTAGGED_HEAD;
}

/* Decodes the ULPDU of `n` octets at `ulpdu` into *seg. Any `n` is allowed, 0 included. `version` is the only version
 * accepted for both DDP and RDMAP. Makes every check that needs the headers alone. Leaves seg->begin and seg->end to
 * the caller. Returns the fault or FAULT_NONE. On a fault *seg holds what was decoded before: seg->op at least agrees
 * with the T bit, and head, head_length, data and length describe the octets that arrived. seg->head and seg->data
 * point into `ulpdu`. */
enum fault ddp_decode(struct seg *seg, const uint8_t *ulpdu, size_t n, unsigned version);

/* Writes the headers of `seg` to `p`, which has room for DDP_HEAD_MAX octets. Returns the address behind them. */
uint8_t *ddp_encode(uint8_t *p, const struct seg *seg, unsigned version);

/* Returns the operation of the header at `head`, a copy from a Terminate with `n` octets; SEG_OPS if it is unknown. */
enum seg_op ddp_op(const uint8_t *head, size_t n);

#endif
