/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtt.h - the round-trip time, and the retransmission time-out (RFC 6298). */
#ifndef RDDP_TCP_RTT_H
#define RDDP_TCP_RTT_H

#include <stdint.h>

enum {
    UTCP_RTO_INITIAL_US = 1000000,
    /* RFC 6298 2.4 asks for a second. All stacks in use have less; this is Linux's value. */
    UTCP_RTO_MIN_US = 200000,
    UTCP_RTO_MAX_US = 60000000,
    UTCP_STAMP_US = 1000,             /* the unit of our timestamps */
    UTCP_MIN_RTT_SPAN_US = 300000000, /* an older minimum is forgotten */
};

struct utcp_rtt {
    uint64_t srtt_us, variation_us; /* srtt_us 0: nothing was measured */
    uint64_t min_us, min_at_us, latest_us;
    uint64_t rto_us; /* without back-off */
};

void utcp_rtt_init(struct utcp_rtt *r);
void utcp_rtt_sample(struct utcp_rtt *r, uint64_t rtt_us, uint64_t now_us);

/* Returns the time-out after `times` time-outs in a row. */
uint64_t utcp_rtt_backed_off(const struct utcp_rtt *r, uint32_t times);

/* Returns this time as a timestamp tells it. */
static inline uint64_t utcp_stamped_us(uint64_t at_us)
{
    return at_us / UTCP_STAMP_US * UTCP_STAMP_US;
}

#endif
