/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* space.c - the ring as its users see it: a source fills it and puts records about it, and a sink takes what they
 * describe. */
#include "tools/xfer/rdma_ring.h"

uint8_t *xfer_link_space(struct xfer_link *link, size_t *n)
{
    uint64_t free_from = link->sent < link->released ? link->sent : link->released;
    size_t size = link->ring.size, offset = (size_t)(link->filled % size);
    size_t space = size - (size_t)(link->filled - free_from);
    if (link->state != LINK_UP || space < *n + XFER_ALIGN)
        return NULL;
    if (*n > size - offset)
        *n = size - offset;
    return link->ring.at + offset;
}

void xfer_link_fill(struct xfer_link *link, size_t n)
{
    link->filled += n;
}

void xfer_link_put_data(struct xfer_link *link)
{
    struct xfer_record record = {.type = XFER_DATA_HERE, .length = (uint32_t)(link->filled - link->put)};
    link->filled = (link->filled + XFER_ALIGN - 1) / XFER_ALIGN * XFER_ALIGN;
    link->put = link->filled;
    xfer_link_put(link, &record);
}

void xfer_link_unfill(struct xfer_link *link)
{
    link->filled = link->put;
}

bool xfer_link_take(struct xfer_link *link, uint32_t length, struct link_piece piece[2])
{
    const struct link_in *in = &link->in[link->in_tail % XFER_RECEIVES];
    uint64_t next = (link->taken + length + XFER_ALIGN - 1) / XFER_ALIGN * XFER_ALIGN;
    size_t offset[2], octets[2];
    if (!length || length > XFER_DATA || next > in->head.to)
        return xfer_link_blame(link, "DATA of an invalid length");
    unsigned n = ring_cut(link, link->taken, link->taken + length, offset, octets);
    for (unsigned i = 0; i < 2; i++)
        piece[i] = i < n ? (struct link_piece){link->ring.at + offset[i], octets[i]} : (struct link_piece){0};
    link->taken = next;
    return true;
}
