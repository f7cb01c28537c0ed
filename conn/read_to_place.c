/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* read_to_place.c - reads the payload of a large unit straight to its destination, bypassing the host's stage. */
#include <assert.h>
#include <string.h>

#include "conn/conn_inner.h"

/* Starts: copies the part of the payload that has arrived. */
static void read_to_place_begin(struct conn *c, const struct seg *seg, uint32_t head, uint8_t *at, const uint8_t *p,
                                uint32_t *n)
{
    uint32_t come = *n - head;

    memcpy(at, p + head, come);
    c->place_at = at;
    c->place_left = seg->length - come;
    *n = head;
}

/* Returns the octets behind the payload. */
static uint32_t tail(const struct seg *seg, uint32_t head)
{
    return (uint32_t)(seg->end - seg->begin) - head - seg->length;
}

/* The destination was valid at the start and is not any more: fails the connection. */
static bool is_lost(struct conn *c, const struct seg *seg, uint64_t now_us)
{
    struct fault_note note = c->life.qp->note;

    conn_fail(c, &note, seg, now_us);
    return false;
}

bool conn_read_to_place(struct conn *c, const uint8_t *p, uint32_t *n, uint32_t least, struct conn_place *to,
                        uint64_t now_us)
{
    enum fault fault;
    struct seg seg;
    uint32_t head;
    uint8_t *at;

    if (!life_is_open(&c->life) || !c->life.qp || c->start.silent || !c->wire->peek || (c->place_at && !c->place_left))
        return false;
    head = c->wire->peek(&c->agreed, &seg, p, *n);
    if (!head || (!c->place_at && (uint64_t)*n - head + least > seg.length))
        return false;
    fault = qp_locate(c->life.qp, &seg, &at);
    if (fault || !at)
        return c->place_at && is_lost(c, &seg, now_us);
    if (!c->place_at)
        read_to_place_begin(c, &seg, head, at, p, n);
    assert(c->place_at == at);
    *to = (struct conn_place){at + seg.length - c->place_left, c->place_left, tail(&seg, head)};
    return true;
}

void conn_filled(struct conn *c, size_t octets)
{
    assert(octets <= c->place_left);
    c->place_left -= (uint32_t)octets;
}

int read_to_place_end(struct conn *c, struct seg *seg, const uint8_t *p, size_t n)
{
    uint32_t head = c->place_left ? 0 : c->wire->peek(&c->agreed, seg, p, n);

    if (!head || n < head + tail(seg, head))
        return 0;
    seg->data = c->place_at;
    c->agreed.rx_pos = seg->end;
    c->place_at = NULL;
    return (int)(head + tail(seg, head));
}
