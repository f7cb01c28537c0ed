/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* talk.h - a peer that says the same octets to several ends, each of which hears them in its own way. */
#ifndef TESTS_SIM_LIB_TALK_H
#define TESTS_SIM_LIB_TALK_H

#include "tests/lib/host.h"
#include "tests/lib/rng.h"

enum {
    TALK_REGIONS = 7,
    TALK_SOURCE = 2, /* the region that the peer reads */
    TALK_REGION_OCTETS = 256,
    TALK_STREAM = 1 << 16,
    TALK_UNIT = 2048, /* of the longest unit that is said */
    TALK_READS = 64,  /* more than the peer ever asks for at once: when answers leave depends on how the octets come */
    TALK_RECEIVES = 64,      /* more than are ever posted at once */
    TALK_NEXT_KEY = 0x10000, /* from a key of a region to that which it has when it was registered again */
};

enum ear_kind { STRAIGHT, PLAIN, SLOW, APART, EARS };

struct ear {
    struct host host;
    struct rq srq;
    void *srq_buffer;
    size_t heard;      /* octets of the stream that have come */
    uint64_t tx_begun; /* position of what it says first */
};

/* A Read that the peer has not answered to its end. */
struct asked {
    uint32_t key, length, done;
    uint64_t offset;
};

/* Everything before `ear` begins as 0. */
struct talk {
    struct rng rng;
    struct wire_state peer;                     /* as it frames what it says */
    size_t said, offered;                       /* octets of `stream`; of these, how many have come */
    uint32_t send_msg, read_msg;                /* the next ones, of an honest peer */
    uint32_t send_offset;                       /* octets of the Send that it has begun */
    struct asked asked[TALK_READS];             /* Reads of the application */
    uint32_t reads, answer;                     /* how many there were; the first that is not answered */
    uint32_t receives, capacity[TALK_RECEIVES]; /* how many were posted; the octets of the latest */
    uint32_t key[TALK_REGIONS];
    bool is_gone[TALK_REGIONS]; /* deregistered */
    bool is_honest;             /* the peer does nothing wrong */
    bool has_close;             /* one end may be done in the middle of what another takes at once */
    bool has_gone; /* a place may have gone that one end was reading to, or it took a shared receive for it */
    uint64_t wr_id;

    struct ear ear[EARS];
    uint8_t stream[TALK_STREAM], payload[TALK_UNIT];
};
extern struct talk talk;

/* What all ends are made of. */
struct options {
    struct conn_attr conn;
    uint64_t receive_wait_us;
    uint32_t cqe;
    bool is_active, is_shared, is_of_other;
};

/* How often octets went straight, how many were read to their place, and why connections ended. */
struct talk_tally {
    uint64_t straight, apart, faults[FAULTS];
};
extern struct talk_tally talk_tally;

/* ears.c: makes and ends an end. */
void ear_open(struct ear *ear, const struct options *options);
void ear_close(struct ear *ear);

/* ears.c: gives the end what it wants of the first `octets` octets of the stream. */
void ear_listen(struct ear *ear, enum ear_kind kind, size_t octets);

/* ears.c: fail the test unless all ends are alike, in all that does not depend on how the octets came; unless two
 * completions are alike; and unless the end that hears octet by octet said the same Terminate. */
void ears_compare(void);
void ears_compare_completions(const struct rddp_wc *a, const struct rddp_wc *b);
void ears_compare_last_word(void);

/* ears.c: may this end be compared with the one that takes messages straight? */
bool ear_is_comparable(enum ear_kind kind);

/* talk.c: the peer says one unit, which is usually right. */
void talk_unit(void);

/* talk.c: some octets of a region, its key, and whether something is wrong: one time in `n`, never with an honest peer.
 */
uint32_t talk_octets(void);
uint32_t talk_key(void);
bool talk_is_wrong(uint32_t n);

#endif
