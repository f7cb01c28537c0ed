/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_read.c - places arriving octets in the buffer that the option names, or keeps them; the reader gets all of
 * them in order. */
#include <errno.h>
#include <string.h>

#include "stream/inner.h"

static int add_buffer(struct rddp_stream *s, uint64_t rid, uint8_t *at, uint64_t length)
{
    bool there;
    uint32_t i = stream_find_buffer(s, rid, &there);

    if (there && s->buffer[i].at == at && s->buffer[i].length < length) {
        s->buffer[i].length = length;
        return 0;
    }
    if (there)
        return -EEXIST;
    if (s->buffers == STREAM_BUFFERS)
        return -ENOSPC;
    memmove(s->buffer + i + 1, s->buffer + i, (s->buffers++ - i) * sizeof(*s->buffer));
    s->buffer[i] = (struct stream_buffer){.rid = rid, .at = at, .length = length};
    return 0;
}

int rddp_stream_expect(struct rddp_stream *s, uint64_t rid, void *buffer, size_t length)
{
    if (rid > TCPOPT_RID_MAX || !buffer || !length)
        return -EINVAL;
    return add_buffer(s, rid, buffer, length);
}

int rddp_stream_offer(struct rddp_stream *s, void *buffer, size_t length)
{
    if (!buffer || !length)
        return -EINVAL;
    if (s->offers == STREAM_OFFERS)
        return -ENOSPC;
    s->offer[s->offers++] = (struct stream_buffer){.at = buffer, .length = length};
    return 0;
}

/* Takes the first offered buffer that is long enough for an unsolicited transfer. A peer gets no more than were
 * offered. */
static struct stream_buffer *stream_read_take_offer(struct rddp_stream *s, const struct tcpopt *o)
{
    uint64_t need = o->length == TCPOPT_LONG ? o->total : (uint64_t)o->buffer_offset + o->data_length;
    bool there;

    for (uint32_t i = 0; i < s->offers; i++) {
        struct stream_buffer offer = s->offer[i];

        if (offer.length < need)
            continue;
        if (add_buffer(s, o->rid, offer.at, offer.length))
            break;
        memmove(s->offer + i, s->offer + i + 1, (--s->offers - i) * sizeof(*s->offer));
        return &s->buffer[stream_find_buffer(s, o->rid, &there)];
    }
    s->count.unsolicited_refused++;
    return NULL;
}

/* Returns the buffer that this option names, if everything in the option is right. */
static struct stream_buffer *target(struct rddp_stream *s, const struct tcpopt *o)
{
    bool there;
    uint32_t i = stream_find_buffer(s, o->rid, &there);
    struct stream_buffer *b = there ? &s->buffer[i] : o->unsolicited ? stream_read_take_offer(s, o) : NULL;

    if (!b) {
        s->count.options_unknown++;
        return NULL;
    }
    if (o->buffer_offset > b->length || o->data_length > b->length - o->buffer_offset) {
        s->count.options_outside++;
        return NULL;
    }
    if (o->length == TCPOPT_LONG && b->has_total && b->total != o->total) {
        s->count.options_total++;
        return NULL;
    }
    if (o->length == TCPOPT_LONG) {
        b->has_total = true;
        b->total = o->total;
    }
    return b;
}

static bool continues(const struct stream_place *a, const struct stream_place *b)
{
    return a->to == b->from && a->rid == b->rid && a->at + (a->to - a->from) == b->at &&
           a->buffer_offset + (a->to - a->from) == b->buffer_offset;
}

/* Remembers what lies where. False: there is no room. */
static bool note_place(struct stream_places *p, const struct stream_place *new)
{
    struct stream_place *row = p->place + p->first;
    uint32_t i = p->count;

    while (i && row[i - 1].from > new->from)
        i--;
    if (i && continues(&row[i - 1], new)) {
        row[i - 1].to = new->to;
        if (i < p->count && continues(&row[i - 1], &row[i])) {
            row[i - 1].to = row[i].to;
            memmove(row + i, row + i + 1, (--p->count - i) * sizeof(*row));
        }
        return true;
    }
    if (p->first + p->count == STREAM_PLACES) {
        if (!p->first)
            return false;
        memmove(p->place, row, p->count * sizeof(*row));
        p->first = 0;
        row = p->place;
    }
    memmove(row + i + 1, row + i, (p->count++ - i) * sizeof(*row));
    row[i] = *new;
    return true;
}

static void stream_read_keep(struct rddp_stream *s, uint64_t position, const uint8_t *from, uint64_t length)
{
    stream_guess_undo(s->net, from, length);
    stream_write_ring(s, position, from, length);
}

/* Takes the place of new octets, if it is free. Otherwise another part of the stream was placed there before: it may
 * be on its way to the reader, and stays. */
static bool stream_read_take_place(struct rddp_stream *s, const struct stream_place *new)
{
    uint64_t to = new->buffer_offset + (new->to - new->from);

    if (stream_fill_space(&s->fills, new->rid, new->buffer_offset) < new->to - new->from) {
        s->count.options_twice++;
        return false;
    }
    if (s->fills.count == STREAM_FILLS || !note_place(&s->places, new))
        return false;
    stream_fill_add(&s->fills, new->rid, new->buffer_offset, to);
    return true;
}

/* Copies the transfer's octets of this arrival to their place. Returns how many; *before: octets in front of them. */
static uint64_t stream_read_place(struct rddp_stream *s, const struct utcp_arrival *a, const struct tcpopt *o,
                                  uint64_t *before)
{
    uint64_t from = a->segment_position + o->data_offset, to = from + o->data_length, end = a->position + a->length;
    uint64_t begin = from > a->position ? from : a->position, stop = to < end ? to : end;
    const uint8_t *from_packet;
    struct stream_buffer *b = begin < stop ? target(s, o) : NULL;
    struct stream_place new;

    if (!b)
        return 0;
    from_packet = a->data + (begin - a->position);
    new = (struct stream_place){begin, stop, o->rid, o->buffer_offset + (begin - from),
                                b->at + o->buffer_offset + (begin - from)};
    if (!stream_read_take_place(s, &new))
        return 0;
    if (!stream_guess_was_right(s->net, from_packet, stop - begin, new.at)) {
        stream_guess_undo(s->net, from_packet, stop - begin);
        memcpy(new.at, from_packet, stop - begin);
        s->count.octets_copied += stop - begin;
    }
    s->count.octets_placed += stop - begin;
    s->count.octets_placed_early += a->early ? stop - begin : 0;
    *before = begin - a->position;
    return stop - begin;
}

struct utcp_verdict stream_arrived(void *user, const struct utcp_arrival *a)
{
    struct rddp_stream *s = user;
    uint64_t placed = 0, before = 0;
    struct tcpopt o;

    /* The ring holds `ring_octets` from where the reader is. */
    if (a->position + a->length > s->read_to + s->ring_octets)
        return (struct utcp_verdict){0, 0};
    if (a->option && tcpopt_decode(&o, a->option, a->option_length, a->option_at, a->segment_length) != TCPOPT_GOOD) {
        s->count.options_bad++;
    } else if (a->option) {
        if (o.aligned && a->early)
            stream_early_note(s, a->segment_position);
        if (tcpopt_transfers(&o))
            placed = stream_read_place(s, a, &o, &before);
    }
    if (!placed)
        before = a->length;
    stream_read_keep(s, a->position, a->data, before);
    stream_read_keep(s, a->position + before + placed, a->data + before + placed, a->length - before - placed);
    stream_guess_next(s, a, placed ? &o : NULL);
    return (struct utcp_verdict){a->length, (uint32_t)(a->length - placed)};
}

static void read_placed(struct rddp_stream *s, uint64_t stop, struct rddp_stream_record *record)
{
    struct stream_place *p = s->places.place + s->places.first;
    uint64_t length = (p->to < stop ? p->to : stop) - s->read_to;

    *record = (struct rddp_stream_record){RDDP_STREAM_PLACED, length, s->read_to, p->rid, p->at, p->buffer_offset};
    p->from += length;
    p->at += length;
    p->buffer_offset += length;
    if (p->from == p->to)
        s->places.first = --s->places.count ? s->places.first + 1 : 0;
}

static void read_plain(struct rddp_stream *s, uint64_t most, uint8_t *to, struct rddp_stream_record *record)
{
    *record = (struct rddp_stream_record){.kind = RDDP_STREAM_PLAIN, .length = most, .position = s->read_to};
    stream_read_ring(s, s->read_to, to, most);
    utcp_release(&s->tcp, most);
}

int rddp_stream_read(struct rddp_stream *s, void *to, size_t capacity, struct rddp_stream_record *record)
{
    uint64_t taken = stream_early_skip(s), received = utcp_received(&s->tcp),
             stop = received < taken ? received : taken;
    const struct stream_place *p = s->places.count ? s->places.place + s->places.first : NULL;

    s->last = (struct stream_last){0};
    if (s->read_to < received && p && p->from == s->read_to) {
        read_placed(s, stop, record);
    } else if (s->read_to < received) {
        if (!capacity)
            return -EINVAL;
        stop = p && p->from < stop ? p->from : stop;
        stop = stop - s->read_to > capacity ? s->read_to + capacity : stop;
        read_plain(s, stop - s->read_to, to, record);
    } else if (utcp_ended(&s->tcp)) {
        *record = (struct rddp_stream_record){.kind = RDDP_STREAM_FINISH, .position = received};
        return 1;
    } else {
        return s->tcp.state == UTCP_CLOSED ? (s->tcp.error ? s->tcp.error : -ECONNABORTED) : 0;
    }
    s->last = (struct stream_last){record->at, record->rid, record->length};
    s->read_to += record->length;
    if (s->tcp.state != UTCP_CLOSED)
        stream_pump(s);
    return 1;
}
