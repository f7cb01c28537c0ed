/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_packet.h - the little of SCTP's packets that we read ourselves: the checksum, and what the stack keeps to
 * itself. */
#ifndef RDDP_NET_USCTP_PACKET_H
#define RDDP_NET_USCTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACKET_COMMON = 12, /* octets of the header in front of the chunks */
    PACKET_REFUSAL = PACKET_COMMON + 4,
};

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

/* Ports of SCTP, of a packet that is long enough for its header: changed before packet_seal(), after
 * packet_is_sound(). */
uint16_t packet_source(const uint8_t *p);
uint16_t packet_destination(const uint8_t *p);
void packet_set_destination(uint8_t *p, uint16_t port);
void packet_set_source(uint8_t *p, uint16_t port);

/* If the packet is an INIT: true, and the ABORT that tells its sender that nobody is here (RFC 9260 8.4). */
bool packet_refuse(const uint8_t *p, size_t n, uint8_t refusal[PACKET_REFUSAL]);

/* The reason in an ABORT chunk's User-Initiated Abort cause (RFC 9260 3.3.10.12), or NULL. */
const uint8_t *packet_reason(const uint8_t *chunk, size_t n, size_t *length);

#endif
