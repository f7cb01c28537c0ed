/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtt.c - the round-trip time and the time-out (RFC 9260 6.3.1). */
#include "sctp/inner.h"

void osctp_rtt_restore(struct osctp_rtt *rtt)
{
    if (rtt->known)
        rtt->rto_us = osctp_min(osctp_max(rtt->srtt_us + 4 * rtt->var_us, OSCTP_RTO_MIN_US), OSCTP_RTO_MAX_US);
}

void osctp_rtt_sample(struct osctp_rtt *rtt, uint64_t us)
{
    uint32_t r = us < OSCTP_RTO_MAX_US ? (uint32_t)us : OSCTP_RTO_MAX_US;

    if (!rtt->known) {
        rtt->known = true;
        rtt->srtt_us = rtt->min_us = r;
        rtt->var_us = r / 2;
    } else {
        uint32_t off = r > rtt->srtt_us ? r - rtt->srtt_us : rtt->srtt_us - r;

        rtt->var_us += (uint32_t)(((int64_t)off - rtt->var_us) / 4);
        rtt->srtt_us += (uint32_t)(((int64_t)r - rtt->srtt_us) / 8);
        rtt->min_us = osctp_min(rtt->min_us, r);
    }
    osctp_rtt_restore(rtt);
}

void osctp_rtt_back_off(struct osctp_rtt *rtt)
{
    rtt->rto_us = 2 * rtt->rto_us < OSCTP_RTO_MAX_US ? 2 * rtt->rto_us : OSCTP_RTO_MAX_US;
}
