/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.h - the receiving end of a link that delivers whole packets in any order. */
#ifndef TESTS_SIM_LIB_PACKETS_H
#define TESTS_SIM_LIB_PACKETS_H

#include "tests/sim/lib/stack.h"

/* Starts if the stack uses packets and its stage is empty. */
void packets_begin(struct stack *s);
void packets_fini(struct stack *s);

/* Returns when the next packet or the end arrives. */
uint64_t packets_next_us(const struct stack *s);

/* Delivers all packets that are due, and some early. */
void packets_turn(struct stack *s, uint64_t now_us);

/* Presents kept octets whose turn has come. */
void packets_catch_up(struct stack *s, uint64_t now_us);

#endif
