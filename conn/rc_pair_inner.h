/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_pair_inner.h - declarations shared by rc_pair.c, rc_pair_rx.c and rc_pair_tx.c; no other file includes it. */
#ifndef RDDP_CONN_RC_PAIR_INNER_H
#define RDDP_CONN_RC_PAIR_INNER_H

#include "conn/rc_pair.h"

/* The peer is wrong, or a request of its cannot be done: a NAK with this reason leaves, then nothing. */
void rc_pair_refuse(struct rc_pair *p, const struct fault_note *note, enum bth_nak reason, uint64_t now_us);

/* The requester has come further, or to its end: completes, or fails the queue pair. */
void rc_pair_settle(struct rc_pair *p, uint64_t now_us);

/* A packet of the peer has come: the owner of a queue pair in RTR learns of the first one. */
void rc_pair_communicates(struct rc_pair *p);

/* Returns the reason that a NAK gives for this fault. */
enum bth_nak rc_pair_reason(enum fault fault);

#endif
