/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_memory.h - two links whose octets pass through memory: no socket, and as little kept as a test wants. */
#ifndef RDDP_TESTS_SUITE_LINK_MEMORY_H
#define RDDP_TESTS_SUITE_LINK_MEMORY_H

#include "loop/link.h"

enum { LINK_MEMORY_MAX = 1 << 16 };

/* Makes two connected links for two loops, which may be of different threads. Up to `capacity` octets, at most
 * LINK_MEMORY_MAX, wait in each direction. An end that is closed without link_finish() is lost to the other. */
void link_memory_new(struct link *end[2], struct reactor *const reactor[2], uint32_t capacity);

/* How many octets both ends have carried. */
uint64_t link_memory_carried(struct link *end);

/* From now on nothing passes any more, and both ends are told that the link is lost. */
void link_memory_cut(struct link *end);

#endif
