/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* payload.h - a Payload stream and the items that were taken out of it (RFC 8166 3.4). */
#ifndef RDDP_RPC_PAYLOAD_H
#define RDDP_RPC_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An item that is not in its stream. Its position in octets counts from the start of the whole stream, with all items
 * and their roundup in place. */
struct stream_item {
    uint32_t position, length;
    const void *data;
};

/* Whether the items are in ascending order, do not overlap, and lie within the stream. */
bool stream_is_sane(size_t payload, const struct stream_item *item, unsigned count);

/* stream_length() is the length of the whole stream in octets. stream_join() writes it to `to`, which must have that
 * size. */
size_t stream_length(size_t payload, const struct stream_item *item, unsigned count);
void stream_join(uint8_t *to, const uint8_t *payload, size_t length, const struct stream_item *item, unsigned count);

#endif
