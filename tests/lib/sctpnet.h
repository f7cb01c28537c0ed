/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpnet.h - two ends of osctp in virtual time, and a path between them that loses, delays and duplicates by a seed.
 * Each end sends its messages, checks those that it takes, and shuts down. */
#ifndef TESTS_LIB_SCTPNET_H
#define TESTS_LIB_SCTPNET_H

#include <stdbool.h>
#include <stdint.h>

#include "sctp/osctp.h"
#include "tests/lib/inflight.h"
#include "tests/lib/rng.h"

enum { SCTPNET_STREAMS = 8 };

/* One direction of the path. Probabilities are out of 100000. */
struct sctpnet_path {
    uint32_t lose, repeat, hold_back;
    uint64_t delay_us, held_back_us; /* held_back_us: the greatest additional delay of a packet that is held back */
    uint64_t rate;                   /* octets per second; 0: unlimited */
    uint32_t queue;                  /* octets that may wait for the rate */
};

/* The receiver's window changes, until it is wide again. */
struct sctpnet_window {
    uint64_t every_us, at_us, until_us; /* every_us 0: it does not change */
};

struct sctpnet_end {
    struct osctp o;
    struct osctp_attr attr;
    struct osctp_sent *sent;
    struct sctpnet_end *peer;
    bool begun, shuts; /* shuts: it shuts down as soon as both have submitted everything */
    struct rng rng;
    struct sctpnet_path path; /* from here to the other end */
    uint64_t free_us;
    /* Messages: in all, submitted, taken, and taken without a hole from the first on. */
    uint32_t to_send, submitted, taken, whole;
    uint32_t message_max; /* octets of each, at most; `same`: of each */
    bool same;
    uint8_t *seen;
    uint32_t burst; /* messages that it submits at once, every pause_us */
    uint64_t pause_us, next_us;
    uint32_t refuse, scarce; /* chances not to take, and to have no memory, out of 100000 */
    struct sctpnet_window window;
    uint32_t batch;                       /* packets processed before it sends, at most */
    uint64_t packets, lost, lent, octets; /* octets taken */
    uint32_t waiting, checks;
};

struct sctpnet {
    struct sctpnet_end end[2];
    uint64_t key[2], now_us, began_us, seed;
    struct inflight inflight;
    uint32_t still; /* rounds without time */
    struct rng rng;
    bool batches; /* both ends know of each other that they send batches */
};

/* Sets everything but the ends' work: lossless paths of 100 us, packets of 1484 octets, no messages. */
void sctpnet_init(struct sctpnet *n, uint64_t seed);
void sctpnet_fini(struct sctpnet *n);

/* End 0 connects to end 1; runs until both are over, or nothing is left to do, or it is `until_us`. */
void sctpnet_run(struct sctpnet *n, uint64_t until_us);

#endif
