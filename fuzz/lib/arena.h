/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arena.h - a queue pair and memory of every kind, made anew for each input, that knows which octets a peer may change.
 */
#ifndef FUZZ_LIB_ARENA_H
#define FUZZ_LIB_ARENA_H

#include "base/bytes.h"
#include "core/qp.h"
#include "fuzz/lib/input.h"

/* The regions. Their keys are 1, 2, 3 and so on, so that one octet of an input can name them. */
enum arena_region {
    ARENA_TARGET,    /* the peer may read and write all of it */
    ARENA_LOCAL,     /* receives, sinks and what we send lie in its middle third */
    ARENA_READ_ONLY, /* the peer may read it */
    ARENA_FOREIGN,   /* of another protection domain */
    ARENA_DEAD,      /* invalidated */
    ARENA_PART,      /* the peer may read and write all of it, but it is a part of what lies around it */
    ARENA_REGIONS
};

enum {
    ARENA_OCTETS = 3 * 8000, /* of each region */
    ARENA_THIRD = ARENA_OCTETS / 3,
    ARENA_REQUESTS = 1024, /* posted in the life of an arena, at most */
};

struct arena {
    struct pd pd, other_pd;
    struct mr_table mrs;
    struct mr_slot slot[32 + 1];
    struct mr mr[ARENA_REGIONS];
    struct mr whole; /* what ARENA_PART is a part of; it has no key */
    uint8_t *room[ARENA_REGIONS];
    struct cq cq;
    struct cq_entry ring[ARENA_REQUESTS];
    struct qp qp;
    void *qp_room;
    uint8_t outcome[ARENA_REQUESTS]; /* of each wr_id: 0 posted, 1 complete, 2 may complete in silence */
    uint32_t octets[ARENA_REQUESTS]; /* of its sges */
    uint32_t posted;
    void *sequence_room;
    uint8_t *control[ARENA_REQUESTS]; /* of a sequence: room for control data, `control_room` octets */
    uint32_t control_room[ARENA_REQUESTS];
    uint64_t control_told;       /* octets of control data that Writes and Read Requests were said to bring */
    uint8_t named[ARENA_OCTETS]; /* the octets of ARENA_LOCAL that some receive or sink has named */
};

/* One octet says where: small numbers, and those at which arithmetic goes wrong. */
uint64_t input_number(struct input *in);

struct arena *arena_open(uint32_t window, uint32_t reads);

/* The same on a wire that numbers messages in one sequence. `attr` says what is allowed and asked for. */
struct arena *arena_open_sequence(uint32_t window, uint32_t reads, const struct qp_attr *attr);

/* Posts one of whatever kind the input says. */
void arena_post(struct arena *a, struct input *in);

/* Takes completions: each request completes once. */
void arena_poll(struct arena *a);

/* The application writes all over the middle third of ARENA_LOCAL. */
void arena_scribble(struct arena *a, uint8_t octet);

/* After the queue pair has failed: everything has completed, and only what may be changed was. Frees it. */
void arena_close(struct arena *a);

/* The octets that the peer may change, for a copy: `to` has room for ARENA_REGIONS * ARENA_OCTETS. */
void arena_copy(const struct arena *a, uint8_t *to);

#endif
