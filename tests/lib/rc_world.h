/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_world.h - a queue pair of RoCE whose peer the test plays, packet by packet. */
#ifndef TESTS_LIB_RC_WORLD_H
#define TESTS_LIB_RC_WORLD_H

#include "tests/lib/rc_net.h"

/* PSNs: the first of ours, and of the peer's. */
enum { MTU = 256, FIRST = 0xfffffe, PEER = 0x000100, SPACE = 4096 };

enum { ONLY = BTH_FIRST | BTH_LAST, ACK = AETH_ACK | AETH_NO_CREDITS, ASK = BTH_ACK_REQUEST };

/* The queue pair under test, and what it said last. */
struct world {
    struct rc_net net;
    struct rc_pair *pair;
    struct side *side;
    struct mr *region, *remote;
    struct rc_packet out;
    struct bth said;
    uint8_t octets[SPACE];
};
extern struct world w;

/* A new queue pair, with these attributes or the usual ones. */
void open_world(const struct rc_pair_attr *attr);
void open_usual(void);
/* One that keeps up to `cells` packets behind gaps. */
void open_keeping(const struct rc_pair_attr *attr, uint32_t cells);
void close_world(void);
/* Makes a packet of the peer, which names the region with all rights. */
struct bth packet(enum bth_op op, unsigned flags, uint32_t psn, uint32_t length);
/* The peer says it. */
void says(struct bth b);
void acknowledges(uint32_t psn, uint8_t syndrome);
/* The next packet of ours, of which there must be one. */
const struct bth *hear(void);
void hear_nothing(void);
void hear_ack(uint32_t psn, uint8_t syndrome, uint32_t msn);
void hear_message(uint32_t psn, enum bth_op op, unsigned flags, uint32_t length);
/* A train of ours follows. Returns its packets. */
uint32_t train(uint32_t most);
/* The first packet of that train, and where the payloads of all lie. */
void expect_train(enum bth_op op, uint32_t psn, uint32_t packets, uint32_t offset);
/* Time passes. */
void waits(uint64_t us);
/* Posts. */
void request_send(uint64_t wr_id, uint32_t length);
void request_read(uint64_t wr_id, uint32_t length);
void offer_receive(uint64_t wr_id, uint32_t length);
void expect_failed(uint64_t wr_id, enum rddp_wc_status status);

#endif
