/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cookie.h - a half-open connection in the numbers of its SYN-ACK, which the peer returns: it may be forgotten (RFC
 * 4987 3.6). The sequence number holds the MSS, the time and a MAC; the timestamp holds the other options. */
#ifndef RDDP_TCP_COOKIE_H
#define RDDP_TCP_COOKIE_H

#include "tcp/host.h"

enum { UTCP_COOKIE_US = 1 << 27 }; /* a cookie is good for half of this time at least, and never longer */

/* Returns the initial sequence number for this half-open connection. */
uint32_t utcp_cookie_make(const uint64_t key[2], const struct utcp_half *half, uint64_t now_us);

/* Returns the timestamp to send instead of `stamp`: not above it, and above all that are 128 ms older. */
uint32_t utcp_cookie_stamp(const struct utcp_half *half, uint32_t stamp);

/* Does the acknowledgement `s` return a cookie? Then fills in *half, as far as the SYN-ACK told it. */
bool utcp_cookie_open(const uint64_t key[2], const struct utcp_segment *s, uint64_t now_us, struct utcp_half *half);

#endif
