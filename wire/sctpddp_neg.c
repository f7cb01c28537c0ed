/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp_neg.c - the messages that the two ends of an association negotiate with, and the reasons in its ABORTs. */
#include "wire/sctpddp_neg.h"

#include "base/bytes.h"

enum { SEND_FLAGS = NEG_LAST | NEG_SOLICITED | NEG_INVALIDATE | NEG_IMMEDIATE | NEG_WRITTEN };

/* doc/sctp-negotiation.md, "Messages", one line per type: octets in front of the data, whether data may follow,
 * flags. */
/* clang-format off */
static const struct {
    uint8_t head;
    uint8_t has_data;
    uint16_t flags;
} types[] = {
    [NEG_HELLO]        = {NEG_HELLO_HEAD,    1, NEG_REPLY | NEG_REJECT | NEG_BATCHES},
    [NEG_SEND]         = {NEG_SEND_HEAD,     1, SEND_FLAGS},
    [NEG_READ_REQUEST] = {NEG_READ_OCTETS,   0, 0},
    [NEG_PLACED]       = {NEG_PLACED_OCTETS, 0, 0},
};
/* clang-format on */

static void get_body(struct neg *neg, const uint8_t *p)
{
    switch (neg->type) {
    case NEG_HELLO:
        neg->ird = get16(p);
        neg->ord = get16(p + 2);
        break;
    case NEG_SEND:
        neg->offset = get32(p);
        neg->value = get32(p + 4);
        break;
    case NEG_READ_REQUEST:
        neg->source_tag = get32(p);
        neg->sink_tag = get32(p + 4);
        neg->source_offset = get64(p + 8);
        neg->length = get32(p + 16);
        break;
    case NEG_PLACED:
        neg->aws = get32(p);
        break;
    }
}

/* Do fields contradict each other? */
static bool is_wrong(const struct neg *neg)
{
    uint16_t flags = neg->flags;

    switch (neg->type) {
    case NEG_HELLO:
        return (flags & NEG_REJECT && !(flags & NEG_REPLY)) || neg->data_length > NEG_PRIVATE_MAX;
    case NEG_SEND:
        if (flags & NEG_IMMEDIATE)
            return flags & NEG_INVALIDATE || !(flags & NEG_LAST) || neg->offset || neg->data_length;
        return flags & NEG_WRITTEN;
    default:
        return false;
    }
}

enum fault neg_decode(struct neg *neg, const uint8_t *p, size_t n)
{
    uint8_t type;

    *neg = (struct neg){.type = NEG_HELLO};
    if (n < NEG_HEAD)
        return FAULT_NEG_SHORT;
    if (p[0] != NEG_VERSION)
        return FAULT_NEG_VERSION;
    type = p[1];
    if (type < NEG_HELLO || type > NEG_PLACED)
        return FAULT_NEG_TYPE;
    if (n < types[type].head)
        return FAULT_NEG_SHORT;
    neg->type = (enum neg_type)type;
    neg->flags = get16(p + 2);
    neg->id = get32(p + 4);
    get_body(neg, p + NEG_HEAD);
    neg->data = p + types[type].head;
    neg->data_length = (uint32_t)(n - types[type].head);
    if ((neg->data_length && !types[type].has_data) || neg->flags & ~types[type].flags || is_wrong(neg))
        return FAULT_NEG_FIELD;
    return FAULT_NONE;
}

size_t neg_encode(const struct neg *neg, uint8_t *p)
{
    uint8_t *q = put8(put8(p, NEG_VERSION), (uint8_t)neg->type);

    q = put32(put16(q, neg->flags), neg->id);
    switch (neg->type) {
    case NEG_HELLO:
        q = put16(put16(q, neg->ird), neg->ord);
        break;
    case NEG_SEND:
        q = put32(put32(q, neg->offset), neg->value);
        break;
    case NEG_READ_REQUEST:
        q = put32(put32(q, neg->source_tag), neg->sink_tag);
        q = put32(put64(q, neg->source_offset), neg->length);
        break;
    case NEG_PLACED:
        q = put32(q, neg->aws);
        break;
    }
    return (size_t)(q - p);
}

/* --- reasons ------------------------------------------------------------------------------------------------- */

/* doc/sctp-negotiation.md, "Errors": the second octet of a code, and whether it is about keys, rights or bounds. Faults
 * that are not listed have the code 0xff, "another error". */
/* clang-format off */
static const struct {
    enum fault fault;
    uint8_t code;
    bool access;
    const char *text;
} reasons[] = {
    {FAULT_CHUNK_R1,       0x01, false, "R1: NO_PLACEMENT_MODE under RDMA_ONLY"},
    {FAULT_CHUNK_R2,       0x02, false, "R2: DDP_MODE without DDP"},
    {FAULT_CHUNK_R3,       0x03, false, "R3: DDP_WITH_TAG_MODE without DDP_WITH_TAG"},
    {FAULT_CHUNK_R4,       0x04, false, "R4: RDMA_PLACEMENT_MODE without RDMA_ONLY or RDMA_AND_NEGOTIATION"},
    {FAULT_CHUNK_MODE,     0x05, false, "an unknown Placement Mode"},
    {FAULT_CHUNK_SHORT,    0x06, false, "shorter than the header extension"},
    {FAULT_CHUNK_FLAGS,    0x07, false, "U, B and E are not all set"},
    {FAULT_CHUNK_AGAIN,    0x08, false, "a sequence number that has come before"},
    {FAULT_CHUNK_AHEAD,    0x09, false, "a sequence number too far ahead"},
    {FAULT_KEY,            0x10, true,  "no such tag, or it was released"},
    {FAULT_DOMAIN,         0x11, true,  "a tag of another protection domain"},
    {FAULT_RIGHT,          0x12, true,  "the buffer does not allow this access"},
    {FAULT_BOUNDS,         0x13, true,  "outside the buffer"},
    {FAULT_WRAP,           0x14, true,  "offset and length pass 2^64"},
    {FAULT_CHUNK_STREAM,   0x15, true,  "no buffer is bound to the stream"},
    {FAULT_CHUNK_RELEASED, 0x16, true,  "behind the chunk that releases the tag"},
    {FAULT_INVALIDATE,     0x17, true,  "a tag that is not the peer's to release"},
    {FAULT_UNASKED,        0x18, true,  "not an answer to a Read"},
    {FAULT_ABSENT,         0x19, true,  "memory that is not there"},
    {FAULT_NO_RECEIVE,     0x20, false, "no receive is posted"},
    {FAULT_MSN,            0x21, false, "a message number out of turn"},
    {FAULT_MO,             0x22, false, "a message offset out of turn"},
    {FAULT_TOO_LONG,       0x23, false, "longer than its receive"},
    {FAULT_READS,          0x24, false, "more Reads at once than agreed"},
    {FAULT_NEG_VERSION,    0x30, false, "another version of the negotiation"},
    {FAULT_NEG_TYPE,       0x31, false, "an unknown negotiation message"},
    {FAULT_NEG_SHORT,      0x32, false, "a negotiation message that is cut off"},
    {FAULT_NEG_FIELD,      0x33, false, "a negotiation message that contradicts itself"},
    {FAULT_NEG_TURN,       0x34, false, "a negotiation message out of turn"},
    {FAULT_STALLED,        0x40, false, "time-out"},
    {FAULT_LOCAL_KEY,      0x41, false, "a request named memory that is not its own"},
    {FAULT_CQ_FULL,        0x42, false, "a completion queue is full"},
    {FAULT_MEMORY,         0x43, false, "out of memory"},
    {FAULT_NONE,           0xff, false, "another error"},
};
/* clang-format on */
enum { REASONS = sizeof(reasons) / sizeof(reasons[0]), MARK = 4, CODE = 4 };

static const char mark[MARK + 1] = "RDDP", digits[] = "0123456789abcdef";

size_t neg_reason(const struct fault_note *note, char reason[NEG_REASON_MAX])
{
    unsigned i = 0, code;
    size_t n;

    while (i < REASONS - 1 && reasons[i].fault != note->fault)
        i++;
    code = ((unsigned)note->op + 1) << 8 | reasons[i].code;
    memcpy(reason, mark, MARK);
    for (unsigned k = 0; k < CODE; k++)
        reason[MARK + k] = digits[code >> 4 * (CODE - 1 - k) & 15];
    reason[MARK + CODE] = ' ';
    n = strlen(reasons[i].text);
    memcpy(reason + MARK + CODE + 1, reasons[i].text, n);
    return MARK + CODE + 1 + n;
}

/* Returns the code behind the mark; -1 if the reason is not in our format. */
static int32_t code_of(const char *reason, size_t n)
{
    int32_t code = 0;

    if (n < MARK + CODE || memcmp(reason, mark, MARK) != 0)
        return -1;
    for (unsigned k = 0; k < CODE; k++) {
        const char *at = memchr(digits, reason[MARK + k], 16);

        if (!at)
            return -1;
        code = code << 4 | (int32_t)(at - digits);
    }
    return code;
}

void neg_explain(const char *reason, size_t n, struct wire_blame *blame)
{
    int32_t code = code_of(reason, n);
    unsigned i = 0, op = code < 0 ? 0 : (unsigned)code >> 8;

    *blame = (struct wire_blame){.text = "the peer aborted the association", .op = SEG_OPS};
    if (code < 0)
        return;
    while (i < REASONS - 1 && reasons[i].code != (code & 0xff))
        i++;
    blame->code = (uint32_t)code;
    blame->text = reasons[i].text;
    blame->access = reasons[i].access;
    blame->invalid = reasons[i].fault == FAULT_TOO_LONG || reasons[i].fault == FAULT_NEG_TYPE;
    if (op >= 1 && op <= SEG_TERMINATE)
        blame->op = (enum seg_op)(op - 1);
}
