/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdmatcp.c - a peer's RDMA/TCP segments. What hides everything behind it from a fuzzer, the Connection ID and the CRC,
 * is repaired before each is decoded.
 *
 * Input: an octet of the flags below, then the stream. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crcseg.h"
#include "wire/wire.h"

enum { REPAIR_CRC = 1, REPAIR_ID = 2, OPTIONS = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void repair(const struct wire_state *w, unsigned options, uint8_t *p, size_t n)
{
    size_t octets;

    if (n < 12)
        return;
    if (w->id_known && options & REPAIR_ID)
        put64(p + 4, w->connection_id);
    octets = ((size_t)get16(p + 2) + 3) & ~(size_t)3;
    if (options & REPAIR_CRC && octets + 4 <= n && octets >= 12)
        put32le(p + octets, crcseg(0, p, octets));
}

static void check_same(const struct seg *a, const struct seg *b)
{
    assert(a->op == b->op && a->flags == b->flags && a->msg == b->msg && a->order == b->order);
    assert(a->reserved == b->reserved && a->key == b->key && a->offset == b->offset && a->total == b->total);
    assert(a->read.source_key == b->read.source_key && a->read.source_offset == b->read.source_offset);
    assert(a->read.length == b->read.length && a->control_length == b->control_length);
    assert(memcmp(a->control, b->control, a->control_length) == 0);
    assert(a->length == b->length && memcmp(a->data, b->data, a->length) == 0);
    assert(a->begin == b->begin && a->end == b->end);
}

/* What was decoded is sent as if it were ours, framed whole and around its payload, and decoded once more. */
static void send_back(const struct wire_state *w, const struct seg *seg)
{
    static uint8_t unit[WIRE_UNIT_MAX];
    struct wire_state tx = *w, rx = *w;
    struct span span = {.at = seg->data, .length = seg->length};
    uint8_t head[WIRE_HEAD_MAX], tail[WIRE_TAIL_MAX];
    size_t head_length, tail_length, need, n;
    struct seg again;

    tx.tx_pos = rx.rx_pos = seg->begin;
    n = wire_rdmatcp.frame(&tx, seg, &span, 1, unit);
    assert(n <= WIRE_UNIT_MAX && tx.tx_pos == seg->end);
    if (!seg->control_length) {
        tx.tx_pos = seg->begin;
        wire_rdmatcp.wrap(&tx, seg, &span, 1, head, &head_length, tail, &tail_length);
        assert(head_length + seg->length + tail_length == n && tx.tx_pos == seg->end);
        assert(memcmp(unit, head, head_length) == 0);
        assert(memcmp(unit + n - tail_length, tail, tail_length) == 0);
    }
    assert(wire_rdmatcp.decode(&rx, &again, unit, n, &need) == (int)n);
    check_same(seg, &again);
}

/* Octets eaten, or 0 at the end. */
static size_t one_unit(struct wire_state *w, unsigned options, uint8_t *p, size_t n)
{
    uint64_t begin = w->rx_pos;
    size_t need = 0;
    struct seg seg;
    int eaten;

    repair(w, options, p, n);
    eaten = wire_rdmatcp.decode(w, &seg, p, n, &need);
    if (eaten <= 0) {
        assert(w->rx_pos == begin);
        if (eaten == 0)
            assert(need > n && need <= WIRE_UNIT_MAX);
        else
            assert(-eaten >= FAULT_SEG_VERSION && -eaten <= FAULT_SEG_TOTAL);
        return 0;
    }
    assert((size_t)eaten <= n && seg.begin == begin && seg.end == begin + (size_t)eaten && w->rx_pos == seg.end);
    assert(seg.op < SEG_TERMINATE && seg.head == p && seg.control == p + seg.head_length);
    assert(seg.data == seg.control + seg.control_length && seg.data + seg.length <= p + eaten - 4);
    assert(w->id_known);
    send_back(w, &seg);
    return (size_t)eaten;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct wire_state w = {.crc = true};
    uint8_t *stream;
    size_t n, at = 0, eaten;

    if (length < OPTIONS)
        return 0;
    n = length - OPTIONS;
    stream = malloc(n ? n : 1);
    if (!stream)
        return 0;
    memcpy(stream, input + OPTIONS, n);
    while ((eaten = one_unit(&w, input[0], stream + at, n - at)))
        at += eaten;
    free(stream);
    return 0;
}
