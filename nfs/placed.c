/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* placed.c - joins plain and placed octets to RPC messages. What a peer marks wrongly is copied, and nothing is lost.
 */
#include "nfs/placed.h"

#include <errno.h>

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

/* Whether these octets lie where others of the item do. Then those were overwritten, whatever they were. */
static bool placed_overlaps(const struct placed_rx *p, const uint8_t *at, size_t n)
{
    uintptr_t start = (uintptr_t)p->item.data, from = (uintptr_t)at;

    return p->item.length && from < start + p->item.length && start < from + n;
}

int placed_eat(struct placed_rx *p, const uint8_t *at, size_t n, uint64_t rid, size_t *eaten)
{
    size_t done = 0;
    int error = 0;

    *eaten = 0;
    if (placed_overlaps(p, at, n))
        return -EBADMSG;
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

bool placed_own(struct placed_rx *p)
{
    struct stream_item item = p->item;

    if (!item.length)
        return true;
    if (!record_insert(&p->rx, item.position, item.data, item.length))
        return false;
    p->item = (struct stream_item){0};
    return true;
}

uint8_t *placed_take(struct placed_rx *p, size_t *length, struct stream_item *item)
{
    *item = (struct stream_item){0};
    if (p->item.length && is_last_opaque(&p->item, p->rx.data, p->rx.length)) {
        *item = p->item;
        p->rx.length = item->position;
        p->item = (struct stream_item){0};
    }
    if (!placed_own(p)) {
        record_fini(&p->rx);
        p->item = (struct stream_item){0};
        return NULL;
    }
    return record_take(&p->rx, length);
}
