/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - one direction of a byte stream in virtual time: what goes in comes out in order, later, in other pieces. */
#ifndef TESTS_SIM_LIB_LINK_H
#define TESTS_SIM_LIB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "tests/lib/rng.h"

enum { LINK_WINDOW_MAX = 1 << 22, LINK_FLIGHTS = 512 };

struct link_attr {
    uint32_t window;  /* octets on the way, at most: what both ends' buffers hold */
    uint32_t cut_max; /* octets that arrive at once, at most */
    uint32_t latency_us, jitter_us;
};

/* Octets that were sent together; they arrive together, or in pieces. */
struct flight {
    uint64_t at_us;
    uint32_t octets;
};

struct link {
    struct link_attr attr;
    struct rng rng;
    uint8_t *ring;        /* LINK_WINDOW_MAX octets */
    uint64_t sent, taken; /* octets of the whole stream so far */
    struct flight flight[LINK_FLIGHTS];
    uint32_t first, flights;
    bool ended, end_told; /* the sender's end; the receiver knows */
    uint64_t end_us;
    uint64_t spoilt_at; /* the octet of the stream that arrives with `spoilt_by` in it */
    uint8_t spoilt_by;
    uint64_t stuck_at; /* the first octet of the stream that never arrives */
    bool deaf;         /* the receiver has gone: everything is taken and lost */
};

void link_init(struct link *l, const struct link_attr *attr, uint64_t seed);
void link_fini(struct link *l);

/* Octets that the sender may give now; another number at each look, and 0 now and then. Full: not before the receiver
 * takes some. */
size_t link_takes(struct link *l);
bool link_is_full(const struct link *l);

/* `n` octets, not more than link_takes() said, from the front of these spans. */
void link_send(struct link *l, const struct span *span, size_t n, uint64_t now_us);
void link_end(struct link *l, uint64_t now_us);

/* Octets that have arrived and were not received, and when the next ones arrive, or the end; UINT64_MAX: never. */
size_t link_has(const struct link *l, uint64_t now_us);
uint64_t link_next_us(const struct link *l);

/* Receives some of what has arrived; at most `room`. */
size_t link_receive(struct link *l, uint8_t *to, size_t room, uint64_t now_us);

/* The first `n` octets on the way are not needed any more. */
void link_consume(struct link *l, size_t n);

/* Looks at `n` octets from stream position `pos` on, as if they came before those in front of them; how many of them
 * there are. */
size_t link_overtake(const struct link *l, uint64_t pos, uint8_t *to, size_t n);

/* Everything was received and the sender ended it: true once. */
bool link_is_at_end(struct link *l, uint64_t now_us);

#endif
