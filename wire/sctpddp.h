/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp.h - the SCTP DDP/RDMA adaptation (sctp-ddp-rdma.txt): its indication, the header extension of each message,
 * who may use which mode, and serial numbers. Pure functions: messages have boundaries, so there is no stream and no
 * state. */
#ifndef RDDP_WIRE_SCTPDDP_H
#define RDDP_WIRE_SCTPDDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

/* What an endpoint indicates in its INIT or INIT-ACK (2.1). Each direction is governed by its sender's. */
enum sctpddp_adaptation {
    SCTPDDP_PLAIN, /* nothing: its messages carry no header extension */
    SCTPDDP_DDP,
    SCTPDDP_DDP_WITH_TAG,
    SCTPDDP_RDMA_ONLY,
    SCTPDDP_RDMA_AND_NEGOTIATION,
    SCTPDDP_RDMA_NEGOTIATION,
    SCTPDDP_ADAPTATIONS
};

enum sctpddp_mode { SCTPDDP_NO_PLACEMENT, SCTPDDP_MODE_DDP, SCTPDDP_MODE_TAG, SCTPDDP_MODE_RDMA, SCTPDDP_MODES };

/* Bit 0 is the most significant, as in every figure of the document. Bits 3 to 7 are sent 0 and ignored. */
enum sctpddp_flag {
    SCTPDDP_ACK = 0x80,     /* Acknowledgement Requested */
    SCTPDDP_NOTIFY = 0x40,  /* Notification upon Completion */
    SCTPDDP_RELEASE = 0x20, /* Release Tag upon Completion */
    SCTPDDP_SIGNALS = 0xe0
};

enum {
    SCTPDDP_PARAMETER = 8,  /* octets of the Adaptation Layer Indication parameter */
    SCTPDDP_DDP_HEAD = 16,  /* octets of the header extension, DDP and DDP_WITH_TAG */
    SCTPDDP_RDMA_HEAD = 20, /* the others: the same and the AWS */
    SCTPDDP_HEAD_MAX = SCTPDDP_RDMA_HEAD,
    SCTPDDP_TYPE = 0xc006, /* of the parameter (RFC 5061 4.2.6) */
};

/* One message of SCTP. `data` is borrowed: it points into the message that was decoded. */
struct sctpddp_chunk {
    uint32_t mode; /* 24 bits: enum sctpddp_mode, or what nobody knows */
    uint8_t flags; /* enum sctpddp_flag */
    uint32_t tag;
    uint64_t offset;
    uint32_t aws; /* the RDMA adaptations; else 0 */
    const uint8_t *data;
    uint32_t length;
};

/* "RDMA_ONLY": in the document's words. Never NULL. */
const char *sctpddp_adaptation_name(enum sctpddp_adaptation adaptation);

/* The parameter both ways. decode: false if it is another parameter, another length or another value: no indication. */
uint8_t *sctpddp_put_parameter(uint8_t *p, enum sctpddp_adaptation adaptation);
bool sctpddp_get_parameter(const uint8_t *p, size_t n, enum sctpddp_adaptation *adaptation);

/* The adaptation that an indication of 32 bits stands for; a value nobody knows is none. */
enum sctpddp_adaptation sctpddp_adaptation_of(uint32_t indication);

/* Octets of the header extension that messages of such a sender have: 0, 16 or 20. */
uint32_t sctpddp_head(enum sctpddp_adaptation sender);

/* Does such a sender number its messages by AWS? The others are ordered by TSN. */
bool sctpddp_has_aws(enum sctpddp_adaptation sender);

/* Reads the header extension of a message of `n` octets. FAULT_CHUNK_SHORT if it is not all there. Of a plain sender
 * the whole message is data. Borrows `p`. */
enum fault sctpddp_decode(enum sctpddp_adaptation sender, struct sctpddp_chunk *chunk, const uint8_t *p, size_t n);

/* Writes the header extension (room for SCTPDDP_HEAD_MAX); returns its octets. The payload goes behind it. */
size_t sctpddp_encode(enum sctpddp_adaptation sender, const struct sctpddp_chunk *chunk, uint8_t *p);

/* What rules R1 to R6 (3.2.1) say of a message, by what its sender indicated and how it came: `whole` is true if U, B
 * and E were set. FAULT_NONE: chunk->mode says where it goes; else the rule that was broken. */
enum fault sctpddp_judge(enum sctpddp_adaptation sender, const struct sctpddp_chunk *chunk, bool whole);

/* May a sender with this indication use this mode (2.2, S1, S2)? */
bool sctpddp_may_send(enum sctpddp_adaptation own, uint32_t mode);

/* RFC 1982 with SERIAL_BITS 32: has the cumulative number reached `at`? False where the two are 2^31 apart, for which
 * that document has no answer. */
static inline bool sctpddp_reached(uint32_t cumulative, uint32_t at)
{
    return cumulative - at < 0x80000000u;
}

#endif
