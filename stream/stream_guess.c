/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_guess.c - the device writes data to its place: where the next segment's belongs is guessed before it is read.
 *
 * In the packet there is a hole then, whose octets lie in a buffer. If the guess was wrong they are copied back into
 * the hole, and the packet is like any other. A guess is only made where neither this stream nor its reader has
 * written yet: what a wrong one leaves behind is never read. */
#include <string.h>

#include "stream/inner.h"
#include "tcp/packet.h"

enum { V4_HEAD = 20, V6_HEAD = 40, PROTOCOL_TCP = 6 };
enum { LEAD_MAX = 1024 }; /* a segment of so few plain octets is what a transfer begins with */

/* How many octets of the buffer are free from `offset` on. */
static uint64_t stream_guess_space(const struct rddp_stream *s, const struct stream_buffer *b, uint64_t offset)
{
    uint64_t space = stream_buffer_end(b) - offset, clear = stream_fill_space(&s->fills, b->rid, offset);

    return space < clear ? space : clear;
}

/* Where the data of a segment goes that continues what came last, and how many octets fit there. */
static struct stream_buffer *stream_guess_buffer(const struct rddp_stream *s, uint64_t *offset, uint32_t *lead)
{
    bool there;
    uint32_t i = stream_find_buffer(s, s->ahead.rid, &there);
    struct stream_buffer *b = there ? &s->buffer[i] : NULL;

    *offset = s->ahead.offset;
    *lead = 0;
    if (b && *offset < stream_buffer_end(b))
        return b;
    /* The transfer is whole: the next one has the next RID, and begins as this one did. */
    *offset = 0;
    *lead = s->ahead.lead;
    return i + there < s->buffers ? &s->buffer[i + there] : NULL;
}

uint32_t stream_guess(struct rddp_stream_net *net, struct iovec piece[3])
{
    struct rddp_stream *s = net->guess.stream;
    struct stream_buffer *b = NULL;
    uint64_t offset = 0, space;
    uint32_t lead = 0, head;

    net->guess.length = 0;
    piece[0] = (struct iovec){net->packet, sizeof(net->packet)};
    if (s && !s->tcp.ooo.count && s->ahead.position == utcp_received(&s->tcp))
        b = stream_guess_buffer(s, &offset, &lead);
    space = b ? stream_guess_space(s, b, offset) : 0;
    if (!space)
        return 1;
    head = s->ahead.head + lead;
    if (space > sizeof(net->packet) - head)
        space = sizeof(net->packet) - head;
    net->guess.hole = net->packet + head;
    net->guess.at = b->at + offset;
    net->guess.space = (uint32_t)space;
    net->guess.heads = s->ahead.head;
    piece[0].iov_len = head;
    piece[1] = (struct iovec){net->guess.at, space};
    piece[2] = (struct iovec){net->guess.hole + space, sizeof(net->packet) - head - space};
    net->guess.length = net->guess.space;
    return piece[2].iov_len ? 3 : 2;
}

/* Are there only headers before the hole, so that only the payload's consumer reads it? */
static bool guess_is_plain(const struct rddp_stream_net *net)
{
    const uint8_t *p = net->packet;
    uint32_t ip = p[0] >> 4 == 4 ? 4 * (uint32_t)(p[0] & 0xf) : V6_HEAD;

    if (p[0] >> 4 == 4 ? p[9] != PROTOCOL_TCP || ip < V4_HEAD : p[0] >> 4 != 6 || p[6] != PROTOCOL_TCP)
        return false;
    return ip + V4_HEAD <= net->guess.heads && ip + 4 * (uint32_t)(p[ip + 12] >> 4) <= net->guess.heads;
}

void stream_guess_read(struct rddp_stream_net *net, size_t octets, bool checked)
{
    struct stream_guess *g = &net->guess;
    size_t head = g->length ? (size_t)(g->hole - net->packet) : 0;

    if (!g->length)
        return;
    g->length = octets <= head ? 0 : octets - head < g->space ? (uint32_t)(octets - head) : g->space;
    if (g->length && (!checked || !guess_is_plain(net)))
        stream_guess_undo(net, net->packet, sizeof(net->packet));
}

bool stream_guess_was_right(const struct rddp_stream_net *net, const uint8_t *from, uint64_t length, const uint8_t *to)
{
    const struct stream_guess *g = &net->guess;

    return g->length && from >= g->hole && from + length <= g->hole + g->length && g->at + (from - g->hole) == to;
}

void stream_guess_undo(struct rddp_stream_net *net, const uint8_t *from, uint64_t length)
{
    struct stream_guess *g = &net->guess;

    if (!g->length || !length || from >= g->hole + g->length || from + length <= g->hole)
        return;
    memcpy(g->hole, g->at, g->length);
    if (g->stream)
        g->stream->count.octets_copied += g->length;
    g->length = 0;
}

void stream_guess_next(struct rddp_stream *s, const struct utcp_arrival *a, const struct tcpopt *o)
{
    struct rddp_stream_net *net = s->net;
    struct stream_ahead *ahead = &s->ahead;

    if (a->early)
        return;
    if (o) {
        ahead->head = (uint32_t)(a->segment - net->packet);
        ahead->rid = o->rid;
        ahead->offset = (uint64_t)o->buffer_offset + o->data_length;
        if (!o->buffer_offset)
            ahead->lead = o->data_offset;
    } else if (!ahead->head || ahead->position != a->position || a->length > LEAD_MAX) {
        return;
    }
    ahead->position = a->position + a->length;
    /* Where streams take turns a guess would be wrong as often as not. */
    net->guess.stream = net->guess.recent == s ? s : NULL;
    net->guess.recent = s;
}
