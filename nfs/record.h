/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* record.h - record marking (RFC 5531 11): messages in a stream of octets, cut into fragments that say their length. No
 * socket, no clock: whoever has octets brings them. */
#ifndef RDDP_NFS_RECORD_H
#define RDDP_NFS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_MARK = 4,                /* octets in front of each fragment */
    RECORD_MAX = (1 << 20) + 65536, /* of a message: the longest READ or WRITE and what is around it */
    RECORD_FRAGMENTS = 256,         /* of one message */
};
#define RECORD_LAST 0x80000000U

struct record_rx {
    size_t max;    /* octets of a message */
    uint8_t *data; /* what is there of it; `room` octets on the heap */
    size_t length, capacity;
    uint32_t left; /* octets that the fragment still lacks */
    bool last;     /* it is the message's last one */
    unsigned fragments;
    uint8_t mark[RECORD_MARK];
    unsigned marked; /* octets of `mark` */
};

void record_init(struct record_rx *rx, size_t max);
void record_fini(struct record_rx *rx);

/* A message has begun and is not whole. */
bool record_is_open(const struct record_rx *rx);

/* Eats of `n` octets until a message is whole, and says how many. 1: whole, to be taken; 0: all eaten; -EMSGSIZE:
 * longer than `max`; -EBADMSG: too many fragments, or an empty one that is not the last; -ENOMEM. After an error the
 * stream is of no use. */
int record_eat(struct record_rx *rx, const uint8_t *from, size_t n, size_t *eaten);

/* The same without a copy: where the next octets of an open fragment belong, and that `n` of them have been put there.
 * 0 octets of room: none is open. record_put() returns 1 or 0 as above. */
size_t record_room(struct record_rx *rx, uint8_t **at);
int record_put(struct record_rx *rx, size_t n);

/* The whole message is the caller's, to free(); the next one may begin. Never NULL. */
uint8_t *record_take(struct record_rx *rx, size_t *length);

/* The mark of a message of `length` octets in one fragment. */
void record_mark(uint8_t mark[RECORD_MARK], size_t length);

#endif
