/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.h - a Payload stream and the items that were taken out of it (RFC 8166 3.4). */
#ifndef RDDP_RPC_STREAM_H
#define RDDP_RPC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An item outside of its stream. Its position counts octets of the whole stream, with all items and their roundup in
 * their places. */
struct stream_item {
    uint32_t position, length;
    const void *data;
};

/* Items are in ascending order, and each begins where the stream has something before it. */
bool stream_is_sane(size_t payload, const struct stream_item *item, unsigned count);

/* Octets of the whole stream, and the stream itself into `to`, which has them. */
size_t stream_length(size_t payload, const struct stream_item *item, unsigned count);
void stream_join(uint8_t *to, const uint8_t *payload, size_t length, const struct stream_item *item, unsigned count);

#endif
