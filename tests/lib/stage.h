/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stage.h - one endpoint with its memory, and short helpers for tests of emit, deliver and others. */
#ifndef TESTS_LIB_STAGE_H
#define TESTS_LIB_STAGE_H

#include "tests/lib/engine.h"

enum {
    STAGE_BUFFER = 64, /* octets of a receive */
    STAGE_BUFFERS = 8,
    STAGE_LOCAL = STAGE_BUFFER * STAGE_BUFFERS,
    STAGE_REMOTE = 4096,
};

/* The only endpoint of the program. */
extern struct engine e;
extern struct side s;
extern struct mr *local;  /* for receives and sinks: no remote access */
extern struct mr *remote; /* for sources, and for the peer's Writes and Reads */
extern uint8_t data[STAGE_LOCAL];

/* Fixtures of each test. stage_again() starts over within a test, with other attributes unless NULL. */
int stage_open(void **state);
int stage_close(void **state);
void stage_again(const struct qp_attr *attr);

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)

/* Posts a signalled request for the first `length` octets of the remote region, as if the peer had an equal one. */
int request(uint64_t wr_id, enum rddp_wr_opcode opcode, unsigned flags, uint32_t length);

/* expect_op(): the next segment is of this kind. expect_idle(): there is none, and no error. */
void expect_op(enum seg_op op);
void expect_idle(void);

/* The response to a Read of request() arrives. */
enum fault answer_read(uint32_t length);

/* Makes Read Request number `msn` for the first `length` octets of a region. */
struct seg read_of(const struct mr *source, uint32_t msn, uint32_t length);
void peer_reads(uint32_t msn, uint32_t length);

/* Posts `n` receives; receive i, counted from 0, is buffer i of the local region. */
void post_buffers(uint32_t n);

/* read_into() posts a Read into a whole buffer and emits it. response() makes octets [at, at + length) of its response,
 * taken from data[]. */
void read_into(uint32_t buffer);
struct seg response(uint32_t buffer, uint32_t at, uint32_t length);

struct seg send_inv(uint32_t msn, uint32_t key);

#endif
