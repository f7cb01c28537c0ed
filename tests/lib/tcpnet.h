/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpnet.h - two TCP hosts in virtual time, and a path between them that loses, delays, duplicates and corrupts by a
 * seed. */
#ifndef TESTS_LIB_TCPNET_H
#define TESTS_LIB_TCPNET_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/inflight.h"
#include "tests/lib/rng.h"
#include "tcp/host.h"

enum { TCPNET_SENTS = 4096, TCPNET_HELDS = 4096, TCPNET_HALVES = 64, TCPNET_BUCKETS = 64 };

/* One direction of the path. Probabilities are out of 100000. */
struct tcpnet_path {
    uint32_t lose, repeat, spoil, hold_back, mark;
    uint64_t delay_us, held_back_us; /* held_back_us: the greatest additional delay of a packet that is held back */
    uint64_t rate;                   /* octets per second; 0: unlimited */
    uint32_t queue;                  /* octets that may wait for the rate; 0: unlimited */
    uint32_t mtu;                    /* larger packets are dropped, and the sender is told if `tells`; 0: unlimited */
    bool tells;
};

enum tcpnet_taking {
    TCPNET_PLACES, /* places everything */
    TCPNET_KEEPS,  /* keeps everything until it is read in order */
    TCPNET_MIXES,  /* some of each, and refuses some */
};

/* Who has the octets of an end. */
struct tcpnet_user {
    const struct utcp_user *user;
    void *of;
};

/* One end: what it sends and what it received. The octets are those of tcpnet_octet(). */
struct tcpnet_end {
    struct utcp_host host;
    struct utcp tcp;
    struct utcp *bucket[TCPNET_BUCKETS];
    struct utcp_half half[TCPNET_HALVES];
    struct utcp_sent *sent;
    struct utcp_ooo_range *ooo;
    bool open, listening, finished;
    uint64_t to_send, said, heard; /* octets: in all, given to the engine, read */
    uint32_t seed, expect_seed;
    struct tcpnet_user own; /* used instead of the end's, unless NULL; `taking` is not used then */
    enum tcpnet_taking taking;
    uint64_t expected;                             /* octets that will come in all */
    uint8_t *seen;                                 /* a bit for each of them */
    uint64_t kept_octets;                          /* octets kept, in order or not */
    uint32_t unit;                                 /* segments are cut at multiples of this; 0: anywhere */
    uint32_t option;                               /* octets of option in every data segment */
    uint64_t read_every_us, read_at_us, read_most; /* for a slow reader */
    struct tcpnet_path path;                       /* from here to the other end */
    uint64_t free_us;
    struct rng rng;
    uint64_t packets, lost, options_seen;
};

struct tcpnet {
    struct tcpnet_end end[2];
    uint64_t now_us;
    struct inflight inflight;
    struct rng rng;
    /* Called with each packet that is about to be sent; may be NULL. */
    void (*see)(struct tcpnet *n, uint32_t from, const uint8_t *octets, uint32_t length);
    void *of;
};

uint8_t tcpnet_octet(uint32_t seed, uint64_t position);

void tcpnet_init(struct tcpnet *n, uint64_t seed);
void tcpnet_fini(struct tcpnet *n);
struct utcp_name tcpnet_name(uint32_t end, bool v6);

/* Connects end 0 to end 1. Each sends its `to_send` octets and finishes. */
void tcpnet_connect(struct tcpnet *n, const struct utcp_attr *a, const struct utcp_attr *b, bool v6);

/* Runs until nothing is left to do, `done` returns true, or it is `until_us`. */
void tcpnet_run(struct tcpnet *n, uint64_t until_us, bool (*done)(const struct tcpnet *n));

/* Checks the invariants of a connection. */
void tcpnet_check(const struct utcp *t);

#endif
