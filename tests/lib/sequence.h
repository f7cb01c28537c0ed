/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.h - the endpoint of stage.h on a wire that numbers messages in one sequence. */
#ifndef TESTS_LIB_SEQUENCE_H
#define TESTS_LIB_SEQUENCE_H

#include "core/qp_inner.h"
#include "tests/lib/stage.h"

enum { WINDOW = 8, WHOLE = SEG_FIRST | SEG_LAST };

extern const uint32_t first; /* first message number of either side, chosen so that every test wraps */

int sequence_open(void **state);
int sequence_shut(void **state);
void sequence_again(bool out_of_order);

/* The same; in addition the peer's Writes and Reads with control data take receives. */
void sequence_for_control(bool out_of_order);

#define SEQUENCE_TEST(name) cmocka_unit_test_setup_teardown(name, sequence_open, sequence_shut)

/* Segments of the peer's n-th message: octets [at, at + length), taken from data[]. Writes and Reads name the remote
 * region. */
struct seg send_(uint32_t n, uint32_t at, uint32_t length, unsigned flags, uint16_t order);
struct seg write_(uint32_t n, uint32_t at, uint32_t length, uint32_t total, unsigned flags, uint16_t order);
struct seg read_(uint32_t n, uint32_t length, uint16_t order);

/* The n-th unit of the stream arrives; all units have STEP octets. Behind a gap it is placed once, and arrives again in
 * order. */
enum { STEP = 1000 };
enum fault unit(uint32_t n, struct seg seg);

/* The next completion of a receive is this one. */
void received(uint64_t wr_id, uint32_t length);

#endif
