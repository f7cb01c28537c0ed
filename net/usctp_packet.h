/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_packet.h - the little of SCTP's packets that we read ourselves: the checksum, and what the stack keeps to
 * itself. */
#ifndef RDDP_NET_USCTP_PACKET_H
#define RDDP_NET_USCTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACKET_COMMON = 12 }; /* octets of the header in front of the chunks */

/* What an INIT or INIT-ACK says. */
struct packet_init {
    uint32_t tsn; /* its sender's first */
};

/* Copies a packet, and puts its checksum in. */
void packet_seal(uint8_t *to, const uint8_t *p, size_t n);

/* Is it a packet at all, with a good checksum? */
bool packet_is_sound(const uint8_t *p, size_t n);

/* If the packet begins with an INIT or INIT-ACK: true, and what it says. */
bool packet_read_init(const uint8_t *p, size_t n, struct packet_init *init);

/* The reason in an ABORT chunk's User-Initiated Abort cause (RFC 9260 3.3.10.12), or NULL. */
const uint8_t *packet_reason(const uint8_t *chunk, size_t n, size_t *length);

#endif
