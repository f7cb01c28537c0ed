/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp_neg.h - the negotiation of an association (doc/sctp-negotiation.md): messages in NO_PLACEMENT_MODE, and the
 * code in front of the reason of an ABORT. */
#ifndef RDDP_WIRE_SCTPDDP_NEG_H
#define RDDP_WIRE_SCTPDDP_NEG_H

#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "wire/wire.h"

enum neg_type {
    NEG_HELLO = 1,        /* set-up: the request, and its answer */
    NEG_SEND = 2,         /* data for the next posted receive */
    NEG_READ_REQUEST = 3, /* "place this at my tag" */
    NEG_PLACED = 4,       /* everything up to this AWS is placed */
};

enum neg_flag {
    NEG_REPLY = 1 << 0,  /* HELLO: this is the answer */
    NEG_REJECT = 1 << 1, /* HELLO, with NEG_REPLY: the association is not wanted */

    NEG_LAST = 1 << 0,       /* SEND: the last fragment of its message */
    NEG_SOLICITED = 1 << 1,  /* SEND: asks for an event */
    NEG_INVALIDATE = 1 << 2, /* SEND: `value` is a tag that ends with it */
    NEG_IMMEDIATE = 1 << 3,  /* SEND: `value` is immediate data, and there are no others */
    NEG_WRITTEN = 1 << 4,    /* SEND, with NEG_IMMEDIATE: they belong to the RDMA Write before it */
};

enum {
    NEG_VERSION = 1,
    NEG_HEAD = 8,                  /* octets that all messages begin with */
    NEG_SEND_HEAD = NEG_HEAD + 8,  /* octets in front of the data of a SEND */
    NEG_HELLO_HEAD = NEG_HEAD + 4, /* in front of private data */
    NEG_READ_OCTETS = NEG_HEAD + 20,
    NEG_PLACED_OCTETS = NEG_HEAD + 4,
    NEG_HEAD_MAX = NEG_READ_OCTETS,
    NEG_PRIVATE_MAX = 512,  /* octets of private data, as MPA has it */
    NEG_READS_MAX = 0x3fff, /* that a HELLO may offer, as RFC 6581 has it */
    NEG_REASON_MAX = 200,   /* octets of an ABORT's reason that we write */
};

/* One message. `data` is borrowed. */
struct neg {
    enum neg_type type;
    uint16_t flags; /* enum neg_flag */
    uint32_t id;    /* number of the Send or of the Read, each from 1 on; else 0 */
    uint16_t ird, ord;
    uint32_t offset, value;        /* SEND */
    uint32_t source_tag, sink_tag; /* READ_REQUEST; the sink's offsets begin at 0 */
    uint64_t source_offset;
    uint32_t length;
    uint32_t aws; /* PLACED */
    const uint8_t *data;
    uint32_t data_length;
};

/* FAULT_NONE, or FAULT_NEG_SHORT, FAULT_NEG_VERSION, FAULT_NEG_TYPE, FAULT_NEG_FIELD. */
enum fault neg_decode(struct neg *neg, const uint8_t *p, size_t n);

/* Writes all but the data (room for NEG_HEAD_MAX); returns its octets. */
size_t neg_encode(const struct neg *neg, uint8_t *p);

/* The reason that goes into an ABORT: "RDDP", four hexadecimal digits, and a sentence. Returns its octets, without a 0.
 */
size_t neg_reason(const struct fault_note *note, char reason[NEG_REASON_MAX]);

/* Reads a peer's reason. *blame is always filled; of a reason that is not ours its text is all there is. */
void neg_explain(const char *reason, size_t n, struct wire_blame *blame);

#endif
