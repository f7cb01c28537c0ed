/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stage.h - one endpoint with its memory, and short words for what such a test does: for emit, deliver and the like. */
#ifndef TESTS_LIB_STAGE_H
#define TESTS_LIB_STAGE_H

#include "tests/lib/engine.h"

enum {
    STAGE_BUFFER = 64, /* octets of a receive */
    STAGE_BUFFERS = 8,
    STAGE_LOCAL = STAGE_BUFFER * STAGE_BUFFERS,
    STAGE_REMOTE = 4096,
};

/* The only ones of their program. */
extern struct engine e;
extern struct side s;
extern struct mr *local;  /* receives and sinks: not open to the peer */
extern struct mr *remote; /* what is sent, and where the peer writes and reads */
extern uint8_t data[STAGE_LOCAL];

/* For each test; stage_again() begins anew in the middle of one, with attributes of its own if they are not NULL. */
int stage_open(void **state);
int stage_close(void **state);
void stage_again(const struct qp_attr *attr);

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)

/* A signalled request for the first `length` octets of the remote region, as if the peer had one like it. */
int request(uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, uint32_t length);

/* What leaves next is this / nothing can leave, and nothing is wrong. */
void expect_op(enum seg_op op);
void expect_idle(void);

/* The answer to a Read made by request(). */
enum fault answer_read(uint32_t length);

/* Read Request number `msn` for the first `length` octets of a region. */
struct seg read_of(const struct mr *source, uint32_t msn, uint32_t length);
void peer_reads(uint32_t msn, uint32_t length);

/* Receive number i, counted from 0, is buffer i of the local region. */
void post_buffers(uint32_t n);

/* Posts a Read into a whole buffer, lets it leave; octets [at, at + length) of its answer, the same of data[]. */
void read_into(uint32_t buffer);
struct seg response(uint32_t buffer, uint32_t at, uint32_t length);

struct seg send_inv(uint32_t msn, uint32_t key);

#endif
