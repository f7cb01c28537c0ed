/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cubic.h - how much may be under way: CUBIC (RFC 9438), HyStart++ (RFC 9406), proportional rate reduction (RFC 6937).
 */
#ifndef RDDP_UTCP_CUBIC_H
#define RDDP_UTCP_CUBIC_H

#include <stdbool.h>
#include <stdint.h>

enum { UTCP_INITIAL_WINDOW = 10 }; /* segments (RFC 6928) */

/* RFC 9406: rounds of the slow start, and the round trips in them. */
struct utcp_hystart {
    uint64_t round_end, last_min_us, min_us, baseline_us;
    uint32_t samples, css_rounds; /* css_rounds 0: plain slow start */
};

/* Windows are octets. */
struct utcp_cubic {
    uint64_t cwnd, ssthresh, mss;
    uint64_t w_max, w_est, cwnd_prior;
    uint64_t epoch_us; /* when the last congestion avoidance began, 0: it has to */
    uint32_t k_1024;   /* K in 1/1024 s */
    uint64_t rest;     /* growth that has not made up an octet yet, times cwnd */
    struct utcp_hystart start;
};

void utcp_cubic_init(struct utcp_cubic *c, uint32_t mss);

/* `octets` were acknowledged in order, outside of recovery, while the window was in use. */
void utcp_cubic_acked(struct utcp_cubic *c, uint64_t octets, uint64_t srtt_us, uint64_t now_us);
/* A round trip was measured in slow start; `una` and `next` tell the rounds. */
void utcp_cubic_round_trip(struct utcp_cubic *c, uint64_t rtt_us, uint64_t una, uint64_t next);
/* Segments are lost: sets ssthresh. The window itself is the recovery's task. */
void utcp_cubic_congested(struct utcp_cubic *c, uint64_t flight);
/* Nothing was sent for longer than a time-out (RFC 5681 4.1). */
void utcp_cubic_idle(struct utcp_cubic *c);

/* RFC 6937, from the moment segments are known to be lost until all that had been sent then is acknowledged. */
struct utcp_prr {
    uint64_t delivered, out, flight; /* flight: when it began */
};

/* The window after `delivered` more octets arrived, with `flight` under way; `progress`: una went on and nothing more
 * is lost. */
uint64_t utcp_prr_window(struct utcp_prr *p, const struct utcp_cubic *c, uint64_t delivered, uint64_t flight,
                         bool progress);

#endif
