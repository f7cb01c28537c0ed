/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp_neg.h - the negotiation messages of an association, sent in NO_PLACEMENT_MODE, and the code and reason in an
 * ABORT (doc/sctp-negotiation.md). */
#ifndef RDDP_WIRE_SCTPDDP_NEG_H
#define RDDP_WIRE_SCTPDDP_NEG_H

#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "wire/wire.h"

enum neg_type {
    NEG_HELLO = 1,        /* set-up: the request and its reply */
    NEG_SEND = 2,         /* data for the next posted receive */
    NEG_READ_REQUEST = 3, /* asks the peer to place data at the tag of the requester */
    NEG_PLACED = 4,       /* everything up to this AWS has been placed */
};

enum neg_flag {
    NEG_REPLY = 1 << 0,   /* HELLO: this is the reply */
    NEG_REJECT = 1 << 1,  /* HELLO, with NEG_REPLY: the association is rejected */
    NEG_BATCHES = 1 << 2, /* HELLO: its sender's SCTP sends batches, and needs one acknowledgement for each */

    NEG_LAST = 1 << 0,       /* SEND: the last fragment of its message */
    NEG_SOLICITED = 1 << 1,  /* SEND: asks for an event */
    NEG_INVALIDATE = 1 << 2, /* SEND: `value` is a tag to invalidate */
    NEG_IMMEDIATE = 1 << 3,  /* SEND: `value` is immediate data; the message has no other data */
    NEG_WRITTEN = 1 << 4,    /* SEND, with NEG_IMMEDIATE: the immediate data belong to the preceding RDMA Write */
};

enum {
    NEG_VERSION = 1,
    NEG_HEAD = 8,                  /* octets of the header common to all messages */
    NEG_SEND_HEAD = NEG_HEAD + 8,  /* octets in front of the data of a SEND */
    NEG_HELLO_HEAD = NEG_HEAD + 4, /* octets in front of the private data of a HELLO */
    NEG_READ_OCTETS = NEG_HEAD + 20,
    NEG_PLACED_OCTETS = NEG_HEAD + 4,
    NEG_HEAD_MAX = NEG_READ_OCTETS,
    NEG_PRIVATE_MAX = 512,  /* octets of private data, the limit of MPA */
    NEG_READS_MAX = 0x3fff, /* most Reads that a HELLO may offer, the limit of RFC 6581 */
    NEG_REASON_MAX = 200,   /* most octets of an ABORT's reason that we write */
};

/* One negotiation message. `data` is borrowed. */
struct neg {
    enum neg_type type;
    uint16_t flags; /* enum neg_flag */
    uint32_t id;    /* number of the Send or of the Read, each counted from 1; 0 in other messages */
    uint16_t ird, ord;
    uint32_t offset, value;        /* SEND */
    uint32_t source_tag, sink_tag; /* READ_REQUEST; the sink's offsets begin at 0 */
    uint64_t source_offset;
    uint32_t length;
    uint32_t aws; /* PLACED */
    const uint8_t *data;
    uint32_t data_length;
};

/* Decodes the message of `n` octets at `p`; neg->data points into it. Returns FAULT_NONE, FAULT_NEG_SHORT,
 * FAULT_NEG_VERSION, FAULT_NEG_TYPE or FAULT_NEG_FIELD. */
enum fault neg_decode(struct neg *neg, const uint8_t *p, size_t n);

/* Writes everything except the data to `p`, which has room for NEG_HEAD_MAX octets. Returns the octets written. */
size_t neg_encode(const struct neg *neg, uint8_t *p);

/* Writes the reason for an ABORT: "RDDP", four hexadecimal digits, a space and a sentence. Returns its octets; there is
 * no terminating NUL. */
size_t neg_reason(const struct fault_note *note, char reason[NEG_REASON_MAX]);

/* Decodes a peer's reason. Always fills *blame; if the reason is not in our format, only its text is set. */
void neg_explain(const char *reason, size_t n, struct wire_blame *blame);

#endif
