/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_inner.h - what assoc.c, assoc_rx.c and assoc_tx.c share; nobody else includes it. */
#ifndef RDDP_CONN_ASSOC_INNER_H
#define RDDP_CONN_ASSOC_INNER_H

#include "conn/assoc.h"

/* Ends it with an abort. */
void assoc_fail(struct assoc *a, const struct fault_note *note, uint64_t now_us);

/* The peer's HELLO has had its turn: FAULT_NONE or why it cannot be. The chunk's position is `pos`. */
enum fault assoc_hello(struct assoc *a, const struct neg *neg, uint64_t pos, uint64_t now_us);

/* Which requests the two indications have no message for, a bit for each enum rddp_wr_opcode. */
uint32_t assoc_unsayable(const struct assoc *a);

/* A Read of ours leaves: its sink gets a tag of its own. */
uint32_t assoc_open_sink(struct assoc *a, const struct seg_read *read);

/* The Read of ours that is not answered and has this sink, or NULL. */
const struct assoc_read *assoc_find_sink(const struct assoc *a, uint32_t tag);

#endif
