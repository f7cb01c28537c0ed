/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* model.h - what was requested at each end, and whether it was done: the judge of the simulation. */
#ifndef TESTS_SIM_LIB_MODEL_H
#define TESTS_SIM_LIB_MODEL_H

#include "tests/sim/lib/memory.h"
#include "tests/sim/lib/stack.h"

/* A receive, from its post to the end of the run. */
struct receive {
    struct receive *next;
    uint64_t wr_id;
    struct area area[QP_SGE_MAX];
    uint32_t areas, capacity;
    uint8_t *control; /* room for control data, with guard octets behind it */
    uint32_t control_size;
    bool completed;
};

/* A request to a send queue, until it has completed and all its effects on memory were checked. */
struct request {
    struct request *next;
    uint64_t wr_id;
    enum rddp_wr_opcode opcode;
    unsigned flags; /* enum rddp_send_flags */
    uint32_t length;
    uint8_t *octets; /* the octets that it carries; NULL: unknown */
    struct area local[QP_SGE_MAX];
    uint32_t locals;
    struct area remote;         /* at the peer: target of a Write, source of a Read */
    struct region *invalidates; /* ours or the peer's */
    uint32_t invalid_key;
    struct receive *receive; /* the peer's, for a Send, or for a Write or Read with control data that takes one */
    bool takes, told;        /* takes: it takes a receive; told: it was delivered */
    uint8_t *control;        /* the application's memory, then the expected value; NULL: none */
    uint16_t control_length;
    struct rddp_send_wr word; /* of an atomic: its operation */
    uint64_t before, after;   /* the word before and after the atomic */
    bool with_imm;            /* a Write or an empty Send with immediate data */
    uint32_t imm_data;
    uint8_t response[8]; /* of a Read: no control data are sent in responses, so nothing may come here */
    bool signaled;
    bool wrong; /* meant to fail: it names `outlaw`, at the peer's end or at ours */
    bool wrong_here;
    struct rddp_sge outlaw;
    bool completed, landed;
};

struct counts {
    uint64_t requests, receives, octets, flushed;
    uint64_t told; /* Writes and Reads of the peer with control data for us */
};

/* One end. */
struct party {
    struct stack *stack;
    struct party *peer;
    struct rng rng;
    struct request *oldest, *newest;
    struct receive *first_receive, *last_receive;
    struct receive *awaited;  /* the oldest that has not completed */
    struct receive *promised; /* the oldest that no Send of the peer is assigned to */
    uint64_t next_wr;
    uint32_t armed_at; /* the receive count when the CQ was armed for a solicited completion */
    bool armed, event_due;
    bool send_failed, recv_failed; /* a completion with an error was seen */
    bool culprit_seen;
    uint64_t drained_before; /* requests posted before a regular close: they may not fail */
    bool no_receives;        /* posts no more receives */
    uint64_t word;           /* of the peer's REGION_COUNTERS, when all requests are done */
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

/* Posts `r`, which is complete except for its wr_id, and takes it over. Returns false if the queue is full: it stays
 * the caller's. */
bool party_post(struct party *p, struct request *r);
bool party_post_receive(struct party *p, struct receive *r);

/* Free a request or receive that was not posted, and release what it claimed. */
void request_free(struct request *r);
void receive_free(struct receive *r);

/* Polls and checks completions. Returns whether there were any. */
bool party_poll(struct party *p);

/* Was everything that was requested done and seen? */
bool party_is_idle(const struct party *p);

/* The run is over: checks that every request has completed and every octet is allowed. */
void party_judge(struct party *p);

/* --- atomics on one word of the peer (words.c) --- */

bool is_word_opcode(enum rddp_wr_opcode opcode);
enum rddp_wc_opcode completes_as(enum rddp_wr_opcode opcode);

/* Gives `r`, whose sink is claimed, a random operation. */
void word_ask(struct party *p, struct request *r);

/* word_fill() sets the fields of the atomic in *wr. word_check(): the request completed; did it return the old value?
 * word_judge(): the run is over; is the value the result of one of the requests? */
void word_fill(struct rddp_send_wr *wr, const struct request *r);
void word_check(const struct request *r);
void word_judge(const struct party *p);

/* --- control data (control.c) --- */

/* request_control(): `length` octets go with `r`. receive_control(): `in`, which is not posted yet, has space for
 * `space` octets. */
void request_control(struct request *r, uint16_t length, struct rng *rng);
void receive_control(struct receive *in, uint32_t space);

/* request_immediate(): `r` carries immediate data. posted_as() returns its opcode of verbs. */
void request_immediate(struct request *r, struct rng *rng);
enum rddp_wr_opcode posted_as(const struct request *r);

/* The request is complete: the application overwrites its control data. */
void control_taken_back(struct request *r);

/* Check control data: of `r` in the receive `in`, of the response to `r`, and the counters at the end of the run. */
void control_check(const struct receive *in, const struct request *r, const struct rddp_wc *wc);
void control_check_response(const struct request *r, const struct rddp_wc *wc);
void control_judge(const struct party *p);

#endif
