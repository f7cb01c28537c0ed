/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crcseg.h - the CRC-32 of RDMA/TCP segments: Ethernet's in all but the generator, which is its mirror image. */
#ifndef RDDP_BASE_CRCSEG_H
#define RDDP_BASE_CRCSEG_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from crc, the result for all octets before these and 0 at the start, by n octets. Chains at any place.
 * "Exactly the Ethernet CRC" with another generator puts the lowest bit of an octet first and x^31 into bit 0 of the
 * first CRC octet: on the wire the result is stored least significant octet first. */
uint32_t crcseg(uint32_t crc, const void *p, size_t n);

/* Copies n octets, which must not overlap, and returns what crcseg() would of the octets that are now at dst. */
uint32_t crcseg_copy(uint32_t crc, void *dst, const void *src, size_t n);

/* The name of the variant that the two above use. */
const char *crcseg_name(void);

#endif
