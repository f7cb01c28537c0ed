/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_inner.h - declarations shared by the files of a byte stream's connection; no other file includes it. */
#ifndef RDDP_CONN_CONN_INNER_H
#define RDDP_CONN_CONN_INNER_H

#include "conn/conn.h"

/* Processes start-up octets. Returns the octets consumed, 0 if more are needed, or minus a fault that ended the
 * connection. */
int start_rx(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us);

/* The connection is up, and nothing has come on it. */
static inline bool start_is_unanswered(const struct conn *c)
{
    return c->life.state == CONN_READY && !c->life.peer_ended && !c->agreed.rx_pos;
}

/* Is an empty Write to wake the peer? It precedes all that is posted. */
static inline bool start_nudges(const struct conn *c)
{
    return c->start.nudge_due && start_is_unanswered(c);
}

/* At start.nudge_us, or later. */
void start_tick(struct conn *c, uint64_t now_us);

/* Finishes the unit at `p` whose payload was read elsewhere. Returns the octets around the payload, or 0 if more are
 * needed. */
int read_to_place_end(struct conn *c, struct seg *seg, const uint8_t *p, size_t n);

/* Processes a unit that was decoded, or that was placed early and has its turn. Returns `eaten`, or 0 if the unit must
 * be presented again. */
int unit_arrived(struct conn *c, const struct seg *seg, int eaten, uint64_t now_us);

/* Does the unit at `p` have to wait as it is? Then it is put back. decode() closes up markers in place, so that what
 * has to wait must not be decoded. */
bool unit_waits(struct conn *c, const uint8_t *p, size_t n, uint64_t now_us);

/* hold.c. conn_hold() puts back the segment that begins at `begin` and returns 0: not consumed. conn_still_holds():
 * does it have to wait on? Otherwise present it again. */
int conn_hold(struct conn *c, uint64_t begin, enum conn_held why);
bool conn_still_holds(const struct conn *c);

/* Processes the early units whose turn has come. */
void unit_turns(struct conn *c, uint64_t now_us);

/* Does the incomplete unit in front, of which `rest` octets have arrived, overlap the first early unit? */
bool unit_overlaps(const struct conn *c, size_t rest);

/* Can corruption in transit cause this fault? Others are the sender's. unit_refuses(): is a unit with this fault to be
 * refused, which is counted, and not fatal? */
bool unit_may_be_corrupted(enum fault fault);
bool unit_refuses(struct conn *c, enum fault fault);

#endif
