/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ddp.c - decodes and checks DDP's placement fields and RDMAP's operation of a ULPDU; reads each field once. */
#include "wire/ddp.h"

#include <assert.h>
#include <stdbool.h>

#include "base/bytes.h"

/* Masks of octet 0, and the opcode in octet 1, whose upper bits hold RDMAP's version (RFC 5041 4.1, RFC 5040 4.1). The
 * bits between are reserved: sent as zero and ignored. */
enum { TAGGED = 0x80, LAST = 0x40, VERSION = 0x03, OPCODE = 0x0f, RDMAP_VERSION_SHIFT = 6 };

enum { QN_SEND, QN_READ, QN_TERMINATE, QN_ATOMIC };

/* The fewest octets of a Terminate header (RFC 5040 4.8). */
enum { TERMINATE_MIN = 4 };

/* RFC 5040 figure 4, one line per opcode. `alone`: the message is one segment. */
static const struct opcode {
    enum seg_op op;
    unsigned flags;
    bool tagged;
    uint32_t qn;
    uint32_t rdmap_head; /* octets of RDMAP header behind DDP's */
    uint32_t least;      /* the fewest octets of payload */
    bool alone;
} opcodes[] = {
    [0] = {SEG_WRITE, 0, true, 0, 0, 0, false},
    [1] = {SEG_READ_REQ, 0, false, QN_READ, RDMAP_READ_HEAD, 0, true},
    [2] = {SEG_READ_RESP, 0, true, 0, 0, 0, false},
    [3] = {SEG_SEND, 0, false, QN_SEND, 0, 0, false},
    [4] = {SEG_SEND, SEG_INVALIDATE, false, QN_SEND, 0, 0, false},
    [5] = {SEG_SEND, SEG_SOLICITED, false, QN_SEND, 0, 0, false},
    [6] = {SEG_SEND, SEG_SOLICITED | SEG_INVALIDATE, false, QN_SEND, 0, 0, false},
    [7] = {SEG_TERMINATE, 0, false, QN_TERMINATE, 0, TERMINATE_MIN, true},
    /* RFC 7306 figures 2 and 3. */
    [8] = {SEG_IMMEDIATE, 0, false, QN_SEND, RDMAP_IMMEDIATE_HEAD, 0, true},
    [9] = {SEG_IMMEDIATE, SEG_SOLICITED, false, QN_SEND, RDMAP_IMMEDIATE_HEAD, 0, true},
    [10] = {SEG_ATOMIC_REQ, 0, false, QN_READ, RDMAP_ATOMIC_HEAD, 0, true},
    [11] = {SEG_ATOMIC_RESP, 0, false, QN_ATOMIC, RDMAP_ATOMIC_ANSWER, 0, true},
};

enum { OPCODES = sizeof(opcodes) / sizeof(opcodes[0]) };

/* Returns NULL if the opcode is unknown or does not match the T bit. */
static const struct opcode *find_opcode(const uint8_t *head)
{
    unsigned code = head[1] & OPCODE;
    bool tagged = head[0] & TAGGED;

    return code < OPCODES && opcodes[code].tagged == tagged ? &opcodes[code] : NULL;
}

/* RFC 5040 figure 5. */
static void decode_read(struct seg_read *read, const uint8_t *p)
{
    *read = (struct seg_read){
        .sink_key = get32(p),
        .sink_offset = get64(p + 4),
        .length = get32(p + 12),
        .source_key = get32(p + 16),
        .source_offset = get64(p + 20),
    };
}

static uint8_t *encode_read(uint8_t *p, const struct seg_read *read)
{
    p = put64(put32(p, (uint32_t)read->sink_key), read->sink_offset);
    p = put32(p, read->length);
    return put64(put32(p, (uint32_t)read->source_key), read->source_offset);
}

/* RFC 7306 figure 4. Its 28 reserved bits are ignored. */
enum { ATOMIC_OP = 0x0f };

static enum fault decode_atomic(struct seg_atomic *a, const uint8_t *p)
{
    *a = (struct seg_atomic){
        .op = (enum seg_atomic_op)(get32(p) & ATOMIC_OP),
        .id = get32(p + 4),
        .key = get32(p + 8),
        .offset = get64(p + 12),
        .data = get64(p + 20),
        .mask = get64(p + 28),
        .compare = get64(p + 36),
        .compare_mask = get64(p + 44),
    };
    return a->op == SEG_FETCH_ADD || a->op == SEG_CMP_SWAP ? FAULT_NONE : FAULT_OPCODE;
}

static uint8_t *encode_atomic(uint8_t *p, const struct seg_atomic *a)
{
    p = put32(put32(p, a->op), a->id);
    p = put64(put32(p, (uint32_t)a->key), a->offset);
    p = put64(put64(p, a->data), a->mask);
    return put64(put64(p, a->compare), a->compare_mask);
}

/* RFC 7306 figure 6. */
static void decode_atomic_answer(struct seg_atomic *a, const uint8_t *p)
{
    *a = (struct seg_atomic){.id = get32(p), .data = get64(p + 4)};
}

/* Decodes the RDMAP header behind DDP's. */
static enum fault decode_rdmap(struct seg *seg, const uint8_t *p)
{
    switch (seg->op) {
    case SEG_READ_REQ:
        decode_read(&seg->read, p);
        return FAULT_NONE;
    case SEG_ATOMIC_REQ:
        return decode_atomic(&seg->atomic, p);
    case SEG_ATOMIC_RESP:
        decode_atomic_answer(&seg->atomic, p);
        return FAULT_NONE;
    default:
        seg->immediate = get64(p);
        return FAULT_NONE;
    }
}

static uint8_t *encode_rdmap(uint8_t *p, const struct seg *seg)
{
    switch (seg->op) {
    case SEG_READ_REQ:
        return encode_read(p, &seg->read);
    case SEG_ATOMIC_REQ:
        return encode_atomic(p, &seg->atomic);
    case SEG_ATOMIC_RESP:
        return put64(put32(p, seg->atomic.id), seg->atomic.data);
    case SEG_IMMEDIATE:
        return put64(p, seg->immediate);
    default:
        return p;
    }
}

/* RFC 5041 figure 3. */
static enum fault decode_tagged(struct seg *seg, const uint8_t *p)
{
    seg->key = get32(p + 2);
    seg->offset = get64(p + 6);
    return FAULT_NONE;
}

/* RFC 5041 figure 4. */
static enum fault decode_untagged(struct seg *seg, const uint8_t *p, const struct opcode *o)
{
    uint32_t qn = get32(p + 6);
    enum fault fault;

    if (o->flags & SEG_INVALIDATE)
        seg->invalidate = get32(p + 2);
    seg->msg = get32(p + 10);
    seg->offset = get32(p + 14);
    if (qn != o->qn)
        return FAULT_QUEUE;
    if (o->alone && seg->offset)
        return FAULT_MO;
    if (seg->length < o->rdmap_head + o->least || (o->alone && !(seg->flags & SEG_LAST)))
        return FAULT_SHORT;
    if (!o->rdmap_head)
        return FAULT_NONE;
    fault = decode_rdmap(seg, seg->data);
    seg->head_length += o->rdmap_head;
    seg->data += o->rdmap_head;
    seg->length -= o->rdmap_head;
    return seg->length ? FAULT_SHORT : fault;
}

enum fault ddp_decode(struct seg *seg, const uint8_t *ulpdu, size_t n, unsigned version)
{
    bool tagged = n && ulpdu[0] & TAGGED;
    uint32_t head = tagged ? DDP_TAGGED_HEAD : DDP_UNTAGGED_HEAD;
    const struct opcode *o;

    *seg =
        (struct seg){.op = tagged ? SEG_WRITE : SEG_SEND, .head = ulpdu, .head_length = n < head ? (uint32_t)n : head};
    seg->data = ulpdu + seg->head_length;
    seg->length = (uint32_t)n - seg->head_length;
    if (n && (ulpdu[0] & VERSION) != version)
        return FAULT_DDP_VERSION;
    if (n < head)
        return FAULT_SHORT;
    seg->flags = ulpdu[0] & LAST ? SEG_LAST : 0;
    if (ulpdu[1] >> RDMAP_VERSION_SHIFT != version)
        return FAULT_RDMAP_VERSION;
    o = find_opcode(ulpdu);
    if (!o)
        return FAULT_OPCODE;
    seg->op = o->op;
    seg->flags |= o->flags;
    return tagged ? decode_tagged(seg, ulpdu) : decode_untagged(seg, ulpdu, o);
}

/* SEG_LAST belongs to the segment; the other flags belong to the opcode. */
static unsigned opcode_of(const struct seg *seg)
{
    static const uint8_t first[] = {
        [SEG_WRITE] = 0,     [SEG_READ_REQ] = 1,  [SEG_READ_RESP] = 2,   [SEG_SEND] = 3,
        [SEG_TERMINATE] = 7, [SEG_IMMEDIATE] = 8, [SEG_ATOMIC_REQ] = 10, [SEG_ATOMIC_RESP] = 11,
    };
    unsigned code = first[seg->op], flags = seg->flags & ~(unsigned)SEG_LAST;

    while (code < OPCODES && opcodes[code].flags != flags)
        code++;
    assert(code < OPCODES && opcodes[code].op == seg->op);
    return code;
}

uint8_t *ddp_encode(uint8_t *p, const struct seg *seg, unsigned version)
{
    unsigned code = opcode_of(seg);
    const struct opcode *o = &opcodes[code];

    p = put8(p, (uint8_t)((o->tagged ? TAGGED : 0) | (seg->flags & SEG_LAST ? LAST : 0) | version));
    p = put8(p, (uint8_t)(version << RDMAP_VERSION_SHIFT | code));
    if (o->tagged)
        return put64(put32(p, (uint32_t)seg->key), seg->offset);
    p = put32(p, o->flags & SEG_INVALIDATE ? (uint32_t)seg->invalidate : 0);
    p = put32(p, o->qn);
    p = put32(p, seg->msg);
    p = put32(p, (uint32_t)seg->offset);
    return encode_rdmap(p, seg);
}

enum seg_op ddp_op(const uint8_t *head, size_t n)
{
    const struct opcode *o = n >= 2 ? find_opcode(head) : NULL;

    return o ? o->op : SEG_OPS;
}
