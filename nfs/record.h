/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* record.h - record marking (RFC 5531 11): messages in a stream of octets, split into fragments with a length in front.
 * It uses no socket and no clock: the caller brings the octets. */
#ifndef RDDP_NFS_RECORD_H
#define RDDP_NFS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_MARK = 4,                /* octets in front of each fragment */
    RECORD_MAX = (1 << 20) + 65536, /* octets of a message: the largest READ or WRITE and its headers */
    RECORD_FRAGMENTS = 256,         /* of one message */
};
#define RECORD_LAST 0x80000000U

struct record_rx {
    size_t max;    /* limit for a message, in octets */
    uint8_t *data; /* the message so far; `capacity` octets on the heap */
    size_t length, capacity;
    size_t skipped; /* octets of the message that were counted and not stored */
    uint32_t left;  /* octets that the current fragment still lacks */
    bool last;      /* the current fragment is the last of its message */
    unsigned fragments;
    uint8_t mark[RECORD_MARK];
    unsigned marked; /* octets of `mark` that have arrived */
};

void record_init(struct record_rx *rx, size_t max);
void record_fini(struct record_rx *rx);

/* Whether a message has begun and is not complete. */
bool record_is_open(const struct record_rx *rx);

/* Consumes some of `n` octets, until a message is complete, and stores their number in `*eaten`. Returns 1 if a message
 * is complete, to be taken with record_take(); 0 if all octets were consumed; -EMSGSIZE if the message exceeds `max`,
 * with what was counted and not stored; -EBADMSG for too many fragments, or an empty one that is not the last; -ENOMEM.
 * The stream is unusable after an error. */
int record_eat(struct record_rx *rx, const uint8_t *from, size_t n, size_t *eaten);

/* The same without a copy. record_space() returns how many octets of the open fragment are still to come, and where
 * they belong; 0 if no fragment is open. record_put() says that `n` of them were written there, and returns 1 or 0 as
 * above. */
size_t record_space(struct record_rx *rx, uint8_t **at);
int record_put(struct record_rx *rx, size_t n);

/* Counts `n` octets of the open fragment, at most what record_space() says, without storing them. Returns 1 or 0 as
 * above. */
int record_skip(struct record_rx *rx, size_t n);

/* Inserts `n` octets that were counted so in front of octet `at` of the message. Returns false if there is no memory.
 */
bool record_insert(struct record_rx *rx, size_t at, const void *from, size_t n);

/* Returns the complete message, which the caller must free(); the next one may begin. Never NULL. */
uint8_t *record_take(struct record_rx *rx, size_t *length);

/* Writes the mark of a message that has `length` octets in one fragment. */
void record_mark(uint8_t mark[RECORD_MARK], size_t length);

#endif
