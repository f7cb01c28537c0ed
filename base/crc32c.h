/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32c.h - CRC32c as in iSCSI, SCTP and MPA (RFC 3720 12.1), by the fastest variant that runs on this machine. */
#ifndef RDDP_BASE_CRC32C_H
#define RDDP_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC of the octets covered by `crc` (0 at the start) followed by these n octets. The octets may be split
 * at any place. On the wire the result is stored least significant octet first. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

/* Copies n octets, which must not overlap, and returns what crc32c() would return for the octets now at dst. */
uint32_t crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* The name of the variant that these two functions use; static. */
const char *crc32c_name(void);

#endif
