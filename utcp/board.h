/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* board.h - the segments that have been sent and are not yet acknowledged: what happened to each of them. */
#ifndef RDDP_UTCP_BOARD_H
#define RDDP_UTCP_BOARD_H

#include <stdbool.h>
#include <stdint.h>

enum utcp_sent_flag {
    UTCP_SENT_SACKED = 1 << 0,
    UTCP_SENT_LOST = 1 << 1,  /* and not sent again since */
    UTCP_SENT_AGAIN = 1 << 2, /* more than once: an acknowledgement may be for either */
    UTCP_SENT_FIN = 1 << 3,   /* its last number is the FIN's */
};

enum { UTCP_BOARD_NONE = UINT32_MAX };

struct utcp_sent {
    uint64_t from, at_us; /* when it was sent last */
    uint32_t length;      /* with the FIN */
    uint32_t older, newer;
    uint8_t flags;
};

/* A ring of segments in the order of the stream, threaded in the order of sending for those still under way. */
struct utcp_board {
    struct utcp_sent *ring;
    uint32_t capacity; /* a power of two */
    uint32_t head, count;
    uint32_t oldest, newest; /* sent first and last of those that are neither lost nor acknowledged */
    uint64_t flight;         /* octets of those */
    uint32_t lost, sacked;   /* segments */
    uint32_t lost_from;      /* no segment before this one, counted from the head, is lost */
};

void utcp_board_init(struct utcp_board *b, struct utcp_sent *room, uint32_t segments);
void utcp_board_clear(struct utcp_board *b);

/* The segment i places behind the first; its place in the ring. */
struct utcp_sent *utcp_board_at(const struct utcp_board *b, uint32_t i);
uint32_t utcp_board_find(const struct utcp_board *b,
                         uint64_t number); /* the first that ends behind `number`, or count */

/* There must be room. */
void utcp_board_add(struct utcp_board *b, uint64_t from, uint32_t length, uint8_t flags, uint64_t now_us);
/* The first segment is acknowledged. */
void utcp_board_remove(struct utcp_board *b);
void utcp_board_mark_sacked(struct utcp_board *b, struct utcp_sent *s);
void utcp_board_mark_lost(struct utcp_board *b, struct utcp_sent *s);
void utcp_board_mark_sent(struct utcp_board *b, struct utcp_sent *s, uint64_t now_us);
/* The peer has thrown away what it had: all is lost. */
void utcp_board_renege(struct utcp_board *b);
/* The first lost segment, or NULL. */
struct utcp_sent *utcp_board_lost(struct utcp_board *b);

static inline struct utcp_sent *utcp_board_slot(const struct utcp_board *b, uint32_t slot)
{
    return slot == UTCP_BOARD_NONE ? 0 : &b->ring[slot];
}

#endif
