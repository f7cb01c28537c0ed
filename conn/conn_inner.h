/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_inner.h - what the files of a byte stream's connection share; nobody else includes it. */
#ifndef RDDP_CONN_CONN_INNER_H
#define RDDP_CONN_CONN_INNER_H

#include "conn/conn.h"

/* Start-up octets: eaten, 0 for more, or minus a fault after which the connection is over. */
int start_rx(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us);

/* The unit at `p` whose payload is read elsewhere: octets eaten, which are those around it, or 0 for more. */
int direct_close(struct conn *c, struct seg *seg, const uint8_t *p, size_t n);

/* A unit that was decoded, or was taken before and has its turn: `eaten`, or 0 if it has to come again. */
int unit_arrived(struct conn *c, const struct seg *seg, int eaten, uint64_t now_us);

/* take.c: is a unit with this fault refused? The units that were taken have their turns. Does a unit reach into one of
 * them, of which `rest` octets are there and not all? */
bool take_refuses(struct conn *c, enum fault fault);
void take_turns(struct conn *c, uint64_t now_us);
bool take_laps(const struct conn *c, size_t rest);

#endif
