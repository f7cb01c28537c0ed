/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cubic.h - how much may be in flight: CUBIC (RFC 9438), HyStart++ (RFC 9406), proportional rate reduction (RFC
 * 6937). */
#ifndef RDDP_TCP_CUBIC_H
#define RDDP_TCP_CUBIC_H

#include <stdbool.h>
#include <stdint.h>

enum { UTCP_INITIAL_WINDOW = 10 }; /* segments (RFC 6928) */

/* HyStart++: rounds of slow start, and their round-trip times (RFC 9406). */
struct utcp_hystart {
    uint64_t round_end, last_min_us, min_us, baseline_us;
    uint32_t samples, css_rounds; /* css_rounds 0: not in conservative slow start */
};

/* Windows are in octets. */
struct utcp_cubic {
    uint64_t cwnd, ssthresh, mss;
    uint64_t w_max, w_est, cwnd_prior;
    uint64_t epoch_us; /* start of congestion avoidance; 0: it has not begun since the last reduction */
    uint32_t k_1024;   /* K in units of 1/1024 s */
    uint64_t rest;     /* growth that is less than an octet so far, times cwnd */
    struct utcp_hystart start;
};

void utcp_cubic_init(struct utcp_cubic *c, uint32_t mss);

/* `octets` were acknowledged in order, outside recovery, while the window limited sending. */
void utcp_cubic_acked(struct utcp_cubic *c, uint64_t octets, uint64_t srtt_us, uint64_t now_us);
/* A round-trip time was measured in slow start; `una` and `next` delimit the rounds. */
void utcp_cubic_round_trip(struct utcp_cubic *c, uint64_t rtt_us, uint64_t una, uint64_t next);
/* Segments were lost: sets ssthresh. Recovery sets the window. */
void utcp_cubic_congested(struct utcp_cubic *c, uint64_t flight);
/* Nothing was sent for longer than a retransmission time-out (RFC 5681 4.1). */
void utcp_cubic_idle(struct utcp_cubic *c);

/* Proportional rate reduction (RFC 6937), from the detection of a loss until everything sent before it is
 * acknowledged. */
struct utcp_prr {
    uint64_t delivered, out, flight; /* flight: octets in flight when it began */
};

/* Returns the window after `delivered` more octets arrived, with `flight` octets in flight. `progress`: una advanced
 * and no further segment was lost. */
uint64_t utcp_prr_window(struct utcp_prr *p, const struct utcp_cubic *c, uint64_t delivered, uint64_t flight,
                         bool progress);

#endif
