/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_bundle.h - consecutive packets of DATA chunks, joined into one for the stack: it processes and acknowledges
 * them together. */
#ifndef RDDP_SCTP_IO_USCTP_BUNDLE_H
#define RDDP_SCTP_IO_USCTP_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

/* A packet of DATA chunks, with the chunks of `packets` packets. All zero: empty. */
struct bundle {
    uint8_t *at; /* in the buffer of its first packet */
    uint32_t octets, packets;
    uint32_t next; /* the TSN that has to follow */
};

/* Appends the chunks of a packet that lies behind the bundle in the same buffer, and whose checksum was verified.
 * Returns false if it cannot follow: another association's, another TSN, or not DATA alone. */
bool bundle_add(struct bundle *b, uint8_t *p, uint32_t n);

#endif
