/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32.h - the CRC-32 of Ethernet, which is InfiniBand's invariant CRC too, by the fastest variant that runs on this
 * machine. */
#ifndef RDDP_BASE_CRC32_H
#define RDDP_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC of the octets covered by `crc` (0 at the start) followed by these n octets. The octets may be split
 * at any place. On the wire the result is stored least significant octet first. */
uint32_t crc32(uint32_t crc, const void *p, size_t n);

/* Copies n octets, which must not overlap, and returns what crc32() would return for the octets now at dst. */
uint32_t crc32_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* The name of the variant that these two functions use; static. */
const char *crc32_name(void);

/* Returns the change of a CRC if its register changes by `change` before n more octets: change * x^(8n) mod P. */
uint32_t crc32_shift(uint32_t change, size_t n);

#endif
