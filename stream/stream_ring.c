/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_ring.c - the ring of kept octets, which grows with the window. */
#include <sys/mman.h>

#include "stream/inner.h"

enum { RING_TIMES = 4 }; /* placed octets use no window, but their positions lie in the ring */

/* Pages that are never touched take no memory. */
static uint8_t *map_ring(uint64_t octets)
{
    void *ring = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return ring == MAP_FAILED ? NULL : ring;
}

bool stream_ring_open(struct rddp_stream *s)
{
    for (s->ring_octets = 1; s->ring_octets < RING_TIMES * (uint64_t)s->net->attr.window;)
        s->ring_octets *= 2;
    s->ring = map_ring(s->ring_octets);
    return s->ring != NULL;
}

/* Octets of the ring beyond those that it began with. */
static uint64_t grown(const struct rddp_stream *s)
{
    return s->ring_first ? s->ring_octets - s->ring_first : 0;
}

void stream_ring_close(struct rddp_stream *s)
{
    if (s->ring)
        munmap(s->ring, s->ring_octets);
    s->net->grown -= grown(s);
    s->ring = NULL;
}

/* All octets from `from` to `to` get their places in the new ring. */
static void move_ring(struct rddp_stream *s, uint8_t *ring, uint64_t octets, uint64_t from, uint64_t to)
{
    for (uint64_t at = from, n; at < to; at += n) {
        uint64_t old = at & (s->ring_octets - 1), new = at &(octets - 1);

        n = s->ring_octets - old < octets - new ? s->ring_octets - old : octets - new;
        n = n < to - at ? n : to - at;
        memcpy(ring + new, s->ring + old, n);
    }
}

void stream_ring_grow(struct rddp_stream *s)
{
    uint64_t octets = s->ring_octets, from = s->read_to, to = utcp_highest(&s->tcp);
    uint8_t *ring;

    while (octets < RING_TIMES * (uint64_t)s->tcp.attr.window)
        octets *= 2;
    if (octets == s->ring_octets || octets - s->ring_octets > STREAM_GROWN_MAX - s->net->grown)
        return;
    ring = map_ring(octets);
    if (!ring)
        return;
    if (!s->last.at) /* the record that was read last may go back */
        from -= s->last.length;
    move_ring(s, ring, octets, from, to);
    if (!s->ring_first)
        s->ring_first = s->ring_octets;
    munmap(s->ring, s->ring_octets);
    s->net->grown += octets - s->ring_octets;
    s->ring = ring;
    s->ring_octets = octets;
}
