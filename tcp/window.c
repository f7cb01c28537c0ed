/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window.c - how large the receive window is. It grows with what the user takes, so that it is not what limits a long
 * path: a window has to hold what the peer sends in a round trip. */
#include "tcp/inner.h"

enum {
    SCALE_MAX = 14, /* RFC 7323 2.3 */
    TAKEN_TIMES = 4 /* of what is taken in a round trip: a sender in slow start doubles it, and losses are repaired */
};

uint8_t utcp_scale_for(const struct utcp_attr *attr)
{
    uint32_t most = attr->window_max > attr->window ? attr->window_max : attr->window;
    uint8_t scale = 0;

    while (scale < SCALE_MAX && most >> scale > UINT16_MAX)
        scale++;
    return scale;
}

/* Returns the right edge of the window: the room behind what is kept, and never less than was promised. */
uint64_t utcp_rx_edge(const struct utcp *t)
{
    uint64_t space = t->rx.kept < t->attr.window ? t->attr.window - t->rx.kept : 0;
    uint64_t said = utcp_min(space, (uint64_t)UINT16_MAX << t->rx.scale); /* more does not fit into a header */
    uint64_t edge = utcp_min(t->rx.next + said, t->rx.limit);

    return utcp_max(edge, t->rx.edge);
}

/* The shortest round trip is taken for all: a longer one is a queue, which a larger window would only lengthen. */
void utcp_window_grow(struct utcp *t, uint64_t now_us)
{
    struct utcp_taking *taking = &t->rx.taking;
    uint64_t taken = t->rx.next - t->rx.kept, since_us = now_us - taking->begin_us, each;

    if (t->attr.window >= t->attr.window_max || !t->rtt.min_us || since_us < t->rtt.min_us)
        return;
    each = taken > taking->from ? (taken - taking->from) * t->rtt.min_us / since_us : 0;
    if (taking->begin_us && TAKEN_TIMES * each > t->attr.window)
        t->attr.window = (uint32_t)utcp_min(TAKEN_TIMES * each, t->attr.window_max);
    *taking = (struct utcp_taking){now_us, taken};
}
