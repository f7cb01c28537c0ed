/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_ring.c - the rings of a link: octets that wait for their turn, and octets that are sent and not acknowledged.
 * They grow with the windows of both ends, as long as memory is left for it. */
#include <string.h>

#include "tcp/io/mirror.h"
#include "tcp/io/packet_device.h"
#include "wire/wire.h"

enum {
    IN_TIMES = 4,  /* placed octets use no window, but their positions lie in the ring */
    OUT_TIMES = 2, /* octets accepted for sending, in windows */
};

bool packet_ring_open(struct packet_link *l)
{
    for (l->out_octets = 2 * WIRE_UNIT_MAX; l->out_octets & (l->out_octets - 1);)
        l->out_octets += l->out_octets & -l->out_octets;
    while (l->out_octets < OUT_TIMES * (uint64_t)l->device->attr.window)
        l->out_octets *= 2;
    l->in_octets = l->out_octets * IN_TIMES / OUT_TIMES;
    l->in = mirror_map(l->in_octets);
    l->out = mirror_map(l->out_octets);
    return l->in && l->out;
}

void packet_ring_close(struct packet_link *l)
{
    mirror_unmap(l->in, l->in_octets);
    mirror_unmap(l->out, l->out_octets);
    atomic_fetch_sub_explicit(&l->device->grown, l->grown, memory_order_relaxed);
}

/* Links of several endpoints grow at once. */
static bool reserve_ring(struct packet_link *l, uint64_t octets)
{
    uint64_t before = atomic_fetch_add_explicit(&l->device->grown, octets, memory_order_relaxed);

    if (before + octets <= PACKET_GROWN_MAX) {
        l->grown += octets;
        return true;
    }
    atomic_fetch_sub_explicit(&l->device->grown, octets, memory_order_relaxed);
    return false;
}

/* Moves the ring's octets [from, to) to one of `octets`. */
static bool move_link_ring(struct packet_link *l, uint8_t **ring, uint64_t *now, uint64_t octets, uint64_t from,
                           uint64_t to)
{
    uint8_t *new = reserve_ring(l, octets - *now) ? mirror_map(octets) : NULL;

    if (!new)
        return false;
    memcpy(new + (from & (octets - 1)), *ring + (from & (*now - 1)), to - from);
    mirror_unmap(*ring, *now);
    *ring = new;
    *now = octets;
    return true;
}

void packet_ring_grow_in(struct packet_link *l, uint64_t read_to)
{
    uint64_t octets = l->in_octets;

    while (octets < IN_TIMES * (uint64_t)l->tcp.attr.window)
        octets *= 2;
    if (octets != l->in_octets)
        move_link_ring(l, &l->in, &l->in_octets, octets, read_to, utcp_highest(&l->tcp));
}

bool packet_ring_grow_out(struct packet_link *l)
{
    uint64_t most = OUT_TIMES * (uint64_t)l->device->attr.window_max;

    if (l->tcp.cubic.cwnd <= l->out_octets / OUT_TIMES || l->out_octets >= most)
        return false;
    return move_link_ring(l, &l->out, &l->out_octets, 2 * l->out_octets, utcp_acked(&l->tcp), l->written);
}
