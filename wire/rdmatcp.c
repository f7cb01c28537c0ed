/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdmatcp.c - the wire of RDMA/TCP segments: one header, control data, payload, pad and CRC-32
 * (rdma-tcp-segments.txt 3). */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crcseg.h"
#include "wire/wire.h"

enum {
    VERSION = 1,
    SHORT_HEAD = 24, /* Send and Read Response (3.1) */
    LONG_HEAD = 32,  /* Write and Read Request (3.2, 3.3) */
    CRC = 4,
    LENGTH_MAX = 65535,
    CONTROL_MAX = 1020,
    PAYLOAD_MIN = 64, /* the payload for links whose segments are too small */

    BEGIN = 0x08,
    END = 0x04,
    TYPE = 0x03,
};

static const struct {
    enum seg_op op;
    uint32_t head;
} types[] = {
    [0] = {SEG_SEND, SHORT_HEAD},
    [1] = {SEG_WRITE, LONG_HEAD},
    [2] = {SEG_READ_REQ, LONG_HEAD},
    [3] = {SEG_READ_RESP, SHORT_HEAD},
};

static const uint8_t type_of[] = {[SEG_SEND] = 0, [SEG_WRITE] = 1, [SEG_READ_REQ] = 2, [SEG_READ_RESP] = 3};

/* "Between 0 and 3 bytes of padding are used to make the segment a multiple of 4 bytes in length" (3.4). */
static uint32_t padded(uint32_t length)
{
    return (length + 3) & ~3u;
}

/* --- in -------------------------------------------------------------------------------------------------------- */

/* Decodes the common fields, and the Data Offset of the types with the short header. */
static void rdmatcp_read_head(struct seg *seg, const uint8_t *p)
{
    *seg = (struct seg){
        .op = types[p[1] & TYPE].op,
        .flags = (p[1] & BEGIN ? SEG_FIRST : 0u) | (p[1] & END ? SEG_LAST : 0u),
        .msg = get32(p + 12),
        .order = get16(p + 16),
        .reserved = (uint16_t)((p[1] & 0xf0) << 4 | p[18]),
        .control_length = 4u * p[19],
        .head = p,
        .head_length = types[p[1] & TYPE].head,
    };
    if (seg->head_length == SHORT_HEAD)
        seg->offset = get32(p + 20);
}

/* Decodes the rest of the long header: buffer, offset and length. */
static void read_place(struct seg *seg, const uint8_t *p)
{
    uint32_t buffer = get32(p + 20), offset = get32(p + 24), total = get32(p + 28);

    if (seg->op == SEG_READ_REQ) {
        seg->read = (struct seg_read){.source_key = buffer, .source_offset = offset, .length = total};
        return;
    }
    seg->key = buffer;
    seg->offset = offset;
    seg->total = total;
}

/* Checks the fields that framing needs: the version, the lengths and the Connection ID. */
static enum fault check_frame(const struct wire_state *agreed, const struct seg *seg, const uint8_t *p)
{
    uint32_t length = get16(p + 2);

    if (p[0] != VERSION)
        return FAULT_SEG_VERSION;
    if (length < seg->head_length)
        return FAULT_SEG_LENGTH;
    if (length - seg->head_length < seg->control_length)
        return FAULT_SEG_CLEN;
    if (agreed->id_known && get64(p + 4) != agreed->connection_id)
        return FAULT_SEG_ID;
    return FAULT_NONE;
}

/* Checks the fields of a segment against each other. */
static enum fault check_fields(const struct seg *seg)
{
    switch (seg->op) {
    case SEG_WRITE:
        if (seg->length > seg->total || (seg->flags & SEG_FIRST && seg->flags & SEG_LAST && seg->length != seg->total))
            return FAULT_SEG_TOTAL;
        return seg->offset + seg->length > (uint64_t)UINT32_MAX + 1 ? FAULT_SEG_PLACE : FAULT_NONE;
    case SEG_READ_REQ:
        if (seg->length)
            return FAULT_SEG_LENGTH;
        if (~seg->flags & (SEG_FIRST | SEG_LAST))
            return FAULT_SEG_BEGIN;
        return seg->read.source_offset + seg->read.length > (uint64_t)UINT32_MAX + 1 ? FAULT_SEG_PLACE : FAULT_NONE;
    default:
        return seg->flags & SEG_FIRST && seg->offset ? FAULT_SEG_OFFSET : FAULT_NONE;
    }
}

/* Decodes and checks the segment at `p` without changing the state; returns like decode(). */
static int look_for(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n, size_t *need)
{
    uint32_t length, octets;
    enum fault fault;

    *seg = (struct seg){.op = SEG_OPS};
    *need = SHORT_HEAD + CRC;
    if (n < SHORT_HEAD)
        return 0;
    rdmatcp_read_head(seg, p);
    seg->begin = seg->end = agreed->rx_pos;
    fault = check_frame(agreed, seg, p);
    if (fault)
        return -(int)fault;
    length = get16(p + 2);
    octets = padded(length) + CRC;
    *need = octets;
    if (n < octets)
        return 0;
    if (crcseg(0, p, octets - CRC) != get32le(p + octets - CRC))
        return -FAULT_SEG_CRC;
    if (seg->head_length == LONG_HEAD)
        read_place(seg, p);
    seg->control = p + seg->head_length;
    seg->data = seg->control + seg->control_length;
    seg->length = length - seg->head_length - seg->control_length;
    fault = check_fields(seg);
    if (fault)
        return -(int)fault;
    seg->end = agreed->rx_pos + octets;
    return (int)octets;
}

static int rdmatcp_decode(struct wire_state *agreed, struct seg *seg, uint8_t *p, size_t n, size_t *need)
{
    int octets = look_for(agreed, seg, p, n, need);

    if (octets > 0) {
        agreed->connection_id = get64(p + 4);
        agreed->id_known = true;
        agreed->rx_pos = seg->end;
    }
    return octets;
}

static int rdmatcp_look(const struct wire_state *agreed, struct seg *seg, const uint8_t *p, size_t n)
{
    size_t need;

    return agreed->rx_pos % 4 ? 0 : look_for(agreed, seg, p, n, &need);
}

/* A packet is assumed to start with a segment. The Connection ID, 64 bits that outsiders do not know, confirms it
 * (5). */
static size_t rdmatcp_find(const struct wire_state *agreed, const uint8_t *p, size_t n, bool *sure)
{
    *sure = true;
    return agreed->id_known && agreed->rx_pos % 4 == 0 && n >= SHORT_HEAD && get64(p + 4) == agreed->connection_id ? 0
                                                                                                                   : n;
}

/* --- out ------------------------------------------------------------------------------------------------------- */

/* A Read Response has the shorter header, but is cut like a Write because it takes turns with Writes. */
static uint32_t rdmatcp_payload_max(const struct wire_state *agreed, bool tagged, uint32_t emss)
{
    uint32_t head = tagged ? LONG_HEAD : SHORT_HEAD, unit = emss > LENGTH_MAX ? LENGTH_MAX + 1 : emss & ~3u;

    (void)agreed;
    return unit < head + CRC + PAYLOAD_MIN ? PAYLOAD_MIN : unit - head - CRC;
}

static bool rdmatcp_interleaves(const struct wire_state *agreed)
{
    (void)agreed;
    return false;
}

/* Writes the header and the control data; returns the address where the payload goes. */
static uint8_t *rdmatcp_put_head(const struct wire_state *agreed, const struct seg *seg, uint32_t payload, uint8_t *p)
{
    uint8_t type = type_of[seg->op], bits = (uint8_t)((seg->reserved >> 4 & 0xf0) | type);
    uint32_t length = types[type].head + seg->control_length + payload;

    assert(length <= LENGTH_MAX && seg->control_length <= CONTROL_MAX && seg->control_length % 4 == 0);
    bits |= seg->flags & SEG_FIRST ? BEGIN : 0;
    bits |= seg->flags & SEG_LAST ? END : 0;
    p = put64(put16(put8(put8(p, VERSION), bits), (uint16_t)length), agreed->connection_id);
    p = put16(put32(p, seg->msg), seg->order);
    p = put8(put8(p, (uint8_t)seg->reserved), (uint8_t)(seg->control_length / 4));
    if (seg->op == SEG_WRITE)
        p = put32(put32(put32(p, (uint32_t)seg->key), (uint32_t)seg->offset), seg->total);
    else if (seg->op == SEG_READ_REQ)
        p = put32(put32(put32(p, (uint32_t)seg->read.source_key), (uint32_t)seg->read.source_offset), seg->read.length);
    else
        p = put32(p, (uint32_t)seg->offset);
    return put_bytes(p, seg->control, seg->control_length);
}

/* Writes pad and CRC; returns their octets. The CRC covers the pad (3.4: "across the entire segment"). */
static uint32_t put_tail(uint8_t *p, uint32_t length, uint32_t crc)
{
    uint32_t pad = padded(length) - length;

    memset(p, 0, pad);
    put32le(p + pad, crcseg(crc, p, pad));
    return pad + CRC;
}

static uint32_t rdmatcp_sum(const struct span *span, unsigned spans)
{
    uint32_t octets = 0;

    for (unsigned i = 0; i < spans; i++)
        octets += span[i].length;
    return octets;
}

static size_t rdmatcp_frame(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                            uint8_t *out)
{
    uint8_t *p = rdmatcp_put_head(agreed, seg, rdmatcp_sum(span, spans), out);
    uint32_t crc = crcseg(0, out, (size_t)(p - out));
    size_t octets;

    for (unsigned i = 0; i < spans; i++) {
        crc = crcseg_copy(crc, p, span[i].at, span[i].length);
        p += span[i].length;
    }
    octets = (size_t)(p - out);
    octets += put_tail(p, (uint32_t)octets, crc);
    agreed->tx_pos += octets;
    return octets;
}

static void rdmatcp_wrap(struct wire_state *agreed, const struct seg *seg, const struct span *span, unsigned spans,
                         uint8_t *head, size_t *head_length, uint8_t *tail, size_t *tail_length)
{
    uint32_t payload = rdmatcp_sum(span, spans), crc;

    assert(!seg->control_length);
    *head_length = (size_t)(rdmatcp_put_head(agreed, seg, payload, head) - head);
    crc = crcseg(0, head, *head_length);
    for (unsigned i = 0; i < spans; i++)
        crc = crcseg(crc, span[i].at, span[i].length);
    *tail_length = put_tail(tail, (uint32_t)*head_length + payload, crc);
    agreed->tx_pos += *head_length + payload + *tail_length;
}

/* The document has no message that reports an error: the stream just ends. */
static bool rdmatcp_terminate(const struct wire_state *agreed, const struct fault_note *note, const struct seg *seg,
                              struct seg *out, uint8_t *buffer)
{
    (void)agreed, (void)note, (void)seg, (void)out, (void)buffer;
    return false;
}

const struct wire wire_rdmatcp = {
    .name = "rdmatcp",
    .numbering = SEG_NUMBERS_SEQUENCE,
    .frames_at_once = true,
    .decode = rdmatcp_decode,
    .find = rdmatcp_find,
    .look = rdmatcp_look,
    .payload_max = rdmatcp_payload_max,
    .interleaves = rdmatcp_interleaves,
    .frame = rdmatcp_frame,
    .wrap = rdmatcp_wrap,
    .terminate = rdmatcp_terminate,
};

_Static_assert((int)LONG_HEAD <= (int)WIRE_HEAD_MAX && 3 + (int)CRC <= (int)WIRE_TAIL_MAX, "head and tail fit");
_Static_assert((int)LENGTH_MAX + 1 + (int)CRC <= (int)WIRE_UNIT_MAX, "a unit fits");
