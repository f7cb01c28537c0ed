/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - the parts of SCTP packets that we process ourselves: the checksum, and fields that the stack does
 * not report. */
#ifndef RDDP_SCTP_PACKET_H
#define RDDP_SCTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACKET_COMMON = 12, /* octets of the common header in front of the chunks */
    PACKET_REFUSAL = PACKET_COMMON + 4,
};

/* The fields of an INIT or INIT-ACK that we need. */
struct packet_init {
    uint32_t tsn; /* the initial TSN of its sender */
};

/* Copies a packet and computes its checksum. */
void packet_seal(uint8_t *to, const uint8_t *p, size_t n);

/* Returns the checksum of a packet, whatever its field says; stores one. */
uint32_t packet_checksum(const uint8_t *p, size_t n);
void packet_set_checksum(uint8_t *p, uint32_t crc);

/* Is it long enough for a packet, with a correct checksum? */
bool packet_is_sound(const uint8_t *p, size_t n);

/* If the packet starts with an INIT or INIT-ACK, fills *init and returns true. */
bool packet_read_init(const uint8_t *p, size_t n, struct packet_init *init);

/* Read and change the SCTP ports of a packet that has a whole header. Change them after packet_is_sound() and before
 * packet_seal(). */
uint16_t packet_source(const uint8_t *p);
uint16_t packet_destination(const uint8_t *p);
void packet_set_destination(uint8_t *p, uint16_t port);
void packet_set_source(uint8_t *p, uint16_t port);

/* If the packet is DATA chunks alone, with consecutive TSNs and without padding behind the last, returns true, the TSN
 * of the first chunk, and the one behind the last. */
bool packet_read_data(const uint8_t *p, size_t n, uint32_t *tsn, uint32_t *next);

/* Sets the I bit of a packet of DATA chunks: acknowledge at once (RFC 9260 3.3.1). */
void packet_ask_ack(uint8_t *p);

/* If the packet starts with a SACK, returns true and whether it reports gaps. */
bool packet_read_sack(const uint8_t *p, size_t n, bool *gaps);

/* If the packet is an INIT, writes the ABORT that refuses it (RFC 9260 8.4) and returns true. */
bool packet_refuse(const uint8_t *p, size_t n, uint8_t refusal[PACKET_REFUSAL]);

/* Returns the reason in the User-Initiated Abort cause of an ABORT chunk (RFC 9260 3.3.10.12), or NULL. */
const uint8_t *packet_reason(const uint8_t *chunk, size_t n, size_t *length);

#endif
