/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inner.h - declarations shared by the files of tcp/; no other file includes it. */
#ifndef RDDP_TCP_INNER_H
#define RDDP_TCP_INNER_H

#include "tcp/utcp.h"

enum {
    UTCP_DELAYED_ACK_US = 5000, /* ours: a probe of new octets may be the only segment that we get */
    UTCP_PEER_DELAY_US = 40000, /* how long a peer may delay its own, as a rule */
    UTCP_PROBE_MIN_US = 2000,   /* a peer that has to share its processor is not gone */
    UTCP_PROBED_RTO_US = 40000, /* the floor of the time-out behind a probe that is answered at once */
    /* Segments in a batch for which one acknowledgement is enough. FEW: with holes, or if the segments are long. */
    UTCP_UNACKED_FEW = 2,
    UTCP_UNACKED = 8,
    UTCP_LONG = 32768,     /* a segment of this length is acknowledged even if it is alone: a window has few of them */
    UTCP_PROMPT_ACKS = 16, /* segments after a hole that are acknowledged without delay */
    UTCP_STAMPS_LENGTH = 12,
    UTCP_PERSIST_MIN_US = 200000,
    UTCP_HANDSHAKE_PROBE_US = 1000000, /* RFC 8985 7.2, nothing measured yet */
    UTCP_MSS_MIN = 64,                 /* shorter segments are not made, whatever the peer asks for */
    UTCP_V4_HEADS = 40,                /* octets of the headers of IP and TCP, without options */
    UTCP_V6_HEADS = 60,
    UTCP_DEFAULT_MSS_V4 = 536,
    UTCP_DEFAULT_MSS_V6 = 1220,
};

static inline uint64_t utcp_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t utcp_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns the number of sequence number `seq`, the one closest to `near`; negative: before the SYN. */
static inline int64_t utcp_number(uint64_t near, uint32_t start, uint32_t seq)
{
    return (int64_t)near + (int32_t)(seq - start - (uint32_t)near);
}

static inline bool utcp_synchronized(const struct utcp *t)
{
    return t->state >= UTCP_ESTABLISHED;
}

static inline uint32_t utcp_heads(const struct utcp_name *remote)
{
    return utcp_is_v4(remote) ? UTCP_V4_HEADS : UTCP_V6_HEADS;
}

/* Returns our clock as timestamps carry it. */
static inline uint32_t utcp_stamp_now(const struct utcp *t, uint64_t now_us)
{
    return (uint32_t)(now_us / UTCP_STAMP_US) + t->attr.stamp_offset;
}

/* utcp.c */
void utcp_over(struct utcp *t, int error);
void utcp_established(struct utcp *t, uint64_t now_us);
/* mss.c. The MSS that a SYN offers; and that of a path, with the options that every segment carries. */
uint16_t utcp_mss_offer(const struct utcp_name *remote, uint32_t mtu);
uint32_t utcp_mss_of(const struct utcp *t, uint32_t mtu);
/* ack.c: processes an acknowledgement of a segment that has passed all checks. */
void utcp_ack(struct utcp *t, const struct utcp_segment *s, uint64_t seq, uint64_t now_us);
void utcp_slowed_down(struct utcp *t); /* for whatever reason: the window became smaller */
void utcp_detect_losses(struct utcp *t, uint64_t now_us);
/* undo.c. Keep the window before a time-out reduces it; note that octets were sent again; judge by the first
 * acknowledgement of new octets whether the time-out was wrong, and take it back. `echo_us`: as in ack.c. */
void utcp_undo_keep(struct utcp *t);
void utcp_undo_sent(struct utcp *t, uint64_t now_us);
void utcp_undo_judge(struct utcp *t, uint64_t echo_us);
/* path_mtu.c. Begin; note that a time-out followed others; return the length of a probe to be sent now, or 0; note its
 * packet, of `size` octets; see whether it is acknowledged; take it for lost. */
void utcp_path_begin(struct utcp *t);
void utcp_path_suspect(struct utcp *t, uint64_t now_us);
uint32_t utcp_path_cut(struct utcp *t, uint64_t now_us);
void utcp_path_sent(struct utcp *t, uint32_t size, uint64_t now_us);
void utcp_path_acked(struct utcp *t, uint64_t now_us);
void utcp_path_lost(struct utcp *t, uint64_t now_us);
/* data.c: processes payload and FIN, of which at least a part is in the window. */
void utcp_data(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us);
/* window.c. The right edge; the scale that a SYN offers; and, after data has come, the time to measure. */
uint64_t utcp_rx_edge(const struct utcp *t);
uint8_t utcp_scale_for(const struct utcp_attr *attr);
void utcp_window_grow(struct utcp *t, uint64_t now_us);
/* arm.c */
/* Restart the retransmission time-out and the probe time-out (RFC 8985 7.2). */
void utcp_arm(struct utcp *t, uint64_t now_us);
void utcp_arm_probe(struct utcp *t, uint64_t now_us);
void utcp_challenge(struct utcp *t, uint64_t now_us);
void utcp_touch_keep(struct utcp *t, uint64_t now_us);

#endif
