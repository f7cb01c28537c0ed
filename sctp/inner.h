/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inner.h - declarations shared by the files of sctp/; no other file includes it. */
#ifndef RDDP_SCTP_INNER_H
#define RDDP_SCTP_INNER_H

#include "sctp/chunk.h"
#include "sctp/osctp.h"

enum {
    OSCTP_RTO_FIRST_US = 1000000, /* RTO.Initial and RTO.Max (RFC 9260 16) */
    OSCTP_RTO_MAX_US = 60000000,
    /* RTO.Min. RFC 9260 16 recommends a second, for peers that delay an acknowledgement by up to half of it; they delay
     * by 200 ms in practice. */
    OSCTP_RTO_MIN_US = 300000,
    OSCTP_SACK_DELAY_US = 20000,
    OSCTP_PROBE_US = 25000, /* beyond two round trips, until the last packet is sent again to a peer with batches */
    OSCTP_HEARTBEAT_US = 30000000, /* HB.interval (RFC 9260 16) */
    OSCTP_HEARTBEAT_OCTETS = 12,   /* of our Heartbeat Info */
    OSCTP_SACK_PACKETS = 2,        /* packets that one SACK acknowledges, as a rule (RFC 9260 6.2) */
    OSCTP_REORDER = 3,             /* packets, at first; every duplicate that the peer reports doubles it */
    OSCTP_LATE_PART = 8,           /* a packet is late after a round trip, this part of one, and OSCTP_LATE_US more */
    OSCTP_LATE_US = 1000,
    OSCTP_REORDER_MAX = 96,
    OSCTP_BURSTS = 8,          /* SACKs before we send whose bursts count together */
    OSCTP_WINDOW_FIRST = 4404, /* octets: RFC 9260 7.2.1 */
    OSCTP_WINDOW_MAX = 64 << 20,
};

static inline uint32_t osctp_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t osctp_max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The number of the lowest bit that is set; there is one. */
static inline uint32_t osctp_lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

static inline struct osctp_sent *osctp_sent_at(const struct osctp *o, uint32_t place)
{
    return &o->tx.sent[place % OSCTP_PACKETS];
}

/* Is nothing left that was not acknowledged? */
static inline bool osctp_is_drained(const struct osctp *o)
{
    return o->tx.first == o->tx.end;
}

/* Was something sent that the cumulative TSN does not acknowledge? The peer may drop again what it acknowledged by gap
 * blocks (RFC 9260 6.2.1 D iii). */
static inline bool osctp_waits(const struct osctp *o)
{
    return o->tx.first != o->tx.unsent;
}

/* state.c: the association is over; it ends with an ABORT for what the peer did. */
void osctp_over(struct osctp *o, enum osctp_end end);
void osctp_fail(struct osctp *o, uint16_t cause, const void *reason, uint32_t octets);
/* It is up. */
void osctp_established(struct osctp *o, uint64_t now_us);
/* Goes on with a shutdown if nothing is left to send. */
void osctp_drained(struct osctp *o, uint64_t now_us);
/* Stops all timers; sets those of DATA; sets the probe, unless the last one was not answered, or the peer may just
 * delay its SACK for a single packet; sets the HEARTBEAT's; sets it again, as the peer has answered. */
void osctp_stop_timers(struct osctp *o);
void osctp_arm(struct osctp *o, uint64_t now_us);
void osctp_arm_probe(struct osctp *o, uint64_t now_us);
void osctp_set_heartbeat(struct osctp *o, uint64_t now_us);
void osctp_restart_heartbeat(struct osctp *o, uint64_t now_us);
/* answer.c: adds a chunk to the answers; NULL: no space. The caller writes `octets` behind its head. */
uint8_t *osctp_add_answer(struct osctp *o, uint8_t type, uint32_t octets);
/* Answers a HEARTBEAT with this information, in a packet of its own if it is long. Returns false if there is no space,
 * or the answer would be longer than a packet. */
bool osctp_add_echo(struct osctp *o, const uint8_t *info, uint32_t octets);
/* setup.c */
void osctp_init_ack(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us);
uint32_t osctp_write_init(const struct osctp *o, uint8_t *p);
/* The peer has returned our cookie: stores what that says of it, and the association is up. */
void osctp_meet(struct osctp *o, const struct osctp_cookie *cookie, uint64_t now_us);
/* data.c: a DATA chunk came; a packet with DATA came; writes a SACK, at most `space` octets. */
void osctp_data(struct osctp *o, const struct osctp_chunk *chunk);
/* A CWR came: the peer has reacted. */
void osctp_cwr(struct osctp *o, const struct osctp_chunk *chunk);
void osctp_data_packet(struct osctp *o, uint64_t now_us);
uint32_t osctp_write_sack(struct osctp *o, uint8_t *p, uint32_t space);
/* ack.c: a SACK came; the peer's SHUTDOWN, which acknowledges too. */
void osctp_sack(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us);
void osctp_acknowledged(struct osctp *o, uint32_t cum, uint64_t now_us);
/* An ECNE came: packets of ours were marked. */
void osctp_ecne(struct osctp *o, const struct osctp_chunk *chunk);
/* rtt.c */
void osctp_rtt_sample(struct osctp_rtt *rtt, uint64_t us);
void osctp_rtt_back_off(struct osctp_rtt *rtt);
void osctp_rtt_restore(struct osctp_rtt *rtt); /* ends the back-off */
/* flight.c: none is in flight; a packet was sent; it has arrived, or an earlier transmission of it; it is lost and will
 * be sent again; all are. Returns the place of the lost packet with the lowest TSN, of which there is one. */
void osctp_flight_begin(struct osctp *o);
void osctp_flight_add(struct osctp *o, uint32_t place);
void osctp_flight_arrived(struct osctp *o, uint32_t place);
void osctp_lose(struct osctp *o, uint32_t place);
void osctp_lose_all(struct osctp *o);
uint32_t osctp_first_lost(struct osctp *o);
/* send.c: packets of DATA. Sends the last packet again. */
bool osctp_send(struct osctp *o, const uint8_t **p, uint32_t *n, uint64_t now_us);
void osctp_probe(struct osctp *o);

#endif
