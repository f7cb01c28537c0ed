/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - the environment of a connection under test: memory, a clock, and a link that takes as much as the input
 * says. */
#ifndef FUZZ_LIB_HOST_H
#define FUZZ_LIB_HOST_H

#include "conn/conn.h"
#include "fuzz/lib/arena.h"

enum { HOST_STAGE = 1 << 19, HOST_SENT = 1 << 24, HOST_STEPS_MAX = 4096, HOST_START_US = 1000 };

struct host {
    struct arena *arena;
    struct conn conn;
    struct out out;
    uint64_t now_us;
    size_t staged, sent, frame; /* octets: received but not consumed; sent; of them the start-up frame */
    size_t takes;               /* octets that the link still accepts */
    bool apart;                 /* payloads are read directly to their place */
    bool ended;
    bool heard;   /* something was received after the peer's start-up frame */
    bool may_cut; /* waiting output was dropped legitimately */
};

/* The h->staged octets that were received but not consumed. */
extern uint8_t host_stage[HOST_STAGE];

/* Lets the connection consume what is staged. */
void host_eat(struct host *h);

/* Sends what the link accepts, and ends the stream when the connection asks for it. */
void host_pump(struct host *h);

/* The application writes to its memory: at any time where the peer may read, elsewhere only when no request of its own
 * is outstanding. */
void host_scribble(struct host *h, struct input *in);

/* Checks that whole units were sent, as `peer` decodes them, except for a last one that may be cut. */
void host_check_sent(const struct host *h, struct wire_state peer, bool may_cut);

/* Loses the link, and the queue pair with it. */
void host_lose(struct host *h);

#endif
