/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* model.h - what was asked for at each end, and whether what was done is that: the judge of the simulation. */
#ifndef TESTS_SIM_LIB_MODEL_H
#define TESTS_SIM_LIB_MODEL_H

#include "tests/sim/lib/memory.h"
#include "tests/sim/lib/stack.h"

/* A receive, from posting to the end of the run. */
struct receive {
    struct receive *next;
    uint64_t wr_id;
    struct area area[QP_SGE_MAX];
    uint32_t areas, capacity;
    uint8_t *control; /* room for control data, and guard octets behind it */
    uint32_t control_room;
    bool completed;
};

/* A request to a send queue, until it has completed and all that it does to memory was seen. */
struct request {
    struct request *next;
    uint64_t wr_id;
    enum rddp_wr_opcode opcode;
    unsigned flags; /* enum rddp_send_flags */
    uint32_t length;
    uint8_t *octets; /* that are carried; NULL: nobody can tell which */
    struct area local[QP_SGE_MAX];
    uint32_t locals;
    struct area remote;         /* at the peer: target of a Write, source of a Read */
    struct region *invalidates; /* ours or the peer's */
    uint32_t invalid_key;
    struct receive *receive; /* of the peer, for a Send, or a Write or Read with control data that asks for these */
    bool takes, told;        /* it has one of those; it was delivered */
    uint8_t *control;        /* what is lent for sending, then what it must be; NULL: none */
    uint16_t control_length;
    struct rddp_send_wr word; /* of an atomic: what it does */
    uint64_t before, after;   /* and what the word is before and behind it */
    bool with_imm;            /* a Write or an empty Send with immediate data */
    uint32_t imm_data;
    uint8_t response[8]; /* of a Read: nobody sends any, so nothing comes here */
    bool signaled;
    bool wrong; /* is meant to fail: it names `outlaw`, at the peer's end or at ours */
    bool wrong_here;
    struct rddp_sge outlaw;
    bool completed, landed;
};

struct counts {
    uint64_t requests, receives, octets, flushed;
    uint64_t told; /* Writes and Reads of the peer that had control data for us */
};

/* One end. */
struct party {
    struct stack *stack;
    struct party *peer;
    struct rng rng;
    struct request *oldest, *newest;
    struct receive *first_receive, *last_receive;
    struct receive *awaited;  /* the oldest that has not completed */
    struct receive *promised; /* the oldest that no Send of the peer is meant for */
    uint64_t next_wr;
    uint32_t armed_at; /* where the receives' CQ was when it was armed for a solicited completion */
    bool armed, event_due;
    bool send_failed, recv_failed; /* a completion in error was seen */
    bool culprit_seen;
    uint64_t drained_before; /* requests that may not fail: they were posted before a close in good order */
    bool no_receives;        /* posts none any more */
    uint64_t word;           /* of the peer's REGION_COUNTERS, when all that was asked for is done */
    bool word_known;
    uint64_t unasked; /* octets of control data sent to a peer that drops them */
    struct counts counts;
};

static inline bool is_send_opcode(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_SEND || opcode == RDDP_WR_SEND_WITH_INV;
}

static inline enum rddp_wc_opcode received_as(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_RDMA_WRITE  ? RDDP_WC_RECV_RDMA_WITH_IMM
           : opcode == RDDP_WR_RDMA_READ ? RDDP_WC_RECV_RDMA_READ
                                         : RDDP_WC_RECV;
}

void party_init(struct party *p, struct stack *stack, struct party *peer, uint64_t seed);
void party_fini(struct party *p);

/* Posts `r`, which is filled in but for its wr_id, and is taken over. False if the queue is full: still the caller's.
 */
bool party_post(struct party *p, struct request *r);
bool party_post_receive(struct party *p, struct receive *r);

/* Frees a request or receive that was not posted, and what it claimed. */
void request_free(struct request *r);
void receive_free(struct receive *r);

/* Takes completions and judges each. True if there were any. */
bool party_poll(struct party *p);

/* Is everything that was asked for done, and seen to be done? */
bool party_is_idle(const struct party *p);

/* The run is over: every request is complete, and every octet what it may be. */
void party_judge(struct party *p);

/* --- atomics on one word of the peer (words.c) --- */

bool is_word_opcode(enum rddp_wr_opcode opcode);
enum rddp_wc_opcode completes_as(enum rddp_wr_opcode opcode);

/* `r`, whose sink is claimed, does something random there. */
void word_ask(struct party *p, struct request *r);

/* What of `wr` is the word's. / The request is complete: did it bring what the word was? / The run is over: is the word
 * what one of them made it? */
void word_fill(struct rddp_send_wr *wr, const struct request *r);
void word_check(const struct request *r);
void word_judge(const struct party *p);

/* --- control data (control.c) --- */

/* So many go with `r` / there is room for so many in `in`, which are not posted yet. */
void request_control(struct request *r, uint16_t length, struct rng *rng);
void receive_control(struct receive *in, uint32_t room);

/* `r` goes with immediate data; what verbs calls it then. */
void request_immediate(struct request *r, struct rng *rng);
enum rddp_wr_opcode posted_as(const struct request *r);

/* The request is complete: the application writes where they were. */
void control_taken_back(struct request *r);

/* `r` came to `in` / the response to `r` came / the run is over: do they say what they should? */
void control_check(const struct receive *in, const struct request *r, const struct rddp_wc *wc);
void control_check_response(const struct request *r, const struct rddp_wc *wc);
void control_judge(const struct party *p);

#endif
