/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.h - two associations with a provider of SCTP between them that lives in memory and in virtual time: it loses,
 * delays and reorders by a seed, and delivers every message once. A test can also be a peer by hand. */
#ifndef TESTS_LIB_ASSOC_H
#define TESTS_LIB_ASSOC_H

#include "conn/assoc.h"
#include "tests/lib/engine.h"

enum {
    NET_MESSAGES = 8192, /* under way or kept, in one direction */
    NET_PAYLOAD = 256,   /* octets of a message, header extension included */
    NET_STEP_US = 100,
    NET_REASON = 256,
};

/* A message of one direction. */
struct net_message {
    uint8_t data[NET_PAYLOAD];
    uint32_t octets, tsn, ppid;
    uint16_t stream;
    uint64_t at_us; /* when it arrives */
    bool used, kept;
};

struct net_side {
    struct assoc assoc;
    struct window_slot slots[WINDOW_CHUNKS];
    struct side side;
    struct net_message *inbox; /* NET_MESSAGES */
    uint32_t tsn;              /* of our next message */
    uint32_t sent, lost;
    bool shut, aborted, told_end, told_abort;
    char reason[NET_REASON]; /* of our abort */
    size_t reason_length;
    struct assoc_signal signals[256];
    uint32_t signal_count;
    unsigned news; /* all that there were */
};

struct net {
    struct engine engine;
    struct net_side side[2];
    uint64_t now_us;
    uint32_t seed;
    unsigned loss_percent, reorder_percent;
};

/* Side 0 is active. A queue pair each, `attr` for both (NULL: 16 requests, a window of 8, 4 Reads). */
void net_init(struct net *n, enum sctpddp_adaptation active, enum sctpddp_adaptation passive,
              const struct qp_attr *attr, uint32_t seed);
void net_fini(struct net *n);

/* Both are up; whoever is asked accepts. Then both are established, or the test fails. */
void net_open(struct net *n);

/* Both sides hear of the other's INIT. */
void net_up(struct net *n);

/* Lets leave what will, moves time on, delivers what is due. False: nothing happened any more, for a long time. */
bool net_step(struct net *n);
void net_run(struct net *n);

/* A message by hand, straight to `side`: whoever wrote it is a peer that may break every rule. */
enum assoc_verdict net_give(struct net *n, unsigned side, const void *data, uint32_t octets, uint32_t tsn,
                            uint16_t stream, bool whole);

/* A chunk with the header that `sender` has, and `length` octets of `data`. TSN is the AWS. */
enum assoc_verdict net_chunk(struct net *n, unsigned side, enum sctpddp_adaptation sender,
                             const struct sctpddp_chunk *chunk);

/* The same in NO_PLACEMENT_MODE with a negotiation message. */
enum assoc_verdict net_neg(struct net *n, unsigned side, uint32_t aws, const struct neg *neg);

/* The side has aborted for `fault`, with a reason that says so, and takes nothing more. */
void net_expect_abort(struct net *n, unsigned side, enum fault fault);

#endif
