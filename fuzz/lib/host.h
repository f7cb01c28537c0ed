/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - what a connection under a fuzzer lives in: memory, a clock, and a link that takes what the input says. */
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
    size_t staged, sent, frame; /* octets: not eaten; that have left; of them the start-up frame's */
    size_t takes;               /* octets that the link still takes */
    bool apart;                 /* payloads are read to where they belong */
    bool ended;
    bool heard;   /* of the peer's something behind its start-up frame */
    bool may_cut; /* what waited was dropped, as it should be */
};

/* What has arrived and was not eaten: h->staged octets. */
extern uint8_t host_stage[HOST_STAGE];

/* The connection eats what is staged. */
void host_eat(struct host *h);

/* Lets leave what will, and ends the stream when asked to. */
void host_pump(struct host *h);

/* The application writes: at any time where the peer may read, elsewhere when nothing of its own waits any more. */
void host_scribble(struct host *h, struct input *in);

/* What has left is whole units, as `peer` reads them, but for a last one that may be cut. */
void host_check_sent(const struct host *h, struct wire_state peer, bool may_cut);

/* The link is lost, and the queue pair with it. */
void host_lose(struct host *h);

#endif
