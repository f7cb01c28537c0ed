/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_ring.h - for copy_link.c and space.c: the parts of the ring, and RDMA Writes and Reads between them. */
#ifndef TOOLS_XFER_RING_H
#define TOOLS_XFER_RING_H

#include "tools/xfer/copy_link.h"

/* Fills in the linked Writes, and leaves one more entry at the end for the Send, which it returns. */
struct rddp_send_wr *ring_writes(struct xfer_link *link, uint64_t from, uint64_t to, struct rddp_send_wr wr[3]);
/* Fills in the linked Reads and returns their number. Their SGEs are valid until the next call. */
unsigned ring_reads(struct xfer_link *link, uint64_t from, uint64_t to, uint64_t id, struct rddp_send_wr wr[2]);
/* Checks and stores what a message head says of the ring. Returns false if it is too early, or sets *wrong to what
 * violates the protocol; *wrong is NULL before. */
bool ring_admits(struct xfer_link *link, const struct xfer_head *head, const char **wrong);
/* Splits the part from `from` to `to` into one or two pieces that do not wrap. Returns their number. */
unsigned ring_cut(const struct xfer_link *link, uint64_t from, uint64_t to, size_t offset[2], size_t length[2]);

#endif
