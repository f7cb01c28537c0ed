/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.h - the receiving end of a link that hands over whole packets in whatever order they come. */
#ifndef TESTS_SIM_LIB_PACKETS_H
#define TESTS_SIM_LIB_PACKETS_H

#include "tests/sim/lib/stack.h"

/* Begins with it, if the stack is to and nothing of the stream is in its stage. */
void packets_begin(struct stack *s);
void packets_fini(struct stack *s);

/* When the next packet comes, or the end. */
uint64_t packets_next_us(const struct stack *s);

/* Packets come: all that are due, and some before others. */
void packets_turn(struct stack *s, uint64_t now_us);

/* What was kept goes in when it is its turn. */
void packets_catch_up(struct stack *s, uint64_t now_us);

#endif
