/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_inner.h - declarations shared by the files of a byte stream's connection; no other file includes it. */
#ifndef RDDP_CONN_CONN_INNER_H
#define RDDP_CONN_CONN_INNER_H

#include "conn/conn.h"

/* Processes start-up octets. Returns the octets consumed, 0 if more are needed, or minus a fault that ended the
 * connection. */
int start_rx(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us);

/* Finishes the unit at `p` whose payload was read elsewhere. Returns the octets around the payload, or 0 if more are
 * needed. */
int direct_close(struct conn *c, struct seg *seg, const uint8_t *p, size_t n);

/* Processes a unit that was decoded, or that was taken early and has its turn. Returns `eaten`, or 0 if the unit must
 * be presented again. */
int unit_arrived(struct conn *c, const struct seg *seg, int eaten, uint64_t now_us);

/* take.c. take_refuses(): is a unit with this fault to be refused and not fatal? take_turns(): processes the early
 * units whose turn has come. take_laps(): does the incomplete unit in front, of which `rest` octets have arrived,
 * overlap the first early unit? */
bool take_refuses(struct conn *c, enum fault fault);
void take_turns(struct conn *c, uint64_t now_us);
bool take_laps(const struct conn *c, size_t rest);

#endif
