/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_order.h - DATA chunks of an association that cannot be given to the user at once: fragments are joined, and
 * ordered messages wait for those before them (RFC 9260 6.5, 6.6, 6.9). */
#ifndef RDDP_SCTP_IO_OSCTP_ORDER_H
#define RDDP_SCTP_IO_OSCTP_ORDER_H

#include "sctp/io/sctp.h"
#include "sctp/osctp.h"

/* Octets of memory that a chunk or message counts besides its data: its entry, its place in a table or a ring, and what
 * malloc() adds to both. */
enum { OSCTP_ENTRY = 128 };

/* A whole message. `data` is from malloc(). */
struct osctp_message {
    uint8_t *data;
    uint32_t octets, ppid;
    uint32_t tsn, tsns; /* of its first chunk; of all its chunks */
    uint16_t stream;
    bool unordered;
};

struct osctp_order {
    void (*give)(void *of, const struct osctp_message *message); /* takes over the message's data */
    void *of;
    struct osctp_held **heads; /* the chunks and messages held, by TSN or SSN */
    uint32_t size, count;      /* of `heads`, 0 or a power of two; held */
    uint32_t octets;           /* of memory held: their data, and OSCTP_ENTRY for each */
    uint16_t next[SCTP_STREAMS_MAX];
};

enum osctp_verdict {
    OSCTP_TAKEN,
    OSCTP_NO_SPACE, /* the chunk was not taken, and nothing has changed */
    OSCTP_WRONG,    /* it contradicts others: the peer broke a rule */
};

/* Takes a chunk, which comes once, and gives all messages that it completes. At most `space` octets are held, and in a
 * message that waits for nothing the same. */
enum osctp_verdict osctp_order_take(struct osctp_order *r, const struct osctp_data *data, uint32_t space);

/* Frees everything that is held. */
void osctp_order_fini(struct osctp_order *r);

#endif
