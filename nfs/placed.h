/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* placed.h - RPC messages from a stream whose marked parts were placed in buffers (draft-csapuntz-tcprdma-00, section
 * 5.1): joins fragments to messages, and leaves the data of a READ or WRITE where it was placed. */
#ifndef RDDP_NFS_PLACED_H
#define RDDP_NFS_PLACED_H

#include "nfs/record.h"
#include "rpc/payload.h"

struct placed_rx {
    struct record_rx rx;
    struct stream_item item; /* length 0: none. Its position is the length of the message in front of it */
};

/* Consumes `n` octets that the stream placed at `at` as part of transfer `rid`, until a message is complete. They
 * become the item of the message if `rid` is its transfer and they continue what the item has; otherwise they are
 * copied. Plain octets go to record_eat(). Returns as record_eat() does; -EBADMSG if they lie on
 * octets of the item, which were told before and are overwritten. */
int placed_eat(struct placed_rx *p, const uint8_t *at, size_t n, uint64_t rid, size_t *eaten);

/* The buffer of the item is about to go: copies the item into the message. Returns false if there is no memory. */
bool placed_own(struct placed_rx *p);

/* Returns the complete message, which the caller must free(). If the item is the last opaque of the message, it is
 * stored in *item, and the message ends in front of it; otherwise the message is whole, and item->length is 0. NULL:
 * out of memory. */
uint8_t *placed_take(struct placed_rx *p, size_t *length, struct stream_item *item);

#endif
