/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - one direction of a byte stream in virtual time: octets come out in order, later, and in other pieces. */
#ifndef TESTS_SIM_LIB_LINK_H
#define TESTS_SIM_LIB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "tests/lib/rng.h"

enum { LINK_WINDOW_MAX = 1 << 22, LINK_FLIGHTS = 512 };

struct link_attr {
    uint32_t window;  /* octets in flight, at most, like the buffers of both ends */
    uint32_t cut_max; /* octets that arrive together, at most */
    uint32_t latency_us, jitter_us;
};

/* Octets that were sent together; they arrive together or in pieces. */
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
    bool ended, end_told; /* ended: by the sender; end_told: the receiver knows */
    uint64_t end_us;
    uint64_t corrupted_at; /* the stream position that arrives with `corrupted_by` in it */
    uint8_t corrupted_by;
    uint64_t stuck_at; /* the first stream position that never arrives */
    bool deaf;         /* the receiver is gone: everything is accepted and lost */
};

void link_init(struct link *l, const struct link_attr *attr, uint64_t seed);
void link_fini(struct link *l);

/* link_takes() returns how many octets the sender may give now: another number each time, sometimes 0. link_is_full():
 * none until the receiver takes some. */
size_t link_takes(struct link *l);
bool link_is_full(const struct link *l);

/* Sends the first `n` octets of these spans, at most what link_takes() returned. */
void link_send(struct link *l, const struct span *span, size_t n, uint64_t now_us);
void link_end(struct link *l, uint64_t now_us);

/* link_has(): octets that have arrived and were not received. link_next_us(): when the next ones arrive, or the end;
 * UINT64_MAX: never. */
size_t link_has(const struct link *l, uint64_t now_us);
uint64_t link_next_us(const struct link *l);

/* Receives some of what has arrived, at most `space` octets. */
size_t link_receive(struct link *l, uint8_t *to, size_t space, uint64_t now_us);

/* Drops the first `n` octets in flight. */
void link_consume(struct link *l, size_t n);

/* Copies `n` octets from stream position `pos` on, as if they overtook those before. Returns how many exist. */
size_t link_overtake(const struct link *l, uint64_t pos, uint8_t *to, size_t n);

/* Was everything received, and did the sender end the stream? Returns true once. */
bool link_is_at_end(struct link *l, uint64_t now_us);

#endif
