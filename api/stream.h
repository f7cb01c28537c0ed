/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.h - what the files of marked streams share: a net drives its streams, and a stream keeps what its reader has
 * not read. One thread at a time uses a net and its streams: there is no lock. */
#ifndef RDDP_API_STREAM_H
#define RDDP_API_STREAM_H

#include <rddp/stream.h>

#include "net/loop.h"
#include "net/tun.h"
#include "utcp/host.h"
#include "wire/tcpopt_map.h"

enum {
    STREAM_PORTS = 16,
    STREAM_PIECES = 1024, /* pieces written and not acknowledged; a power of two */
    STREAM_BUFFERS = 1024,
    STREAM_OFFERS = 64,
    STREAM_PLACES = 8192, /* ranges placed and not read; when they run out octets are kept instead */
    STREAM_SENTS = 16384,
    STREAM_BATCH = 64,
    STREAM_BUCKETS = 1024,
    STREAM_HALVES = 1024,
    STREAM_CHANCES = 100000, /* of which `lose` are lost */
};

/* A piece that was written: `from` is its place in the stream, `at` the caller's memory until it is acknowledged. */
struct stream_piece {
    uint64_t from;
    const uint8_t *at;
    uint64_t length;
};

/* A buffer that the application named or offered. The memory is the application's. */
struct stream_buffer {
    uint64_t rid, length;
    uint8_t *at;
    bool has_total;
    uint32_t total;
};

/* Octets [from, to) of the stream lie in a buffer. */
struct stream_place {
    uint64_t from, to, rid, buffer_offset;
    uint8_t *at;
};

/* The ranges behind `read_to` that lie in buffers, sorted by their place in the stream. */
struct stream_places {
    struct stream_place *place;
    uint32_t first, count;
};

struct rddp_stream {
    struct utcp tcp;
    struct rddp_stream_net *net;
    struct rddp_stream *next, *touched; /* lists: all of the net; those that this batch of packets was for */
    struct timer timer;
    bool accepted, is_touched; /* accepted: the application has it */
    uint16_t port;             /* the listening port that it came to, until it is accepted */
    void *room;                /* one mapping for all arrays below; the stream owns it */
    size_t room_octets;
    struct stream_piece *piece;
    uint32_t piece_head, pieces;
    struct tcpopt_map map;
    uint8_t *ring; /* kept octets at their positions */
    uint64_t ring_octets, read_to;
    struct stream_places places;
    struct stream_buffer *buffer, *offer; /* named ones, sorted by RID; offered ones, in the order of the calls */
    uint32_t buffers, offers;
    struct rddp_stream_counters count;
};

struct rddp_stream_net {
    struct loop loop;
    struct watch watch;
    struct timer timer; /* the host's */
    struct rddp_stream_net_attr attr;
    struct utcp_host host;
    struct utcp *bucket[STREAM_BUCKETS];
    struct utcp_half half[STREAM_HALVES];
    struct rddp_stream *streams, *touched;
    uint32_t stream_count;
    struct {
        uint16_t port;
        uint32_t backlog, waiting;
    } port[STREAM_PORTS];
    uint32_t ports;
    uint16_t next_port;
    uint64_t random; /* chooses the packets to lose on purpose */
    int fd;
    uint8_t packet[TUN_PACKET_MAX];
};

static inline const struct stream_piece *stream_piece_at(const struct rddp_stream *s, uint32_t i)
{
    return &s->piece[(s->piece_head + i) & (STREAM_PIECES - 1)];
}

/* stream_send.c */

/* Is this packet to be lost on purpose? */
bool stream_loses(struct rddp_stream_net *net);
void stream_send_packet(struct rddp_stream_net *net, const struct utcp_packet *p);

/* Sends all that the stream has to send, and sets its timer. */
void stream_pump(struct rddp_stream *s);

/* stream_read.c: what the TCP calls with each arrival. */
struct utcp_verdict stream_arrived(void *user, const struct utcp_arrival *a);

/* stream.c. NULL and *error: -ENOMEM, -EMFILE. */
struct rddp_stream *stream_new(struct rddp_stream_net *net, int *error);
extern const struct utcp_user stream_user;

#endif
