/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rack.h - detects lost segments by the times at which they were sent (RFC 8985 section 6). Names are those of the
 * document. */
#ifndef RDDP_TCP_RACK_H
#define RDDP_TCP_RACK_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/scoreboard.h"
#include "tcp/rtt.h"

enum { UTCP_DUP_THRESHOLD = 3, UTCP_REO_WND_PERSIST = 16, UTCP_REO_WND_MULT_MAX = 255 };

struct utcp_rack {
    uint64_t xmit_us, end; /* of the most recently sent segment that was delivered */
    uint64_t rtt_us;
    uint64_t fack;      /* the highest sequence number delivered */
    uint64_t dsack_end; /* end of the round in which a DSACK was last counted */
    uint32_t reo_wnd_mult, reo_wnd_persist;
    bool reordering_seen, dsack_round;
};

void utcp_rack_init(struct utcp_rack *r);

/* A segment was delivered. `echo_us`: when the copy was sent that the peer's timestamp echoes; 0: unknown. */
void utcp_rack_delivered(struct utcp_rack *r, const struct utcp_sent *s, const struct utcp_rtt *rtt, uint64_t echo_us,
                         uint64_t now_us);

/* The peer received something twice: the reordering window was too small. */
void utcp_rack_dsack(struct utcp_rack *r, uint64_t una, uint64_t next);
/* Recovery has ended. */
void utcp_rack_recovered(struct utcp_rack *r);

/* Marks the segments that are lost now. Returns the microseconds until the next check; 0: none is needed. */
uint64_t utcp_rack_detect(struct utcp_rack *r, struct utcp_scoreboard *b, const struct utcp_rtt *rtt, bool recovering,
                          uint64_t now_us);

#endif
