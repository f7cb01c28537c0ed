/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_ring.c - the ring of octets between source and sink: how its parts are transferred, and which may come. */
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

unsigned ring_cut(const struct xfer_link *link, uint64_t from, uint64_t to, size_t offset[2], size_t length[2])
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

bool ring_admits(struct xfer_link *link, const struct xfer_head *head, const char **wrong)
{
    bool sink = link->move == LINK_WRITTEN || link->move == LINK_READ;
    if (!head->from && !head->to)
        return true;
    if (link->move == LINK_STAY)
        return false; /* an earlier message must establish the ring first */
    if (!sink)
        *wrong = "a part of the ring from a sink";
    /* Positions from `reported` on still belong to the sink: the source may fill at most one ring length from there. */
    else if (head->from != link->arrived || head->to < head->from || head->to - link->reported > link->ring.size)
        *wrong = "a part of the ring out of order";
    if (*wrong)
        return false;
    link->arrived = head->to;
    return true;
}
