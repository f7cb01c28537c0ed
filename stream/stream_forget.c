/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_forget.c - a buffer goes back to the reader, or octets of a record go back to the stream. What lay in memory
 * that may be gone after the return moves into the ring, which has a place for every octet that was not read. */
#include <errno.h>
#include <string.h>

#include "stream/inner.h"

static void stream_forget_keep(struct rddp_stream *s, uint64_t position, const uint8_t *from, uint64_t length)
{
    stream_write_ring(s, position, from, length);
    utcp_keep(&s->tcp, position, length);
}

/* Keeps what the reader has not read of these octets; some may have been read before their turn. */
static void keep_unread(struct rddp_stream *s, const struct stream_place *p)
{
    const struct stream_taken *taken = s->early.taken, *end = taken + s->early.takens;
    uint64_t at = p->from, stop;

    for (; at < p->to; at = stop) {
        while (taken < end && taken->to <= at)
            taken++;
        if (taken < end && taken->from <= at) {
            stop = taken->to;
            continue;
        }
        stop = taken < end && taken->from < p->to ? taken->from : p->to;
        stream_forget_keep(s, at, p->at + (at - p->from), stop - at);
    }
}

int rddp_stream_forget(struct rddp_stream *s, uint64_t rid)
{
    struct stream_place *row = s->places.place + s->places.first;
    uint32_t left = 0;
    bool there;
    uint32_t i = stream_find_buffer(s, rid, &there);

    if (!there)
        return -ENOENT;
    for (uint32_t k = 0; k < s->places.count; k++) {
        if (row[k].rid == rid)
            keep_unread(s, &row[k]);
        else
            row[left++] = row[k];
    }
    s->places.count = left;
    stream_fill_drop(&s->fills, rid);
    memmove(s->buffer + i, s->buffer + i + 1, (--s->buffers - i) * sizeof(*s->buffer));
    if (s->last.at && s->last.rid == rid)
        s->last = (struct stream_last){0};
    return 0;
}

int rddp_stream_unread(struct rddp_stream *s, size_t length)
{
    const struct stream_last *last = &s->last;

    if (!length || length > last->length)
        return -EINVAL;
    s->read_to -= length;
    if (last->at)
        stream_forget_keep(s, s->read_to, last->at + (last->length - length), length);
    else
        utcp_keep(&s->tcp, s->read_to, length);
    s->last = (struct stream_last){0};
    return 0;
}
