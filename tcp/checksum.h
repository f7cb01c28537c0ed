/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* checksum.h - the Internet checksum (RFC 1071) over octets in several places. */
#ifndef RDDP_TCP_CHECKSUM_H
#define RDDP_TCP_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialise with {0}. */
struct utcp_sum {
    uint64_t sum;
    bool odd; /* an odd number of octets was added: the next octet is the low half of a word */
};

void utcp_sum_add(struct utcp_sum *s, const void *octets, size_t n);

/* Returns the sum folded to 16 bits, which a partial checksum holds. The checksum is its complement. */
uint16_t utcp_sum_fold(const struct utcp_sum *s);

#endif
