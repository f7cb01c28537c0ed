/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_inner.h - declarations shared by assoc.c, assoc_rx.c and assoc_tx.c; no other file includes it. */
#ifndef RDDP_CONN_ASSOC_INNER_H
#define RDDP_CONN_ASSOC_INNER_H

#include "conn/assoc.h"

/* Ends the association with an ABORT for `note`. */
void assoc_fail(struct assoc *a, const struct fault_note *note, uint64_t now_us);

/* Processes the peer's HELLO, in its turn, from the chunk at `pos`. Returns FAULT_NONE or why it is wrong. */
enum fault assoc_hello(struct assoc *a, const struct neg *neg, uint64_t pos, uint64_t now_us);

/* Can our adaptation express this segment (S1, S2)? */
bool assoc_can_say(const struct assoc *a, const struct seg *seg);

/* Draws and records a tag for the sink of a Read that is about to leave. Returns the tag. */
uint32_t assoc_open_sink(struct assoc *a, const struct seg_read *read);

/* Returns our pending Read whose sink has this tag, or NULL. */
const struct assoc_read *assoc_find_sink(const struct assoc *a, uint32_t tag);

#endif
