/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtt.c - RFC 6298 section 2, and the minimum round-trip time of the last minutes. */
#include "tcp/rtt.h"

void utcp_rtt_init(struct utcp_rtt *r)
{
    *r = (struct utcp_rtt){.rto_us = UTCP_RTO_INITIAL_US};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

void utcp_rtt_sample(struct utcp_rtt *r, uint64_t rtt_us, uint64_t now_us)
{
    uint64_t slack;

    if (!rtt_us)
        rtt_us = 1;
    r->latest_us = rtt_us;
    if (!r->min_us || rtt_us <= r->min_us || now_us - r->min_at_us > UTCP_MIN_RTT_SPAN_US) {
        r->min_us = rtt_us;
        r->min_at_us = now_us;
    }
    if (!r->srtt_us) {
        r->srtt_us = rtt_us;
        r->variation_us = rtt_us / 2;
    } else {
        r->variation_us = (3 * r->variation_us + distance(r->srtt_us, rtt_us)) / 4;
        r->srtt_us = (7 * r->srtt_us + rtt_us) / 8;
    }
    slack = 4 * r->variation_us;
    r->rto_us = r->srtt_us + (slack > UTCP_RTO_MIN_US ? slack : UTCP_RTO_MIN_US);
    if (r->rto_us > UTCP_RTO_MAX_US)
        r->rto_us = UTCP_RTO_MAX_US;
}

uint64_t utcp_rtt_backed_off(const struct utcp_rtt *r, uint32_t times)
{
    uint64_t rto_us = r->rto_us;

    while (times-- && rto_us < UTCP_RTO_MAX_US)
        rto_us *= 2;
    return rto_us < UTCP_RTO_MAX_US ? rto_us : UTCP_RTO_MAX_US;
}
