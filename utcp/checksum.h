/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* checksum.h - the Internet checksum (RFC 1071), summed over octets that lie in several places. */
#ifndef RDDP_UTCP_CHECKSUM_H
#define RDDP_UTCP_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as {0}. */
struct utcp_sum {
    uint64_t sum;
    bool odd; /* an odd number of octets has been added: the next one is the low half of a word */
};

void utcp_sum_add(struct utcp_sum *s, const void *octets, size_t n);

/* The sum folded to 16 bits: what a partial checksum holds. Its complement is the checksum. */
uint16_t utcp_sum_fold(const struct utcp_sum *s);

#endif
