/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt_map.c - sections in a ring; a segment ends before a second piece of data or before a message. */
#include "wire/tcpopt_map.h"

#include <assert.h>

void tcpopt_map_init(struct tcpopt_map *m, struct tcpopt_section *slots, uint32_t sections)
{
    assert(sections && (sections & (sections - 1)) == 0);
    *m = (struct tcpopt_map){.ring = slots, .capacity = sections};
}

static struct tcpopt_section *tcpopt_map_at(const struct tcpopt_map *m, uint32_t i)
{
    return &m->ring[(m->head + i) & (m->capacity - 1)];
}

/* The stream position where section `i` ends. */
static uint64_t end_of(const struct tcpopt_map *m, uint32_t i)
{
    return i + 1 < m->count ? tcpopt_map_at(m, i + 1)->from : m->end;
}

/* Does `b` continue `a`, which is `length` octets long, as the same transfer, in the stream and in the buffer? */
static bool tcpopt_map_goes_on(const struct tcpopt_section *a, uint64_t length, const struct tcpopt_section *b)
{
    return a->data && b->data && !b->message && a->rid == b->rid && a->unsolicited == b->unsolicited &&
           a->has_total == b->has_total && a->total == b->total && a->buffer_offset + length == b->buffer_offset;
}

bool tcpopt_map_add(struct tcpopt_map *m, const struct tcpopt_section *s, uint64_t length)
{
    struct tcpopt_section *last = m->count ? tcpopt_map_at(m, m->count - 1) : 0;
    bool same = last && !s->message && !s->data && !last->data && length;

    if (last && length && last->from != m->end && tcpopt_map_goes_on(last, m->end - last->from, s))
        same = true;
    if (!same) {
        if (m->count == m->capacity)
            return false;
        *tcpopt_map_at(m, m->count) = *s;
        tcpopt_map_at(m, m->count++)->from = m->end;
    }
    m->end += length;
    return true;
}

void tcpopt_map_trim(struct tcpopt_map *m, uint64_t position)
{
    while (m->count && end_of(m, 0) <= position && tcpopt_map_at(m, 0)->from < position) {
        m->head++;
        m->count--;
    }
}

/* Returns the first section that ends after `position`, or an empty section at `position`. */
static uint32_t tcpopt_map_find(const struct tcpopt_map *m, uint64_t position)
{
    uint32_t low = 0, high = m->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (end_of(m, middle) > position || tcpopt_map_at(m, middle)->from == position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Returns the octets of the option for data of this section. */
static uint32_t option_length(const struct tcpopt_section *s)
{
    return s->has_total ? TCPOPT_LONG : TCPOPT_SHORT;
}

uint32_t tcpopt_map_cut(const struct tcpopt_map *m, uint64_t position, uint32_t ready, uint32_t capacity)
{
    uint32_t option = 0, length = 0;
    bool piece = false;

    for (uint32_t i = tcpopt_map_find(m, position); i < m->count && length < ready; i++) {
        const struct tcpopt_section *s = tcpopt_map_at(m, i);
        uint64_t begin = s->from < position ? position : s->from, here = end_of(m, i) - begin;

        if (s->message && s->from > position && (!m->fold || !piece))
            break;
        if (s->data && piece)
            break;
        if (s->message && s->from == position && option < TCPOPT_MARK)
            option = TCPOPT_MARK;
        if (s->data && length + option_length(s) >= capacity)
            break;
        if (s->data) {
            option = option_length(s);
            piece = true;
        }
        if (here > capacity - option - length)
            here = capacity - option - length;
        length += (uint32_t)here;
        if (length == capacity - option)
            break;
    }
    return length < ready ? length : ready;
}

bool tcpopt_map_describe(const struct tcpopt_map *m, uint64_t position, uint32_t length, struct tcpopt *o)
{
    *o = (struct tcpopt){0};
    for (uint32_t i = tcpopt_map_find(m, position); i < m->count && tcpopt_map_at(m, i)->from < position + length;
         i++) {
        const struct tcpopt_section *s = tcpopt_map_at(m, i);
        uint64_t begin = s->from < position ? position : s->from, end = end_of(m, i);

        if (s->message && s->from == position) {
            o->aligned = true;
            o->length = o->length ? o->length : TCPOPT_MARK;
        }
        if (!s->data)
            continue;
        assert(!tcpopt_transfers(o));
        o->length = (uint8_t)option_length(s);
        o->unsolicited = s->unsolicited;
        o->rid = s->rid;
        o->total = s->total;
        o->buffer_offset = s->buffer_offset + (uint32_t)(begin - s->from);
        o->data_offset = (uint16_t)(begin - position);
        o->data_length = (uint16_t)((end < position + length ? end : position + length) - begin);
    }
    return o->length;
}
