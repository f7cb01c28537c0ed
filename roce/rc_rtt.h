/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_rtt.h - the round trips of a reliable connection, as acknowledgements and NAKs tell them. Time is an argument. */
#ifndef RDDP_ROCE_RC_RTT_H
#define RDDP_ROCE_RC_RTT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RC_RTT_PART = 8,   /* a round trip that is longer by this part of the least one, */
    RC_QUEUE_US = 100, /* and by this, has met a queue: */
    RC_NEWEST = 5,     /* if that many in a row are. One may be because a process waited for a processor */
    RC_RTO_MAX_US = 1000000,
    RC_MARKS = 32,
};

/* The round trip (RFC 6298). */
struct rc_rtt {
    uint64_t timed, timed_us;      /* behind a packet that is measured, and when it left; 0: none */
    uint32_t smooth_us, var_us;    /* 0: no sample yet */
    uint32_t newest_us[RC_NEWEST]; /* also of NAKs */
    uint32_t least_us, samples;    /* of all, and how many there were */
};

/* When packets left, one of RC_MARKS / 2 in a window: a NAK says by it what queue its packet has met. */
struct rc_marks {
    struct {
        uint32_t position, us; /* the lower halves */
    } mark[RC_MARKS];
    uint32_t count; /* since it went back */
    uint64_t due;   /* position of the next mark */
    uint64_t from; /* packets before this one may have left twice, since a time-out: a NAK of theirs is no round trip */
};

/* The packet that is measured was acknowledged. */
void rc_rtt_measure(struct rc_rtt *rtt, uint64_t now_us);

/* A NAK came for the packet at this position. */
void rc_rtt_measure_nak(struct rc_rtt *rtt, const struct rc_marks *m, uint64_t position, uint64_t now_us);

/* Do the newest round trips say that packets have met a queue? Without any they might have. */
bool rc_rtt_has_queue(const struct rc_rtt *rtt);

/* The packet at this position leaves, and its mark is due. */
void rc_marks_set(struct rc_marks *m, uint64_t position, uint32_t window, uint64_t now_us);

#endif
