/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt.c - encodes and decodes the figure of section 3.1, and checks its fields. */
#include "wire/tcpopt.h"

#include <assert.h>

#include "base/bytes.h"

#define ALIGNED (1ULL << 47)
#define UNSOLICITED (1ULL << 46)

static enum tcpopt_fault tcpopt_check(const struct tcpopt *o, uint32_t payload)
{
    if (o->data_offset > payload)
        return TCPOPT_DATA_OFFSET;
    if (o->data_length > payload - o->data_offset)
        return TCPOPT_DATA_LENGTH;
    /* 2^32 - 1 is the last offset that the field can hold. */
    if (o->data_length && o->data_length - 1U > UINT32_MAX - o->buffer_offset)
        return TCPOPT_WRAP;
    if (o->length == TCPOPT_LONG && (o->buffer_offset > o->total || o->data_length > o->total - o->buffer_offset))
        return TCPOPT_PAST_TOTAL;
    return TCPOPT_GOOD;
}

enum tcpopt_fault tcpopt_decode(struct tcpopt *o, const uint8_t *p, uint32_t length, uint32_t at, uint32_t payload)
{
    uint64_t head;

    if (length != TCPOPT_OFFER && length != TCPOPT_MARK && length != TCPOPT_SHORT && length != TCPOPT_LONG)
        return TCPOPT_BAD_LENGTH;
    if (at % 4)
        return TCPOPT_MISPLACED;
    *o = (struct tcpopt){.length = (uint8_t)length};
    if (length == TCPOPT_OFFER)
        return TCPOPT_GOOD;
    o->aligned = p[2] & 0x80;
    if (length == TCPOPT_MARK)
        return TCPOPT_GOOD;
    head = (uint64_t)get16(p + 2) << 32 | get32(p + 4);
    o->unsolicited = head & UNSOLICITED;
    o->rid = head & TCPOPT_RID_MAX;
    o->buffer_offset = get32(p + 8);
    o->data_offset = get16(p + 12);
    o->data_length = get16(p + 14);
    if (length == TCPOPT_LONG)
        o->total = get32(p + 16);
    return tcpopt_check(o, payload);
}

uint8_t *tcpopt_encode(uint8_t *q, const struct tcpopt *o)
{
    uint64_t head = (o->aligned ? ALIGNED : 0) | (o->unsolicited ? UNSOLICITED : 0) | o->rid;

    assert(o->rid <= TCPOPT_RID_MAX);
    q = put8(put8(q, TCPOPT_KIND), o->length);
    if (o->length == TCPOPT_OFFER)
        return q;
    if (o->length == TCPOPT_MARK)
        return put16(q, o->aligned ? 0x8000 : 0);
    q = put32(put16(q, (uint16_t)(head >> 32)), (uint32_t)head);
    q = put16(put16(put32(q, o->buffer_offset), o->data_offset), o->data_length);
    return o->length == TCPOPT_LONG ? put32(q, o->total) : q;
}
