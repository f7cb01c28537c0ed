/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.c - the ring of octets between source and sink: who may use which part, and how it is transferred. */
#include <assert.h>

#include "tools/xfer/rdma_ring.h"

static const unsigned access_of[] = {
    [LINK_STAY] = 0,
    [LINK_WRITE] = RDDP_ACCESS_STABLE,
    [LINK_WRITTEN] = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE,
    [LINK_READ] = RDDP_ACCESS_LOCAL_WRITE,
    [LINK_IS_READ] = RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_STABLE,
};

int xfer_link_ring(struct xfer_link *link, size_t octets, enum link_move move)
{
    assert(octets % XFER_ALIGN == 0 && octets >= XFER_RING_MIN && octets <= XFER_RING_MAX);
    int code = region_make(link->endpoint, octets, access_of[move], &link->ring);
    if (!code)
        link->move = move;
    return code;
}

/* Splits the part from `from` to `to` into one or two pieces that do not wrap. Returns their number. */
static unsigned ring_cut(const struct xfer_link *link, uint64_t from, uint64_t to, size_t offset[2], size_t length[2])
{
    if (from == to)
        return 0;
    size_t size = link->ring.size, total = (size_t)(to - from);
    offset[0] = (size_t)(from % size);
    offset[1] = 0;
    length[0] = total < size - offset[0] ? total : size - offset[0];
    length[1] = total - length[0];
    return length[1] ? 2 : 1;
}

/* Fills in a linked request for each piece; `sge` has room for two. */
static unsigned ring_describe(const struct xfer_link *link, uint64_t from, uint64_t to, struct rddp_send_wr *wr,
                              struct rddp_sge sge[2])
{
    size_t offset[2], length[2];
    unsigned n = ring_cut(link, from, to, offset, length);
    for (unsigned i = 0; i < n; i++) {
        sge[i] = region_sge(&link->ring, offset[i], (uint32_t)length[i]);
        wr[i] = (struct rddp_send_wr){
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = 1,
            .remote_addr = link->peer_ring + offset[i],
            .rkey = link->peer_key,
        };
    }
    return n;
}

struct rddp_send_wr *ring_writes(struct xfer_link *link, uint64_t from, uint64_t to, struct rddp_send_wr wr[3])
{
    unsigned n = link->move == LINK_WRITE ? ring_describe(link, from, to, wr, link->ring_sge) : 0;
    for (unsigned i = 0; i < n; i++) {
        wr[i].opcode = RDDP_WR_RDMA_WRITE;
        wr[i].next = &wr[i + 1];
    }
    return &wr[n];
}

unsigned ring_reads(struct xfer_link *link, uint64_t from, uint64_t to, uint64_t id, struct rddp_send_wr wr[2])
{
    unsigned n = link->move == LINK_READ ? ring_describe(link, from, to, wr, link->ring_sge) : 0;
    for (unsigned i = 0; i < n; i++) {
        wr[i].wr_id = id;
        wr[i].opcode = RDDP_WR_RDMA_READ;
        wr[i].send_flags = RDDP_SEND_SIGNALED;
    }
    return n;
}

bool ring_admits(struct xfer_link *link, const struct xfer_head *head)
{
    bool sink = link->move == LINK_WRITTEN || link->move == LINK_READ;
    if (!head->from && !head->to)
        return true;
    if (link->move == LINK_STAY)
        return false; /* an earlier message must establish the ring first */
    if (!sink)
        return xfer_link_blame(link, "a part of the ring from a sink");
    /* Positions from `told` on still belong to the sink: the source may fill at most one ring length from there. */
    if (head->from != link->arrived || head->to < head->from || head->to - link->told > link->ring.size)
        return xfer_link_blame(link, "a part of the ring out of order");
    link->arrived = head->to;
    return true;
}

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
