/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_timer.c - how long a requester waits: by its round trips, and by the codes of five bits that packets and
 * programs name. */
#include "roce/bth.h"
#include "roce/rc_requester.h"

/* RNR NAK timers in units of 10 us, by code. */
static const uint32_t rnr_timer[32] = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t rc_rnr_us(unsigned code)
{
    return (uint64_t)rnr_timer[code & AETH_VALUE] * 10;
}

/* 4.096 us * 2^code. */
uint64_t rc_timeout_us(unsigned code)
{
    return code ? ((uint64_t)4096 << (code & 31)) / 1000 : 0;
}

uint64_t rc_patience_us(unsigned code)
{
    uint64_t us = rc_timeout_us(code), late = us * RC_PATIENCE_TIMES;

    if (late > RC_PATIENCE_US)
        late = us > RC_PATIENCE_US ? us : RC_PATIENCE_US;
    return late && late < RC_PATIENCE_MIN_US ? RC_PATIENCE_MIN_US : late;
}

uint64_t rc_resend_us(const struct rc_requester *q)
{
    uint64_t rto = q->rtt.smooth_us ? q->rtt.smooth_us + 4ull * q->rtt.var_us : RC_RTO_FIRST_US;

    rto = (rto > RC_RTO_MIN_US ? rto : RC_RTO_MIN_US) << (q->backoff < 16 ? q->backoff : 16);
    return rto < RC_RTO_MAX_US ? rto : RC_RTO_MAX_US;
}
