/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_fill.c - which octets of a buffer are taken, by data that were placed or by the reader himself: no packet is
 * ever written over them, whatever its option says and wherever it is guessed to belong. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "stream/inner.h"

/* Returns the first range of this buffer that ends behind `offset`, or of one with a greater RID. */
static uint32_t stream_fill_find(const struct stream_fills *f, uint64_t rid, uint64_t offset)
{
    uint32_t low = 0, high = f->count;

    while (low < high) {
        const struct stream_fill *row = &f->row[(low + high) / 2];

        if (row->rid < rid || (row->rid == rid && row->to <= offset))
            low = (low + high) / 2 + 1;
        else
            high = (low + high) / 2;
    }
    return low;
}

uint64_t stream_fill_space(const struct stream_fills *f, uint64_t rid, uint64_t offset)
{
    uint32_t i = stream_fill_find(f, rid, offset);

    if (i == f->count || f->row[i].rid != rid)
        return UINT64_MAX - offset;
    return f->row[i].from > offset ? f->row[i].from - offset : 0;
}

void stream_fill_add(struct stream_fills *f, uint64_t rid, uint64_t from, uint64_t to)
{
    uint32_t i = stream_fill_find(f, rid, from);
    struct stream_fill *row = f->row;
    bool before = i && row[i - 1].rid == rid && row[i - 1].to == from;
    bool behind = i < f->count && row[i].rid == rid && row[i].from == to;

    if (before) {
        row[i - 1].to = behind ? row[i].to : to;
        if (behind)
            memmove(row + i, row + i + 1, (--f->count - i) * sizeof(*row));
    } else if (behind) {
        row[i].from = from;
    } else {
        assert(f->count < STREAM_FILLS);
        memmove(row + i + 1, row + i, (f->count++ - i) * sizeof(*row));
        row[i] = (struct stream_fill){rid, from, to};
    }
}

void stream_fill_drop(struct stream_fills *f, uint64_t rid)
{
    uint32_t i = stream_fill_find(f, rid, 0), end = i;

    while (end < f->count && f->row[end].rid == rid)
        end++;
    memmove(f->row + i, f->row + end, (f->count - end) * sizeof(*f->row));
    f->count -= end - i;
}

int rddp_stream_fill(struct rddp_stream *s, uint64_t rid, uint64_t offset, size_t length)
{
    bool there;
    uint32_t i = stream_find_buffer(s, rid, &there);

    if (!there)
        return -ENOENT;
    if (!length || offset > s->buffer[i].length || length > s->buffer[i].length - offset)
        return -EINVAL;
    if (stream_fill_space(&s->fills, rid, offset) < length)
        return -EEXIST;
    if (s->fills.count == STREAM_FILLS)
        return -ENOSPC;
    stream_fill_add(&s->fills, rid, offset, offset + length);
    return 0;
}
