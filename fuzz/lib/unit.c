/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unit.c - encodes a decoded segment as if it were ours, and decodes it again. */
#include "fuzz/lib/unit.h"

#include <assert.h>
#include <string.h>

static void check_same(const struct seg *a, const struct seg *b)
{
    assert(a->op == b->op && a->flags == b->flags && a->msg == b->msg && a->order == b->order);
    assert(a->key == b->key && a->offset == b->offset && a->total == b->total);
    assert(a->invalidate == b->invalidate && a->reserved == b->reserved);
    assert(a->read.sink_key == b->read.sink_key && a->read.sink_offset == b->read.sink_offset);
    assert(a->read.source_key == b->read.source_key && a->read.source_offset == b->read.source_offset);
    assert(a->read.length == b->read.length && a->control_length == b->control_length);
    assert(!a->control_length || memcmp(a->control, b->control, a->control_length) == 0);
    assert(a->length == b->length && memcmp(a->data, b->data, a->length) == 0);
    assert(a->begin == b->begin && a->end == b->end);
}

void unit_send_back(const struct wire *wire, const struct wire_state *agreed, const struct seg *seg)
{
    static uint8_t unit[WIRE_UNIT_MAX];
    struct wire_state tx = *agreed, rx = *agreed;
    struct span span = {.at = seg->data, .length = seg->length};
    uint8_t head[WIRE_HEAD_MAX], tail[WIRE_TAIL_MAX];
    size_t head_length, tail_length, need, n;
    struct seg again;

    tx.tx_pos = rx.rx_pos = seg->begin;
    tx.tx_markers = agreed->rx_markers;
    n = wire->frame(&tx, seg, &span, 1, unit);
    assert(n <= WIRE_UNIT_MAX && tx.tx_pos == seg->end);
    if (!tx.tx_markers && !seg->control_length) {
        tx.tx_pos = seg->begin;
        wire->wrap(&tx, seg, &span, 1, head, &head_length, tail, &tail_length);
        assert(head_length + seg->length + tail_length == n && tx.tx_pos == seg->end);
        assert(memcmp(unit, head, head_length) == 0);
        assert(memcmp(unit + n - tail_length, tail, tail_length) == 0);
    }
    assert(wire->decode(&rx, &again, unit, n, &need) == (int)n);
    check_same(seg, &again);
}
