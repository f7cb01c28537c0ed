/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - a connection of a net: its beginning and end, and writing. What is written stays in the writer's memory.
 */
#include "stream/inner.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tcp/io/packet_name.h"
#include "base/container.h"

enum { PORT_FIRST = 49152, PORTS = 16384 };

/* The last piece that begins at `position` or before. */
static uint32_t find_piece(const struct rddp_stream *s, uint64_t position)
{
    uint32_t low = 0, high = s->pieces;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (s->piece[(s->piece_head + middle) & (STREAM_PIECES - 1)].from <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A segment lies in UTCP_SPANS pieces at most. */
static uint32_t in_spans(const struct rddp_stream *s, uint64_t position, uint32_t length)
{
    uint32_t last = find_piece(s, position) + UTCP_SPANS - 1;
    uint64_t end;

    if (last >= s->pieces)
        return length;
    end = stream_piece_at(s, last)->from + stream_piece_at(s, last)->length;
    return length < end - position ? length : (uint32_t)(end - position);
}

static uint32_t stream_cut(void *user, uint64_t position, uint32_t ready, uint32_t capacity)
{
    const struct rddp_stream *s = user;
    uint32_t length = ready < capacity ? ready : capacity;

    if (s->tcp.option_on)
        length = tcpopt_map_cut(&s->map, position, ready, capacity);
    return in_spans(s, position, length);
}

static void stream_fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    const struct rddp_stream *s = user;
    struct tcpopt o;

    if (s->tcp.option_on && tcpopt_map_describe(&s->map, position, length, &o))
        piece->option_length = (uint32_t)(tcpopt_encode(piece->option, &o) - piece->option);
    for (uint32_t i = find_piece(s, position); length; i++) {
        const struct stream_piece *from = stream_piece_at(s, i);
        uint64_t skip = position - from->from;
        uint32_t n = from->length - skip < length ? (uint32_t)(from->length - skip) : length;

        assert(i < s->pieces && piece->spans < UTCP_SPANS);
        if (n)
            piece->span[piece->spans++] = (struct span){from->at + skip, n};
        position += n;
        length -= n;
    }
}

static const struct utcp_user stream_user = {stream_cut, stream_fetch, stream_arrived};

static void stream_on_timer(struct timer *timer, uint64_t now_us)
{
    struct rddp_stream *s = container_of(timer, struct rddp_stream, timer);

    utcp_timeout(&s->tcp, now_us);
    stream_pump(s);
}

/* One mapping for all arrays but the ring: pages that are never touched take no memory. */
static int stream_map_buffers(struct rddp_stream *s)
{
    size_t sent = STREAM_SENTS * sizeof(struct utcp_sent), ooo = STREAM_PLACES * sizeof(struct utcp_ooo_range);
    size_t piece = STREAM_PIECES * sizeof(*s->piece), section = 2 * STREAM_PIECES * sizeof(*s->map.ring);
    size_t place = STREAM_PLACES * sizeof(*s->places.place), buffer = STREAM_BUFFERS * sizeof(*s->buffer);
    size_t offer = STREAM_OFFERS * sizeof(*s->offer), fill = STREAM_FILLS * sizeof(*s->fills.row);
    struct utcp_buffers buffers = {.sents = STREAM_SENTS, .helds = STREAM_PLACES};
    uint8_t *at;

    s->memory_octets = sent + ooo + piece + section + place + buffer + offer + fill;
    s->memory =
        mmap(NULL, s->memory_octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->memory == MAP_FAILED || !stream_ring_open(s))
        return -ENOMEM;
    at = s->memory;
    buffers.sent = (void *)at;
    buffers.ooo = (void *)(at += sent);
    s->piece = (void *)(at += ooo);
    tcpopt_map_init(&s->map, (void *)(at + piece), 2 * STREAM_PIECES);
    s->places.place = (void *)(at += piece + section);
    s->buffer = (void *)(at += place);
    s->offer = (void *)(at += buffer);
    s->fills.row = (void *)(at + offer);
    utcp_open(&s->tcp, &s->net->host.attr.tcp, &buffers, &stream_user, s);
    return 0;
}

struct rddp_stream *stream_new(struct rddp_stream_net *net, int *error)
{
    struct rddp_stream *s = net->stream_count < net->attr.streams ? calloc(1, sizeof(*s)) : NULL;

    *error = net->stream_count < net->attr.streams ? -ENOMEM : -EMFILE;
    if (!s)
        return NULL;
    s->net = net;
    *error = stream_map_buffers(s);
    if (!*error)
        *error = reactor_add_timer(&net->reactor, &s->timer);
    if (*error) {
        stream_ring_close(s);
        if (s->memory != MAP_FAILED)
            munmap(s->memory, s->memory_octets);
        free(s);
        return NULL;
    }
    s->timer.fire = stream_on_timer;
    utcp_limit(&s->tcp, s->ring_octets / 2);
    s->next = net->streams;
    net->streams = s;
    net->stream_count++;
    return s;
}

static void stream_unlink_from(struct rddp_stream **list, struct rddp_stream *s, bool touched)
{
    while (*list && *list != s)
        list = touched ? &(*list)->touched : &(*list)->next;
    if (*list)
        *list = touched ? s->touched : s->next;
}

void rddp_stream_close(struct rddp_stream *s)
{
    struct rddp_stream_net *net = s->net;

    utcp_abort(&s->tcp);
    stream_pump(s);
    utcp_host_remove(&net->host, &s->tcp);
    reactor_forget_timer(&net->reactor, &s->timer);
    stream_unlink_from(&net->streams, s, false);
    stream_unlink_from(&net->touched, s, true);
    net->stream_count--;
    net->guess = (struct stream_guess){0};
    for (uint32_t i = 0; !s->accepted && i < net->ports; i++)
        net->port[i].waiting -= net->port[i].port == s->port;
    stream_ring_close(s);
    munmap(s->memory, s->memory_octets);
    free(s);
}

/* Chooses a local port that is free towards `remote`, unless `local` has one. */
static int stream_choose_port(struct rddp_stream_net *net, struct utcp_name *local, const struct utcp_name *remote)
{
    if (local->port)
        return utcp_host_find(&net->host, local, remote) ? -EADDRINUSE : 0;
    for (uint32_t i = 0; i < PORTS; i++) {
        local->port = (uint16_t)(PORT_FIRST + net->next_port++ % PORTS);
        if (!utcp_host_find(&net->host, local, remote))
            return 0;
    }
    return -EADDRINUSE;
}

struct rddp_stream *rddp_stream_connect(struct rddp_stream_net *net, const struct sockaddr *from,
                                        const struct sockaddr *to)
{
    struct utcp_name local, remote;
    struct rddp_stream *s = NULL;
    uint64_t now_us = reactor_now_us();
    int error = packet_name_of(&local, from, sizeof(struct sockaddr_in6)) ? -EINVAL : 0;

    if (net->is_gone || !reactor_is_ours(&net->reactor))
        error = -ENODEV;
    if (!error && packet_name_of(&remote, to, sizeof(struct sockaddr_in6)))
        error = -EINVAL;
    if (!error && (utcp_is_v4(&local) != utcp_is_v4(&remote) || !remote.port))
        error = -EINVAL;
    if (!error)
        error = stream_choose_port(net, &local, &remote);
    if (!error)
        s = stream_new(net, &error);
    if (!s) {
        errno = -error;
        return NULL;
    }
    s->accepted = true;
    s->tcp.attr.isn = utcp_host_isn(&net->host, &local, &remote, now_us);
    s->tcp.attr.stamp_offset = utcp_host_stamp_offset(&net->host, &local, &remote);
    utcp_connect(&s->tcp, &local, &remote);
    utcp_host_add(&net->host, &s->tcp);
    stream_pump(s);
    return s;
}

void rddp_stream_peer(const struct rddp_stream *s, struct sockaddr_storage *peer)
{
    packet_name_to(&s->tcp.remote, peer);
}

int rddp_stream_state(const struct rddp_stream *s)
{
    if (s->tcp.state == UTCP_CLOSED && s->tcp.error)
        return s->tcp.error;
    if (s->tcp.state == UTCP_SYN_SENT || s->tcp.state == UTCP_SYN_RECEIVED)
        return RDDP_STREAM_CONNECTING;
    return s->tcp.state == UTCP_CLOSED || s->tcp.state == UTCP_TIME_WAIT ? RDDP_STREAM_ENDED : RDDP_STREAM_OPEN;
}

bool rddp_stream_has_option(const struct rddp_stream *s)
{
    return s->tcp.option_on;
}

int rddp_stream_write(struct rddp_stream *s, const void *octets, size_t length, unsigned flags,
                      const struct rddp_stream_mark *mark)
{
    struct tcpopt_section section = {.message = flags & RDDP_STREAM_MESSAGE};
    uint64_t position = s->map.end;

    if (s->tcp.state == UTCP_CLOSED || s->tcp.tx.finish)
        return -EPIPE;
    if (flags & ~(unsigned)(RDDP_STREAM_MESSAGE | RDDP_STREAM_MORE) || (!length && !mark) || length > UINT64_MAX / 4)
        return -EINVAL;
    if (mark) {
        if (mark->rid > TCPOPT_RID_MAX || length > UINT32_MAX || mark->buffer_offset > UINT32_MAX - length ||
            (mark->has_total && length + mark->buffer_offset > mark->total))
            return -EINVAL;
        section.data = true;
        section.rid = mark->rid;
        section.buffer_offset = mark->buffer_offset;
        section.has_total = mark->has_total;
        section.total = mark->has_total ? mark->total : 0;
        section.unsolicited = mark->unsolicited;
    }
    if (s->pieces == STREAM_PIECES || !tcpopt_map_add(&s->map, &section, length))
        return -EAGAIN;
    if (length)
        s->piece[(s->piece_head + s->pieces++) & (STREAM_PIECES - 1)] = (struct stream_piece){position, octets, length};
    utcp_send(&s->tcp, s->map.end);
    if (s->tcp.state >= UTCP_ESTABLISHED && !(flags & RDDP_STREAM_MORE))
        stream_pump(s);
    return 0;
}

int rddp_stream_finish(struct rddp_stream *s)
{
    if (s->tcp.state == UTCP_CLOSED)
        return -EPIPE;
    utcp_finish(&s->tcp);
    stream_pump(s);
    return 0;
}

uint64_t rddp_stream_unsent(const struct rddp_stream *s)
{
    return utcp_unsent(&s->tcp);
}

uint64_t rddp_stream_unacked(const struct rddp_stream *s)
{
    return s->map.end - utcp_acked(&s->tcp);
}

void rddp_stream_count(const struct rddp_stream *s, struct rddp_stream_counters *counters)
{
    *counters = s->count;
    counters->kept_max = s->tcp.count.kept_max;
    counters->octets_in = s->tcp.count.octets_in;
    counters->segments_in = s->tcp.count.segments_in;
    counters->segments_out = s->tcp.count.segments_out;
    counters->sent_again = s->tcp.count.sent_again;
    counters->timeouts = s->tcp.count.timeouts;
}
