/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - what every wire can do: bytes to a segment and back, pure functions on a small state. */
#ifndef RDDP_WIRE_WIRE_H
#define RDDP_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "core/fault.h"
#include "core/seg.h"

enum {
    WIRE_HEAD_MAX = 72,    /* octets in front of a payload */
    WIRE_TAIL_MAX = 8,     /* pad and CRC behind it */
    WIRE_UNIT_MAX = 66560, /* octets of the longest unit of any wire: MPA's longest FPDU with its markers */
    WIRE_TERM_MAX = 76,    /* octets of the longest Terminate payload, and some */
    WIRE_SPANS_MAX = 16,   /* pieces of a payload: as many as a request has */
};

/* What a connection agreed on, and where its two streams are. Positions count octets since framing began. */
struct wire_state {
    bool crc;        /* in force for both directions */
    bool tx_markers; /* we put markers into what we send */
    bool rx_markers; /* the peer puts markers into what it sends */
    uint8_t version; /* DDP and RDMAP version: 1, or 0 in the RDMA Consortium's dialect and mpa.txt's own mode */
    bool id_known;   /* connection_id is in force: from the start at the active side, from the first segment on else */
    uint64_t connection_id;
    uint64_t tx_pos, rx_pos;
    bool aligned; /* by agreement with the peer's link a packet begins where a unit does, if nothing surer says where */
};

/* What a peer's Terminate says. */
struct wire_blame {
    uint32_t code;    /* 0xLTCC: layer, type, code */
    const char *text; /* the code's words and clause */
    enum seg_op op;   /* which of our operations it is about; SEG_OPS: none in particular */
    bool access;      /* it is about keys, rights or bounds */
    bool invalid;     /* the message is of no kind that the peer takes there, or too long for its receive */
};

struct wire {
    const char *name;
    enum seg_numbering numbering;
    bool frames_at_once; /* no start-up frames: the active side's first octet is a segment's */

    /* Decodes the unit at `p`, of which `n` octets are there (mutable: framing inside a payload is closed up in place).
     * > 0: that many octets are eaten and *seg is filled, begin and end included, payload contiguous and verified.
     *   0: more octets are needed; *need: how many in all, as far as known, from n + 1 to WIRE_UNIT_MAX.
     * < 0: minus an enum fault; *seg holds as much as was understood, for the Terminate. */
    int (*decode)(struct wire_state *agreed, struct seg *seg, uint8_t *p, size_t n, size_t *need);

    /* Where in the `n` octets that begin at stream position w->rx_pos, behind others that are missing, the first unit
     * begins that can be told: *sure if by what no payload can look like. n: there is none. */
    size_t (*find)(const struct wire_state *agreed, const uint8_t *p, size_t n, bool *sure);

    /* As decode() of a unit that begins at w->rx_pos, and nothing changes. seg->data is NULL if the payload is not in
     * one piece: decode() has to close it up. 0 also for a position that no unit has. */
    int (*look)(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n);

    /* Reads the head of a unit, of which `n` octets have come, and moves nothing. Octets in front of its payload, and
     * *seg is as from decode(), without data; or 0: it is not all there, or is nothing that decode() would take, or has
     * to be seen as a whole before it is believed, or has no payload. NULL: no unit of this wire can be taken apart. */
    uint32_t (*peek)(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n);

    /* The largest payload of a tagged (`tagged`) or untagged segment so that the unit fits `emss` octets. */
    uint32_t (*payload_max)(const struct wire_state *agreed, bool tagged, uint32_t emss);

    /* True if payload must be interleaved with framing (markers): then only frame() may be used. */
    bool (*interleaves)(const struct wire_state *agreed);

    /* Frames a whole segment into `out` (room for WIRE_UNIT_MAX), payload copied from the spans. Returns its octets. */
    size_t (*frame)(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                    uint8_t *out);

    /* The same without copying: writes only what stands in front of and behind the payload, which is read for the CRC
     * where it lies. `head` has room for WIRE_HEAD_MAX, `tail` for WIRE_TAIL_MAX. */
    void (*wrap)(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                 uint8_t *head, size_t *head_length, uint8_t *tail, size_t *tail_length);

    /* The Terminate that tells the peer of `note`; `seg` is the segment that brought it to light, or NULL. Fills a
     * SEG_TERMINATE whose data is in `room` (WIRE_TERM_MAX octets). False if this wire says nothing about such a fault:
     * close in silence. */
    bool (*terminate)(const struct wire_state *agreed, const struct fault_note *note, const struct seg *seg,
                      struct seg *out, uint8_t *buffer);

    /* Reads a peer's Terminate. Always fills *blame; what cannot be understood is said so in the text. NULL: this wire
     * has none. */
    void (*explain)(const struct seg *terminate, struct wire_blame *blame);
};

extern const struct wire wire_iwarp, wire_rdmatcp;

#endif
