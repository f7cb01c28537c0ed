/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scoreboard.h - the segments that were sent and are not acknowledged, and what happened to each of them. */
#ifndef RDDP_TCP_SCOREBOARD_H
#define RDDP_TCP_SCOREBOARD_H

#include <stdbool.h>
#include <stdint.h>

enum utcp_sent_flag {
    UTCP_SENT_SACKED = 1 << 0,
    UTCP_SENT_LOST = 1 << 1,    /* considered lost and not sent again since */
    UTCP_SENT_RETRANS = 1 << 2, /* sent more than once: an acknowledgement may be for either copy */
    UTCP_SENT_FIN = 1 << 3,     /* its last sequence number is the FIN's */
};

enum { UTCP_BOARD_NONE = UINT32_MAX };

struct utcp_sent {
    uint64_t from, at_us; /* at_us: when it was last sent */
    uint32_t length;      /* octets, the FIN counted as one */
    uint32_t older, newer;
    uint8_t flags;
};

/* A ring of segments in stream order. Those still in flight are also linked in order of sending. */
struct utcp_scoreboard {
    struct utcp_sent *ring;
    uint32_t capacity; /* a power of two */
    uint32_t head, count;
    /* First and last sent of the segments in flight, which are neither lost nor acknowledged. */
    uint32_t oldest, newest;
    uint64_t flight;       /* octets in flight */
    uint32_t lost, sacked; /* segments */
    uint32_t lost_from;    /* no segment before this one, counted from the head, is lost */
};

/* `slots` holds `segments` entries, a power of two; it stays the caller's and must outlive the scoreboard. */
void utcp_scoreboard_init(struct utcp_scoreboard *b, struct utcp_sent *slots, uint32_t segments);
void utcp_scoreboard_clear(struct utcp_scoreboard *b);

/* utcp_scoreboard_at() returns the segment `i` places after the first. utcp_scoreboard_find() returns the index of the
 * first segment that ends behind `number`, or `count`. */
struct utcp_sent *utcp_scoreboard_at(const struct utcp_scoreboard *b, uint32_t i);
uint32_t utcp_scoreboard_find(const struct utcp_scoreboard *b, uint64_t number);

/* Adds a segment that was just sent. The scoreboard must not be full. */
void utcp_scoreboard_add(struct utcp_scoreboard *b, uint64_t from, uint32_t length, uint8_t flags, uint64_t now_us);
/* Removes the first segment, which was acknowledged. */
void utcp_scoreboard_remove(struct utcp_scoreboard *b);
/* Removes the last segment, which counts as never sent. */
void utcp_scoreboard_take_back(struct utcp_scoreboard *b);
/* Record that a segment was selectively acknowledged, is considered lost, or was sent again. */
void utcp_scoreboard_mark_sacked(struct utcp_scoreboard *b, struct utcp_sent *s);
void utcp_scoreboard_mark_lost(struct utcp_scoreboard *b, struct utcp_sent *s);
void utcp_scoreboard_mark_sent(struct utcp_scoreboard *b, struct utcp_sent *s, uint64_t now_us);
/* The peer discarded what it had acknowledged selectively: all segments are lost. */
void utcp_scoreboard_renege(struct utcp_scoreboard *b);
/* What is considered lost was only late: it is in flight as before, and was sent before all others. */
void utcp_scoreboard_regain(struct utcp_scoreboard *b);
/* Returns the first lost segment, or NULL. */
struct utcp_sent *utcp_scoreboard_lost(struct utcp_scoreboard *b);

static inline struct utcp_sent *utcp_scoreboard_slot(const struct utcp_scoreboard *b, uint32_t slot)
{
    return slot == UTCP_BOARD_NONE ? 0 : &b->ring[slot];
}

#endif
