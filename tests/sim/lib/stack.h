/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stack.h - one end: memory, queues and a connection, and the host that pumps it from one link into another. */
#ifndef TESTS_SIM_LIB_STACK_H
#define TESTS_SIM_LIB_STACK_H

#include "conn/conn.h"
#include "core/cq.h"
#include "tests/sim/lib/link.h"
#include "tests/sim/lib/memory.h"

enum { STACK_REGIONS = 10, STACK_SLOTS = 64, STACK_CQE = 4096 };

/* The regions of every stack: what each is good for. */
enum region_kind {
    REGION_ALL,
    REGION_ALL_ZERO_BASED,
    REGION_LOCAL,
    REGION_READ_ONLY,
    REGION_WRITE_ONLY,
    REGION_HOT,
    REGION_COUNTERS, /* the peer's atomics alone work on these; see words.c */
    REGION_WINDOW_A, /* these are invalidated now and then */
    REGION_WINDOW_B,
    REGION_WINDOW_C,
};

struct stack_attr {
    const struct wire *wire;
    struct conn_attr conn;
    struct qp_attr qp; /* depths, sges, inline_max, ird, ord, window, signal_all */
    bool shared;       /* receives come from a shared queue */
    bool packets;      /* the link has whole packets, in any order */
    uint32_t apart;    /* the host reads payloads to where they belong of which so many octets are missing; 0: none */
    uint32_t srq_depth;
    uint32_t region_octets; /* of the largest */
    uint32_t cqe;
};

struct stack {
    struct stack_attr attr;
    struct rng rng;
    struct conn conn;
    struct out out;
    uint8_t *out_room;
    uint8_t *stage; /* octets that arrived and were not eaten: `staged` from `stage_from` on */
    size_t stage_from, staged;
    struct link *tx, *rx;
    uint64_t blocked_until_us; /* the link took nothing: not before */
    unsigned told;             /* enum conn_news, all that came up */
    bool over;

    struct mr_table mrs;
    struct region region[STACK_REGIONS];
    struct pd pd;
    struct cq send_cq, recv_cq;
    uint32_t events; /* of the second */
    struct cq_entry *ring[2];
    struct qp qp;
    struct rq srq;
    void *qp_room, *srq_room, *sequence_room;
    bool detached;
    struct packets *packets; /* once framing has begun on such a link */
    uint64_t early;          /* octets that were placed before their turn */
    uint64_t apart;          /* octets that were read to where they belong */
};

void stack_init(struct stack *s, const struct stack_attr *attr, uint64_t seed);
void stack_fini(struct stack *s);

/* The stream is up: `tx` takes what we send. */
void stack_start(struct stack *s, bool active, struct link *tx, struct link *rx, uint64_t now_us);

/* When the host has something to do, at the earliest. */
uint64_t stack_next_us(const struct stack *s, uint64_t now_us);

/* One turn of the host: octets in or the end, a timer, octets out. */
void stack_turn(struct stack *s, uint64_t now_us);

/* After anything that the application did. */
void stack_pump(struct stack *s, uint64_t now_us);

/* The owner of the queue pair gives up the connection, takes the last completions, and destroys it. */
void stack_detach(struct stack *s, uint64_t now_us);
void stack_destroy_qp(struct stack *s);

/* Deregisters a region as an owner may at any time: what is on its way out of it is copied first. */
void stack_deregister(struct stack *s, struct region *r);

#endif
