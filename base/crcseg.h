/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crcseg.h - the CRC-32 of RDMA/TCP segments: like Ethernet's, but with the mirror image of its generator. */
#ifndef RDDP_BASE_CRCSEG_H
#define RDDP_BASE_CRCSEG_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC of the octets covered by `crc` (0 at the start) followed by these n octets. The octets may be split
 * at any place. "Exactly the Ethernet CRC" with another generator means that the lowest bit of an octet comes first and
 * x^31 is bit 0 of the first CRC octet: on the wire the result is stored least significant octet first. */
uint32_t crcseg(uint32_t crc, const void *p, size_t n);

/* Copies n octets, which must not overlap, and returns what crcseg() would return for the octets now at dst. */
uint32_t crcseg_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* The name of the variant that these two functions use; static. */
const char *crcseg_name(void);

#endif
