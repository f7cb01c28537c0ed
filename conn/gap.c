/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gap.c - the payload of a large unit is read to where it belongs, without a way through the host's stage. */
#include <assert.h>
#include <string.h>

#include "conn/conn_inner.h"

/* What has come of the payload goes first. */
static void begin(struct conn *c, const struct wire_gap *gap, uint8_t *at, const uint8_t *p, uint32_t *n)
{
    uint32_t come = *n - gap->head;

    memcpy(at, p + gap->head, come);
    c->in_gap = true;
    c->gap_at = at;
    c->gap_left = gap->payload - come;
    *n = gap->head;
}

/* It had been allowed when it began. */
static bool is_lost(struct conn *c, const struct seg *seg, uint64_t now_us)
{
    struct fault_note note = c->qp->note;

    conn_fail(c, &note, seg, now_us);
    return false;
}

bool conn_gap(struct conn *c, const uint8_t *p, uint32_t *n, uint32_t least, struct conn_gap *to, uint64_t now_us)
{
    struct wire_gap gap;
    enum fault fault;
    struct seg seg;
    uint8_t *at;

    if ((c->state != CONN_READY && c->state != CONN_DRAINING) || !c->qp || c->hold || !c->wire->open ||
        (c->in_gap && !c->gap_left) || !c->wire->open(&c->w, &seg, &gap, p, *n))
        return false;
    if (!c->in_gap && (uint64_t)*n - gap.head + least > gap.payload)
        return false;
    fault = qp_locate(c->qp, &seg, &at);
    if (fault || !at)
        return c->in_gap && is_lost(c, &seg, now_us);
    if (!c->in_gap)
        begin(c, &gap, at, p, n);
    assert(c->gap_at == at);
    *to = (struct conn_gap){at + gap.payload - c->gap_left, c->gap_left, gap.tail};
    return true;
}

void conn_filled(struct conn *c, size_t octets)
{
    assert(octets <= c->gap_left);
    c->gap_left -= (uint32_t)octets;
}

int gap_close(struct conn *c, struct seg *seg, const uint8_t *p, size_t n)
{
    struct wire_gap gap;

    if (c->gap_left || !c->wire->open(&c->w, seg, &gap, p, n) || n < gap.head + gap.tail)
        return 0;
    seg->data = c->gap_at;
    c->w.rx_pos = seg->end;
    c->in_gap = false;
    return (int)(gap.head + gap.tail);
}
