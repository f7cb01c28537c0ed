/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp.h - the SCTP DDP/RDMA adaptation (sctp-ddp-rdma.txt): its indication, the header extension of each message,
 * which sender may use which mode, and serial numbers. All functions are pure: SCTP keeps message boundaries, so
 * decoding needs no stream state. */
#ifndef RDDP_WIRE_SCTPDDP_H
#define RDDP_WIRE_SCTPDDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

/* What an endpoint indicates in its INIT or INIT-ACK (2.1). Each direction follows its sender's indication. */
enum sctpddp_adaptation {
    SCTPDDP_PLAIN, /* no indication: messages carry no header extension */
    SCTPDDP_DDP,
    SCTPDDP_DDP_WITH_TAG,
    SCTPDDP_RDMA_ONLY,
    SCTPDDP_RDMA_AND_NEGOTIATION,
    SCTPDDP_RDMA_NEGOTIATION,
    SCTPDDP_ADAPTATIONS
};

enum sctpddp_mode { SCTPDDP_NO_PLACEMENT, SCTPDDP_MODE_DDP, SCTPDDP_MODE_TAG, SCTPDDP_MODE_RDMA, SCTPDDP_MODES };

/* Bits of the flags octet. Bit 0 is the most significant, as in every figure of the document. Bits 3 to 7 are sent as 0
 * and ignored. */
enum sctpddp_flag {
    SCTPDDP_ACK = 0x80,     /* Acknowledgement Requested */
    SCTPDDP_NOTIFY = 0x40,  /* Notification upon Completion */
    SCTPDDP_RELEASE = 0x20, /* Release Tag upon Completion */
    SCTPDDP_SIGNALS = 0xe0
};

enum {
    SCTPDDP_PARAMETER = 8,  /* octets of the Adaptation Layer Indication parameter */
    SCTPDDP_DDP_HEAD = 16,  /* octets of the header extension for DDP and DDP_WITH_TAG */
    SCTPDDP_RDMA_HEAD = 20, /* for the RDMA adaptations: the same fields and the AWS */
    SCTPDDP_HEAD_MAX = SCTPDDP_RDMA_HEAD,
    SCTPDDP_TYPE = 0xc006, /* type of the parameter (RFC 5061 4.2.6) */
};

/* One SCTP message. `data` is borrowed: it points into the message that was decoded. */
struct sctpddp_chunk {
    uint32_t mode; /* 24 bits: enum sctpddp_mode or an unknown value */
    uint8_t flags; /* enum sctpddp_flag */
    uint32_t tag;
    uint64_t offset;
    uint32_t aws; /* only in the RDMA adaptations; otherwise 0 */
    const uint8_t *data;
    uint32_t length;
};

/* Returns the document's name of an adaptation, such as "RDMA_ONLY". Never NULL. */
const char *sctpddp_adaptation_name(enum sctpddp_adaptation adaptation);

/* Encode and decode the parameter. sctpddp_get_parameter() returns false if the type, the length or the value is not
 * one of the document's, which counts as no indication. */
uint8_t *sctpddp_put_parameter(uint8_t *p, enum sctpddp_adaptation adaptation);
bool sctpddp_get_parameter(const uint8_t *p, size_t n, enum sctpddp_adaptation *adaptation);

/* Returns the adaptation for a 32-bit indication; SCTPDDP_PLAIN for an unknown value. */
enum sctpddp_adaptation sctpddp_adaptation_of(uint32_t indication);

/* Returns the octets of the header extension in messages of this sender: 0, 16 or 20. */
uint32_t sctpddp_head(enum sctpddp_adaptation sender);

/* Does this sender number its messages by AWS? Messages of other senders are ordered by TSN. */
bool sctpddp_has_aws(enum sctpddp_adaptation sender);

/* Decodes the header extension of a message of `n` octets. Returns FAULT_CHUNK_SHORT if the extension is incomplete.
 * The whole message of a SCTPDDP_PLAIN sender is data. chunk->data points into `p`. */
enum fault sctpddp_decode(enum sctpddp_adaptation sender, struct sctpddp_chunk *chunk, const uint8_t *p, size_t n);

/* Writes the header extension to `p`, which has room for SCTPDDP_HEAD_MAX octets. Returns its octets. The payload
 * follows it. */
size_t sctpddp_encode(enum sctpddp_adaptation sender, const struct sctpddp_chunk *chunk, uint8_t *p);

/* Applies rules R1 to R6 (3.2.1) to a message of this sender. `whole` is true if the bits U, B and E were all set.
 * Returns FAULT_NONE, and then chunk->mode says where the message goes, or the rule that was broken. */
enum fault sctpddp_judge(enum sctpddp_adaptation sender, const struct sctpddp_chunk *chunk, bool whole);

/* May a sender with this indication use this mode (2.2, S1, S2)? */
bool sctpddp_may_send(enum sctpddp_adaptation own, uint32_t mode);

/* Compares serial numbers (RFC 1982, SERIAL_BITS 32): has the cumulative number reached `at`? Returns false if they are
 * 2^31 apart, where the RFC defines no order. */
static inline bool sctpddp_reached(uint32_t cumulative, uint32_t at)
{
    return cumulative - at < 0x80000000u;
}

#endif
