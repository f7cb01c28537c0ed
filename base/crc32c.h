/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc32c.h - CRC32c as iSCSI, SCTP and MPA use it (RFC 3720 12.1), by whatever is fastest on this machine. */
#ifndef RDDP_BASE_CRC32C_H
#define RDDP_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from crc, the result for all octets before these and 0 at the start, by n octets. Chains at any place.
 * On the wire the result is stored least significant octet first. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

/* Copies n octets, which must not overlap, and returns what crc32c() would of the octets that are now at dst. */
uint32_t crc32c_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* The name of the variant that the two above use. */
const char *crc32c_name(void);

#endif
