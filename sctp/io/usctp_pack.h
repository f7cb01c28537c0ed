/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_pack.h - a packet filled with the DATA chunks of several: the stack makes packets of single small messages,
 * while one packet can carry them together (RFC 9260 6.10). */
#ifndef RDDP_SCTP_IO_USCTP_PACK_H
#define RDDP_SCTP_IO_USCTP_PACK_H

#include <stdbool.h>
#include <stdint.h>

enum { PACK_CHUNK_MIN = 20 }; /* octets of the smallest DATA chunk */

struct pack {
    uint8_t *at;           /* memory for `size` octets */
    uint32_t octets, size; /* octets: 0 while it is empty */
};

/* May chunks of this packet follow those in the pack? They may if it is empty, or has the same ports and tag. */
bool pack_takes(const struct pack *pack, const uint8_t *p);

/* Moves chunks of a packet of DATA chunks, from offset `at` on, into the pack, as many as it has space for; the first
 * gets the packet's header before it. Returns the offset behind the last one moved: `n` if all were. */
uint32_t pack_fill(struct pack *pack, const uint8_t *p, uint32_t n, uint32_t at);

/* Has it no space for another chunk? */
bool pack_is_full(const struct pack *pack);

#endif
