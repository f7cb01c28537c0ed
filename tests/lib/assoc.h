/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.h - two associations with an SCTP provider between them that works in memory and virtual time: it loses, delays
 * and reorders messages by a seed, and delivers each exactly once. A test can also play a peer itself. */
#ifndef TESTS_LIB_ASSOC_H
#define TESTS_LIB_ASSOC_H

#include "conn/assoc.h"
#include "tests/lib/engine.h"

enum {
    NET_MESSAGES = 8192, /* in flight or kept, per direction */
    NET_PAYLOAD = 256,   /* octets of a message, header extension included */
    NET_STEP_US = 100,
    NET_REASON = 256,
};

/* A message in flight. */
struct net_message {
    uint8_t data[NET_PAYLOAD];
    uint32_t octets, tsn, tsns, ppid;
    uint16_t stream;
    uint64_t at_us; /* when it arrives */
    bool used, kept;
};

struct net_side {
    struct assoc assoc;
    struct window_slot slots[WINDOW_CHUNKS];
    struct side side;
    struct net_message *inbox; /* NET_MESSAGES entries */
    uint32_t inbox_top;        /* none at or behind it is used */
    uint32_t tsn;              /* of its next message */
    uint32_t sent, lost;
    bool shut, aborted, told_end, told_abort;
    char reason[NET_REASON]; /* of its ABORT */
    size_t reason_length;
    struct assoc_signal signals[256];
    uint32_t signal_count;
    unsigned news; /* enum conn_news: all that occurred */
};

struct net {
    struct engine engine;
    struct net_side side[2];
    uint64_t now_us;
    uint32_t seed;
    unsigned loss_percent, reorder_percent;
    uint32_t tsns; /* of the next message of net_give(); 0: one */
};

/* Initialises both sides; side 0 is active. Each has a queue pair of `attr` (NULL: 16 requests, a window of 8, 4
 * Reads). */
void net_init(struct net *n, enum sctpddp_adaptation active, enum sctpddp_adaptation passive,
              const struct qp_attr *attr, uint32_t seed);
void net_fini(struct net *n);

/* Brings both up and accepts requests. Fails the test unless both become established. */
void net_open(struct net *n);

/* Each side receives the other's INIT. */
void net_up(struct net *n);

/* Sends what is ready, advances time, and delivers what is due. Returns false if nothing has happened for a long
 * time. */
bool net_step(struct net *n);
void net_run(struct net *n);

/* Delivers a message written by the test to `side`, as from a peer that may break every rule. */
enum assoc_verdict net_give(struct net *n, unsigned side, const void *data, uint32_t octets, uint32_t tsn,
                            uint16_t stream, bool whole);

/* Delivers a chunk with the header of `sender`, and `length` octets of `data`. Its TSN is the AWS. */
enum assoc_verdict net_chunk(struct net *n, unsigned side, enum sctpddp_adaptation sender,
                             const struct sctpddp_chunk *chunk);

/* The same in NO_PLACEMENT_MODE, with a negotiation message. */
enum assoc_verdict net_neg(struct net *n, unsigned side, uint32_t aws, const struct neg *neg);

/* Checks that the side aborted for `fault`, with a reason that names it, and accepts nothing more. */
void net_expect_abort(struct net *n, unsigned side, enum fault fault);

#endif
