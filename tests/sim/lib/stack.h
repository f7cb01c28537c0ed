/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stack.h - one end: memory, queues and a connection, and the host that moves its octets between two links. */
#ifndef TESTS_SIM_LIB_STACK_H
#define TESTS_SIM_LIB_STACK_H

#include "conn/conn.h"
#include "core/cq.h"
#include "tests/sim/lib/link.h"
#include "tests/sim/lib/memory.h"

enum { STACK_REGIONS = 10, STACK_SLOTS = 64, STACK_CQE = 4096 };

/* The regions of every stack. */
enum region_kind {
    REGION_ALL,
    REGION_ALL_ZERO_BASED,
    REGION_LOCAL,
    REGION_READ_ONLY,
    REGION_WRITE_ONLY,
    REGION_HOT,
    REGION_COUNTERS, /* only the peer's atomics use it; see words.c */
    REGION_WINDOW_A, /* these two are invalidated at times */
    REGION_WINDOW_B,
    REGION_WINDOW_C,
};

struct stack_attr {
    const struct wire *wire;
    struct conn_attr conn;
    struct qp_attr qp; /* depths, sges, inline_max, ird, ord, window, signal_all */
    bool shared;       /* receives come from a shared receive queue */
    bool packets;      /* the link delivers whole packets, in any order */
    /* The host reads payloads straight to their place if at least this many octets are missing; 0: never. */
    uint32_t apart;
    uint32_t srq_depth;
    uint32_t region_octets; /* of the largest region */
    uint32_t cqe;
};

struct stack {
    struct stack_attr attr;
    struct rng rng;
    struct conn conn;
    struct out out;
    uint8_t *out_buffer;
    uint8_t *stage; /* octets received and not consumed: `staged` octets from `stage_from` on */
    size_t stage_from, staged;
    struct link *tx, *rx;
    uint64_t blocked_until_us; /* the link accepted nothing: do not try before this */
    unsigned told;             /* enum conn_news: all that occurred */
    bool over;

    struct mr_table mrs;
    struct region region[STACK_REGIONS];
    struct pd pd;
    struct cq send_cq, recv_cq;
    uint32_t events; /* of the second */
    struct cq_entry *ring[2];
    struct qp qp;
    struct rq srq;
    void *qp_buffer, *srq_buffer, *sequence_buffer;
    bool detached;
    struct packets *packets; /* set once framing has begun on such a link */
    uint64_t early;          /* octets placed before their turn */
    uint64_t apart;          /* octets read straight to their place */
    uint64_t straight;       /* times that conn_fill() was not needed */
};

void stack_init(struct stack *s, const struct stack_attr *attr, uint64_t seed);
void stack_fini(struct stack *s);

/* The stream is up: `tx` carries what we send. */
void stack_start(struct stack *s, bool active, struct link *tx, struct link *rx, uint64_t now_us);

/* Returns the earliest time at which the host has something to do. */
uint64_t stack_next_us(const struct stack *s, uint64_t now_us);

/* One turn of the host: receives octets or the end, runs a timer, sends. */
void stack_turn(struct stack *s, uint64_t now_us);

/* Call it after everything that the application did. */
void stack_pump(struct stack *s, uint64_t now_us);

/* The owner of the queue pair detaches the connection, polls the last completions, and destroys the queue pair. */
void stack_detach(struct stack *s, uint64_t now_us);
void stack_destroy_qp(struct stack *s);

/* Deregisters a region, as an owner may at any time: octets of it that still wait are copied first. */
void stack_deregister(struct stack *s, struct region *r);

#endif
