/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - the interface of every wire: pure functions that convert octets to segments and back, on a small state. */
#ifndef RDDP_WIRE_WIRE_H
#define RDDP_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "core/fault.h"
#include "core/seg.h"

enum {
    WIRE_HEAD_MAX = 72,    /* octets in front of a payload, at most */
    WIRE_TAIL_MAX = 8,     /* octets of pad and CRC behind it, at most */
    WIRE_UNIT_MAX = 66560, /* octets of the longest unit of any wire: MPA's longest FPDU with its markers */
    WIRE_TERM_MAX = 76,    /* octets of a Terminate payload, at most */
    WIRE_SPANS_MAX = 16,   /* pieces of a payload, at most: the spans of one request */
};

/* What a connection agreed on, and the position of its two streams. Positions count octets from the start of
 * framing. */
struct wire_state {
    bool crc;        /* in force for both directions */
    bool tx_markers; /* we put markers into what we send */
    bool rx_markers; /* the peer puts markers into what it sends */
    uint8_t version; /* DDP and RDMAP version: 1, or 0 in the RDMA Consortium's dialect and in mpa.txt's own mode */
    /* Is connection_id valid? At the active side always; at the passive side from the first received segment on. */
    bool id_known;
    uint64_t connection_id;
    uint64_t tx_pos, rx_pos;
    bool aligned; /* the peer's link starts each packet with a unit; ignored where markers show units */
};

/* The meaning of a peer's Terminate or ABORT. */
struct wire_blame {
    uint32_t code;    /* 0xLTCC: layer, type, code */
    const char *text; /* the words of the code, and its clause */
    enum seg_op op;   /* which of our operations it is about; SEG_OPS: none or unknown */
    bool access;      /* it is about keys, rights or bounds */
    bool invalid;     /* the peer does not accept such a message, or the message exceeds its receive */
};

struct wire {
    const char *name;
    enum seg_numbering numbering;
    bool frames_at_once; /* no start-up frames: the first octet of the active side belongs to a segment */

    /* Decodes the unit at `p`, of which `n` octets have arrived. Removes framing inside the payload in place.
     * > 0: the octets consumed. *seg is filled, including begin and end; the payload is contiguous and verified.
     * 0: more octets are needed. *need is the total needed as far as it is known, from n + 1 to WIRE_UNIT_MAX.
     * < 0: minus an enum fault. *seg holds what was decoded before the fault, for the Terminate. */
    int (*decode)(struct wire_state *agreed, struct seg *seg, uint8_t *p, size_t n, size_t *need);

    /* Returns the offset of the first recognizable unit among the `n` octets at stream position agreed->rx_pos, which
     * follow a gap; `n` if there is none. *sure: no payload can imitate what marks this unit. */
    size_t (*find)(const struct wire_state *agreed, const uint8_t *p, size_t n, bool *sure);

    /* Like decode() for a unit at agreed->rx_pos, but changes nothing. seg->data is NULL if the payload is not
     * contiguous until decode() removes the framing in it. Also returns 0 if no unit can begin at this position. */
    int (*look)(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n);

    /* Decodes only the head of a unit, of which `n` octets have arrived, and changes nothing. Returns the octets in
     * front of the payload and fills *seg like decode(), except that data is NULL. Returns 0 if the head is incomplete,
     * if decode() would refuse it, if the unit must be verified as a whole first, or if it has no payload. NULL: this
     * wire never splits a unit. */
    uint32_t (*peek)(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n);

    /* Returns the largest payload of a segment, tagged or untagged, whose unit fits into `emss` octets. The wire has a
     * minimum for links whose segments are too small. */
    uint32_t (*payload_max)(const struct wire_state *agreed, bool tagged, uint32_t emss);

    /* Does the wire interleave framing (markers) with the payload? Then only frame() may be used. */
    bool (*interleaves)(const struct wire_state *agreed);

    /* Writes a whole segment to `out`, which has room for WIRE_UNIT_MAX octets; copies the payload from the spans.
     * Returns its octets. */
    size_t (*frame)(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                    uint8_t *out);

    /* Like frame() without copying: writes only the octets before and behind the payload, and reads the payload in
     * place for the CRC. `head` has room for WIRE_HEAD_MAX octets, `tail` for WIRE_TAIL_MAX. */
    void (*wrap)(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                 uint8_t *head, size_t *head_length, uint8_t *tail, size_t *tail_length);

    /* Builds the Terminate that reports `note` to the peer. `seg` is the segment on which the fault was found, or NULL.
     * Fills *out, a SEG_TERMINATE whose data lies in `buffer` (WIRE_TERM_MAX octets). Returns false if this wire does
     * not report the fault: the connection is then closed without a Terminate. */
    bool (*terminate)(const struct wire_state *agreed, const struct fault_note *note, const struct seg *seg,
                      struct seg *out, uint8_t *buffer);

    /* Decodes a peer's Terminate. Always fills *blame; the text says so if it cannot be understood. NULL: this wire has
     * no Terminate. */
    void (*explain)(const struct seg *terminate, struct wire_blame *blame);
};

extern const struct wire wire_iwarp, wire_rdmatcp;

#endif
