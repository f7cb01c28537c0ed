/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mirror.h - a ring that is mapped twice, one behind the other: what wraps around is in one piece all the same. */
#ifndef RDDP_API_MIRROR_H
#define RDDP_API_MIRROR_H

#include <stddef.h>
#include <stdint.h>

/* A ring of `octets`, a power of two and a multiple of the page size; octets that were never touched take no memory.
 * NULL: no memory, or no descriptor for a moment. */
uint8_t *mirror_map(size_t octets);
void mirror_unmap(uint8_t *ring, size_t octets); /* NULL is fine */

#endif
