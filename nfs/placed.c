/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* placed.c - joins plain and placed octets to RPC messages. What a peer marks wrongly is copied, and nothing is lost.
 */
#include "nfs/placed.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/xdrbytes.h"
#include <rddp/stream.h>

enum { WORD = 4 };

static uint32_t placed_word(const uint8_t *at)
{
    struct xdr_in in = {.at = at, .left = WORD};

    return xdr_get32(&in);
}

/* Whether these octets belong to the item: the XID is known, and nothing came between. */
static bool placed_continues(const struct placed_rx *p, const uint8_t *at, uint64_t rid)
{
    const struct record_rx *rx = &p->rx;

    if (!rx->left || rx->length < WORD || rid != rddp_rid_nfs(placed_word(rx->data), 0))
        return false;
    return !p->item.length || (p->item.position == rx->length && at == (const uint8_t *)p->item.data + p->item.length);
}

int placed_eat(struct placed_rx *p, const uint8_t *at, size_t n, uint64_t rid, size_t *eaten)
{
    size_t done = 0;
    int error = 0;

    *eaten = 0;
    while (error == 0 && *eaten < n) {
        if (placed_continues(p, at + *eaten, rid)) {
            done = n - *eaten < p->rx.left ? n - *eaten : p->rx.left;
            if (!p->item.length)
                p->item = (struct stream_item){.position = (uint32_t)p->rx.length, .data = at + *eaten};
            p->item.length += (uint32_t)done;
            error = record_skip(&p->rx, done);
        } else if (p->rx.left) {
            error = record_eat(&p->rx, at + *eaten, n - *eaten, &done);
        } else { /* the octets of a mark one by one: item data may follow it */
            error = record_eat(&p->rx, at + *eaten, 1, &done);
        }
        *eaten += done;
    }
    return error;
}

/* Whether the item is the last opaque of the message: its length stands in front of it, its roundup behind it. */
static bool is_last_opaque(const struct stream_item *item, const uint8_t *message, size_t length)
{
    return item->position >= 2 * WORD && placed_word(message + item->position - WORD) == item->length &&
           length - item->position == xdr_roundup(item->length);
}

uint8_t *placed_take(struct placed_rx *p, size_t *length, struct stream_item *item)
{
    uint8_t *message = record_take(&p->rx, length), *whole;

    *item = p->item;
    p->item = (struct stream_item){0};
    if (!item->length)
        return message;
    if (is_last_opaque(item, message, *length)) {
        *length = item->position;
        return message;
    }
    whole = malloc(*length + item->length);
    if (whole) {
        memcpy(whole, message, item->position);
        memcpy(whole + item->position, item->data, item->length);
        memcpy(whole + item->position + item->length, message + item->position, *length - item->position);
        *length += item->length;
    }
    item->length = 0;
    free(message);
    return whole;
}
