/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_early.c - messages that have arrived whole behind a gap, and are read before their turn. The option's A bit
 * tells where they begin (draft-csapuntz-tcprdma-00, 3.1.6). */
#include <errno.h>
#include <string.h>

#include "stream/inner.h"

void stream_early_note(struct rddp_stream *s, uint64_t position)
{
    struct stream_early *e = &s->early;
    uint64_t received = utcp_received(&s->tcp);
    uint32_t passed = 0, i;

    while (passed < e->marks && e->mark[passed] <= received)
        passed++;
    e->marks -= passed;
    memmove(e->mark, e->mark + passed, e->marks * sizeof(*e->mark));
    for (i = e->marks; i && e->mark[i - 1] > position; i--)
        ;
    /* What is not noted is read in its turn. */
    if (position <= received || (i && e->mark[i - 1] == position) || e->marks == STREAM_MARKS)
        return;
    memmove(e->mark + i + 1, e->mark + i, (e->marks++ - i) * sizeof(*e->mark));
    e->mark[i] = position;
}

/* Returns the index of the first range taken that ends behind `position`. */
static uint32_t find_taken(const struct stream_early *e, uint64_t position)
{
    uint32_t i = 0;

    while (i < e->takens && e->taken[i].to <= position)
        i++;
    return i;
}

/* Finds the first message that is whole, lies behind a gap and was not taken. */
static bool find_message(struct rddp_stream *s)
{
    struct stream_early *e = &s->early;
    uint64_t received = utcp_received(&s->tcp);

    if (e->at < e->end && e->at > received)
        return true; /* the rest of one */
    for (uint32_t i = 0; i + 1 < e->marks; i++) {
        uint32_t t = find_taken(e, e->mark[i]);

        if (e->mark[i] <= received || (t < e->takens && e->taken[t].from <= e->mark[i]) ||
            !utcp_has(&s->tcp, e->mark[i], e->mark[i + 1]))
            continue;
        e->at = e->mark[i];
        e->end = e->mark[i + 1];
        return true;
    }
    return false;
}

/* Notes that [from, to) was read. Returns false if there is no room. */
static bool stream_early_take(struct stream_early *e, uint64_t from, uint64_t to, uint64_t plain)
{
    uint32_t i = find_taken(e, from);
    struct stream_taken *before = i ? &e->taken[i - 1] : NULL;

    if (before && before->to == from) {
        before->to = to;
        before->plain += plain;
        return true;
    }
    if (e->takens == STREAM_TAKENS)
        return false;
    memmove(e->taken + i + 1, e->taken + i, (e->takens++ - i) * sizeof(*e->taken));
    e->taken[i] = (struct stream_taken){from, to, plain};
    return true;
}

/* Returns the first range in a buffer that ends behind `position`, or NULL. */
static const struct stream_place *find_place(const struct rddp_stream *s, uint64_t position)
{
    const struct stream_place *row = s->places.place + s->places.first;
    uint32_t low = 0, high = s->places.count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (row[middle].to <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->places.count ? &row[low] : NULL;
}

int rddp_stream_read_early(struct rddp_stream *s, void *to, size_t capacity, struct rddp_stream_record *record,
                           uint64_t *rest)
{
    struct stream_early *e = &s->early;
    const struct stream_place *p;
    bool placed;
    uint64_t end;

    if (!find_message(s))
        return 0;
    p = find_place(s, e->at);
    placed = p && p->from <= e->at;
    if (!placed && !capacity)
        return -EINVAL;
    end = p && (placed ? p->to : p->from) < e->end ? (placed ? p->to : p->from) : e->end;
    if (!placed && end - e->at > capacity)
        end = e->at + capacity;
    if (!stream_early_take(e, e->at, end, placed ? 0 : end - e->at))
        return 0;
    *record = (struct rddp_stream_record){.kind = RDDP_STREAM_PLAIN, .length = end - e->at, .position = e->at};
    if (placed) {
        record->kind = RDDP_STREAM_PLACED;
        record->rid = p->rid;
        record->at = p->at + (e->at - p->from);
        record->buffer_offset = p->buffer_offset + (e->at - p->from);
    } else {
        stream_read_ring(s, e->at, to, end - e->at);
    }
    s->count.octets_read_early += end - e->at;
    e->at = end;
    *rest = e->end - end;
    return 1;
}

/* Forgets what lies in buffers before `position`. */
static void drop_places(struct stream_places *p, uint64_t position)
{
    while (p->count && p->place[p->first].to <= position)
        p->first = --p->count ? p->first + 1 : 0;
    if (p->count && p->place[p->first].from < position) {
        struct stream_place *row = &p->place[p->first];
        uint64_t skip = position - row->from;

        row->from += skip;
        row->at += skip;
        row->buffer_offset += skip;
    }
}

uint64_t stream_early_skip(struct rddp_stream *s)
{
    struct stream_early *e = &s->early;

    while (e->takens && e->taken[0].from == s->read_to) {
        struct stream_taken taken = e->taken[0];

        memmove(e->taken, e->taken + 1, --e->takens * sizeof(*e->taken));
        s->read_to = taken.to;
        drop_places(&s->places, taken.to);
        utcp_release(&s->tcp, taken.plain);
        if (s->tcp.state != UTCP_CLOSED)
            stream_pump(s);
    }
    return e->takens ? e->taken[0].from : UINT64_MAX;
}
