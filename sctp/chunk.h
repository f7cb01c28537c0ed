/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* chunk.h - the chunks of SCTP and their parameters (RFC 9260 3.3). */
#ifndef RDDP_SCTP_CHUNK_H
#define RDDP_SCTP_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "sctp/packet.h"

enum chunk_type {
    CHUNK_DATA = 0,
    CHUNK_INIT = 1,
    CHUNK_INIT_ACK = 2,
    CHUNK_SACK = 3,
    CHUNK_HEARTBEAT = 4,
    CHUNK_HEARTBEAT_ACK = 5,
    CHUNK_ABORT = 6,
    CHUNK_SHUTDOWN = 7,
    CHUNK_SHUTDOWN_ACK = 8,
    CHUNK_ERROR = 9,
    CHUNK_COOKIE_ECHO = 10,
    CHUNK_COOKIE_ACK = 11,
    CHUNK_ECNE = 12, /* explicit congestion notification (RFC 9260 appendix A) */
    CHUNK_CWR = 13,
    CHUNK_SHUTDOWN_COMPLETE = 14,
};

enum {
    CHUNK_HEAD = 4,
    CHUNK_DATA_HEAD = 16,
    CHUNK_INIT_HEAD = 20,
    CHUNK_SACK_HEAD = 16,
    CHUNK_LAST = 1, /* flags of DATA */
    CHUNK_FIRST = 2,
    CHUNK_UNORDERED = 4,
    CHUNK_AT_ONCE = 8,  /* the I bit: acknowledge at once (RFC 9260 3.3.1) */
    CHUNK_REFLECTS = 1, /* the T bit of ABORT and SHUTDOWN-COMPLETE: the tag is the receiver's own */
    CHUNK_SKIP = 0x80,  /* bits of an unknown type (RFC 9260 3.2): go on behind it, and report it */
    CHUNK_REPORT = 0x40,
    CAUSE_HEAD = 4,
    CAUSE_STREAM = 1, /* causes of ERROR and ABORT (RFC 9260 3.3.10) */
    CAUSE_STALE_COOKIE = 3,
    CAUSE_ADDRESS = 5,
    CAUSE_CHUNK = 6,
    CAUSE_PARAMETERS = 8,
    CAUSE_NO_DATA = 9,
    CAUSE_SHUTTING_DOWN = 10,
    CAUSE_USER_ABORT = 12,
    CAUSE_VIOLATION = 13,
    PARAMETER_HEAD = 4,
    CHUNK_WINDOW_MIN = 1500, /* the a_rwnd of an INIT or INIT-ACK, at least (RFC 9260 3.3.2, 3.3.3) */
    CHUNK_UNKNOWN_MAX = 8,   /* unknown parameters that one INIT-ACK reports */
};

/* Reads the chunk at offset *at of a packet of n octets, and moves *at behind it. Returns false at the end of the
 * packet, or if the length is impossible: the rest is dropped. */
struct osctp_chunk {
    uint8_t type, flags;
    const uint8_t *at; /* its head */
    uint32_t octets;   /* head included, padding not */
};
bool chunk_next(const uint8_t *p, uint32_t n, uint32_t *at, struct osctp_chunk *chunk);

/* The fields of an INIT or INIT-ACK. */
struct chunk_init {
    uint32_t tag, window, tsn;
    uint16_t out, in; /* streams that its sender wants to send on, and accepts */
    uint32_t indication;
    bool ecn;              /* its sender takes part in explicit congestion notification */
    const uint8_t *cookie; /* NULL: none */
    uint32_t cookie_octets;
    const uint8_t *host_name;                  /* a Host Name Address, which none may send; NULL: none */
    const uint8_t *unknown[CHUNK_UNKNOWN_MAX]; /* parameters to report */
    uint32_t unknowns;
};

/* Returns false if it is malformed. */
bool chunk_read_init(const struct osctp_chunk *chunk, struct chunk_init *init);

/* Writes a packet's header without a checksum; a chunk's head; an INIT or INIT-ACK without parameters. They
 * return the address behind. */
uint8_t *chunk_packet(uint8_t *p, uint16_t from, uint16_t to, uint32_t tag);
uint8_t *chunk_head(uint8_t *p, uint8_t type, uint8_t flags, uint32_t octets);
uint8_t *chunk_init(uint8_t *p, uint8_t type, const struct chunk_init *init);

/* Writes the adaptation indication, unless it is 0; "ECN Capable"; and any parameter. */
uint8_t *chunk_indication(uint8_t *p, uint32_t indication);
uint8_t *chunk_ecn(uint8_t *p);
uint8_t *chunk_parameter(uint8_t *p, uint16_t type, const void *value, uint32_t octets);

/* Stores the length of a chunk that ends at `end`; returns the address behind its padding. */
uint8_t *chunk_close(uint8_t *chunk, uint8_t *end);

static inline uint32_t chunk_padded(uint32_t octets)
{
    return (octets + 3) & ~3u;
}

/* Serial numbers (RFC 1982): is a before b? */
static inline bool tsn_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

#endif
