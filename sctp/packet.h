/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - SCTP packets as a whole: the common header with its checksum, and the reason in an ABORT. */
#ifndef RDDP_SCTP_PACKET_H
#define RDDP_SCTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACKET_COMMON = 12, /* octets of the common header in front of the chunks */
};

/* Copies a packet and computes its checksum. */
void packet_seal(uint8_t *to, const uint8_t *p, size_t n);

/* Returns the checksum of a packet, whatever its field says; stores one. */
uint32_t packet_checksum(const uint8_t *p, size_t n);
void packet_set_checksum(uint8_t *p, uint32_t crc);

/* Is it long enough for a packet, with a correct checksum? */
bool packet_is_sound(const uint8_t *p, size_t n);

/* The SCTP ports of a packet that has a whole header. */
uint16_t packet_source(const uint8_t *p);
uint16_t packet_destination(const uint8_t *p);

/* Returns the reason in the User-Initiated Abort cause of an ABORT chunk (RFC 9260 3.3.10.12), or NULL. */
const uint8_t *packet_reason(const uint8_t *chunk, size_t n, size_t *length);

#endif
