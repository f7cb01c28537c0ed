/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arena.h - a queue pair and memory of every kind, created for each input. It knows which octets a peer may change. */
#ifndef FUZZ_LIB_ARENA_H
#define FUZZ_LIB_ARENA_H

#include "base/bytes.h"
#include "core/qp.h"
#include "fuzz/lib/input.h"

/* The regions. Their keys are 1, 2, 3 and so on, so that one octet of the input can name them. */
enum arena_region {
    ARENA_TARGET,    /* the peer may read and write all of it */
    ARENA_LOCAL,     /* its middle third is used for receives, sinks and sources */
    ARENA_READ_ONLY, /* the peer may read it */
    ARENA_FOREIGN,   /* it belongs to another protection domain */
    ARENA_DEAD,      /* invalidated */
    ARENA_PART,      /* the peer may read and write all of it, but not the memory around it */
    ARENA_REGIONS
};

enum {
    ARENA_OCTETS = 3 * 8000, /* of each region */
    ARENA_THIRD = ARENA_OCTETS / 3,
    ARENA_REQUESTS = 1024, /* limit for requests posted to an arena */
};

struct arena {
    struct pd pd, other_pd;
    struct mr_table mrs;
    struct mr_slot slot[32 + 1];
    struct mr mr[ARENA_REGIONS];
    struct mr whole; /* the memory around ARENA_PART; it has no key */
    uint8_t *buffer[ARENA_REGIONS];
    struct cq cq;
    struct cq_entry ring[ARENA_REQUESTS];
    struct qp qp;
    void *qp_buffer;
    uint8_t outcome[ARENA_REQUESTS]; /* for each wr_id: 0 posted, 1 complete, 2 may complete silently */
    uint32_t octets[ARENA_REQUESTS]; /* in its SGEs */
    uint32_t posted;
    void *sequence_buffer;
    uint8_t *control[ARENA_REQUESTS]; /* for a sequence: buffers for control data, of `control_size` octets */
    uint32_t control_size[ARENA_REQUESTS];
    uint64_t control_told;       /* octets of control data that completions of Writes and Read Requests reported */
    uint8_t named[ARENA_OCTETS]; /* octets of ARENA_LOCAL that a receive or a sink has named */
};

/* A number selected by one octet: small numbers, and those at the edges of arithmetic. */
uint64_t input_number(struct input *in);

struct arena *arena_open(uint32_t window, uint32_t reads);

/* The same on a wire that numbers messages in one sequence. `attr` says what is allowed and requested. */
struct arena *arena_open_sequence(uint32_t window, uint32_t reads, const struct qp_attr *attr);

/* Posts a request as the input says. */
void arena_post(struct arena *a, struct input *in);

/* Takes completions and checks that each request completes once. */
void arena_poll(struct arena *a);

/* The application overwrites the middle third of ARENA_LOCAL. */
void arena_scribble(struct arena *a, uint8_t octet);

/* Call after the queue pair has failed. Checks that all requests have completed and that only permitted memory was
 * changed, and frees the arena. */
void arena_close(struct arena *a);

/* Copies the octets that the peer may change; `to` has ARENA_REGIONS * ARENA_OCTETS octets. */
void arena_copy(const struct arena *a, uint8_t *to);

#endif
