/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_link.c - a TCP connection of our own as a link: each unit is one segment, unless the path is too narrow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tcp/io/packet_device.h"
#include "loop/descriptors.h"
#include "tcp/io/packet_name.h"
#include "wire/wire.h"

enum {
    GONE_US = 60000000,    /* how long a peer may take to acknowledge after the connection is over */
    WRITABLE_FRACTION = 4, /* the fraction of the send buffer that must be free */
};

/* --- sending ---------------------------------------------------------------------------------------------- */

/* Returns the stream position where the unit at `position` ends. */
static uint64_t unit_end(const struct packet_link *l, uint64_t position)
{
    uint32_t low = 0, high = l->units;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (l->unit_end[(l->unit_head + middle) & (PACKET_UNITS - 1)] <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return l->unit_end[(l->unit_head + low) & (PACKET_UNITS - 1)];
}

/* One FPDU is one segment (RFC 5044 5.1). An FPDU that the path has become too narrow for is cut, and the next FPDU
 * begins a new segment. One that is to be longer than all others, to probe the path, ends anywhere. */
static uint32_t packet_link_cut(void *user, uint64_t position, uint32_t ready, uint32_t capacity)
{
    const struct packet_link *l = user;
    uint64_t length = unit_end(l, position) - position;

    if (capacity > utcp_emss(&l->tcp, 0) && length < capacity)
        length = capacity;
    if (length > ready)
        length = ready;
    return length < capacity ? (uint32_t)length : capacity;
}

static void packet_link_fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    const struct packet_link *l = user;

    piece->span[0] = (struct span){l->out + (position & (l->out_octets - 1)), length};
    piece->spans = 1;
}

static const struct utcp_user tcp_user = {packet_link_cut, packet_link_fetch, packet_arrived};

static uint64_t space_to_send(const struct packet_link *l)
{
    uint64_t waits = l->written - utcp_acked(&l->tcp);

    return l->units < PACKET_UNITS && waits < l->out_octets ? l->out_octets - waits : 0;
}

bool packet_link_is_writable(const struct packet_link *l)
{
    return space_to_send(l) >= l->out_octets / WRITABLE_FRACTION;
}

static ssize_t send_unit(struct link *link, const struct span *span, uint32_t spans)
{
    struct packet_link *l = packet_link_of(link);
    uint8_t *at;
    size_t octets = 0;

    if (l->tcp.state == UTCP_CLOSED || l->tcp.tx.finish)
        return -ECONNRESET;
    for (uint32_t i = 0; i < spans; i++)
        octets += span[i].length;
    if (octets > space_to_send(l) && !(packet_ring_grow_out(l) && octets <= space_to_send(l)))
        return -EAGAIN;
    at = l->out + (l->written & (l->out_octets - 1));
    for (uint32_t i = 0; i < spans; at += span[i++].length)
        memcpy(at, span[i].at, span[i].length);
    l->written += octets;
    l->unit_end[(l->unit_head + l->units++) & (PACKET_UNITS - 1)] = l->written;
    utcp_send(&l->tcp, l->written);
    return (ssize_t)octets;
}

/* --- the other operations of a link -------------------------------------------------------------------------- */

/* What came while the owner did not want it is kept, and no packet says so again. */
static bool packet_link_is_readable(const struct packet_link *l)
{
    return l->tcp.rx.kept || utcp_ended(&l->tcp) || l->tcp.state == UTCP_CLOSED;
}

/* The owner has finished its work for now: sends what it has queued. */
static void packet_link_want(struct link *link, unsigned wants)
{
    struct packet_link *l = packet_link_of(link);
    bool reads_again = wants & ~l->wants & LINK_WANT_READ && packet_link_is_readable(l);

    l->wants = wants;
    packet_flush(l);
    if (reads_again || (wants & LINK_WANT_WRITE && packet_link_is_writable(l)))
        reactor_set_timer(link->reactor, &l->timer, reactor_now_us());
}

static void packet_link_finish(struct link *link)
{
    struct packet_link *l = packet_link_of(link);

    if (l->tcp.state != UTCP_CLOSED)
        utcp_finish(&l->tcp);
    packet_flush(l);
}

static uint32_t packet_link_segment_size(struct link *link)
{
    return utcp_emss(&packet_link_of(link)->tcp, 0);
}

static void packet_link_names(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    packet_name_to(&packet_link_of(link)->tcp.local, local);
    packet_name_to(&packet_link_of(link)->tcp.remote, peer);
}

/* What was sent still reaches the peer, as with a closed socket. If the peer has sent octets that will not be read, it
 * gets a reset. The device frees the link later. */
static void packet_link_close_link(struct link *link)
{
    struct packet_link *l = packet_link_of(link);
    bool is_unread = l->tcp.rx.kept;

    link->owner = NULL;
    l->is_new = false;
    l->gone_us = reactor_now_us() + GONE_US;
    if (l->tcp.state == UTCP_SYN_SENT || l->tcp.state == UTCP_SYN_RECEIVED || is_unread)
        utcp_abort(&l->tcp);
    else if (l->tcp.state != UTCP_CLOSED)
        utcp_finish(&l->tcp);
    packet_flush(l);
    if (l->tcp.state == UTCP_CLOSED)
        reactor_set_timer(link->reactor, &l->timer, reactor_now_us());
}

static void packet_link_count(struct link *link, struct link_counts *counts)
{
    const struct packet_link *l = packet_link_of(link);

    counts->placed_early = l->placed_early;
    counts->kept_max = l->tcp.count.kept_max;
    counts->sent_again = l->tcp.count.sent_again;
}

static const struct link_kind packets = {
    .name = "TCP of our own",
    .keeps_units = true,
    .present = packet_present,
    .attach = packet_attach,
    .count = packet_link_count,
    .want = packet_link_want,
    .send = send_unit,
    .finish = packet_link_finish,
    .segment_size = packet_link_segment_size,
    .names = packet_link_names,
    .close = packet_link_close_link,
};

/* --- memory ----------------------------------------------------------------------------------------------- */

/* Maps the buffers. Pages that are never touched take no memory. */
static bool packet_link_map_buffers(struct packet_link *l)
{
    size_t sent = PACKET_SENTS * sizeof(struct utcp_sent), ooo = PACKET_OOO_RANGES * sizeof(struct utcp_ooo_range);
    size_t reorder = sizeof(*l->reorder), unit = PACKET_UNITS * sizeof(*l->unit_end);
    struct utcp_buffers buffers = {.sents = PACKET_SENTS, .helds = PACKET_OOO_RANGES};
    uint8_t *at;

    l->buffer_octets = sent + ooo + reorder + unit;
    l->buffer =
        mmap(NULL, l->buffer_octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (l->buffer == MAP_FAILED)
        l->buffer = NULL;
    if (!packet_ring_open(l) || !l->buffer)
        return false;
    at = l->buffer;
    buffers.sent = (void *)at;
    buffers.ooo = (void *)(at += sent);
    l->unit_end = (void *)(at += ooo);
    l->reorder = (void *)(at + unit);
    utcp_open(&l->tcp, &l->device->host.attr.tcp, &buffers, &tcp_user, l);
    utcp_limit(&l->tcp, l->in_octets / 2);
    return true;
}

void packet_link_free(struct packet_link *l)
{
    if (l->place_fd >= 0)
        descriptor_close(l->place_fd);
    packet_ring_close(l);
    if (l->buffer)
        munmap(l->buffer, l->buffer_octets);
    free(l);
}

struct packet_link *packet_link_new(struct rddp_device *device, struct reactor *reactor)
{
    struct packet_link *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->link = (struct link){.kind = &packets, .reactor = reactor};
    l->device = device;
    l->place_fd = -1;
    if (packet_link_map_buffers(l))
        return l;
    packet_link_free(l);
    return NULL;
}
