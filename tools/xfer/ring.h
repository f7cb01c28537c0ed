/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.h - for xfer_link.c alone: which Writes and Reads carry a part of the ring over. */
#ifndef TOOLS_XFER_RING_H
#define TOOLS_XFER_RING_H

#include "tools/xfer/link.h"

/* Fills in the Writes, linked, and one more place behind them for the Send: returns it. */
struct rddp_send_wr *ring_writes(struct xfer_link *link, uint64_t from, uint64_t to, struct rddp_send_wr wr[3]);
/* Fills in the Reads, linked; returns how many. Their sges live until the next call. */
unsigned ring_reads(struct xfer_link *link, uint64_t from, uint64_t to, uint64_t id, struct rddp_send_wr wr[2]);
/* Checks what a head says of the ring and takes note of it. False: not yet, or link->state says more. */
bool ring_admits(struct xfer_link *link, const struct xfer_head *head);

#endif
