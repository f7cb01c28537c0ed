/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.h - what the files of the stream share: a net drives its streams, a stream keeps what its reader has not read.
 */
#ifndef RDDP_API_STREAM_H
#define RDDP_API_STREAM_H

#include <rddp/stream.h>

#include "net/loop.h"
#include "net/tun.h"
#include "utcp/host.h"
#include "wire/tcpopt_map.h"

enum {
    STREAM_PORTS = 16,
    STREAM_PIECES = 1024, /* written and not acknowledged; a power of two */
    STREAM_BUFFERS = 1024,
    STREAM_OFFERS = 64,
    STREAM_PLACES = 8192, /* placed and not read; behind that octets are kept */
    STREAM_SENTS = 16384,
    STREAM_BATCH = 64,
    STREAM_BUCKETS = 1024,
    STREAM_HALVES = 1024,
    STREAM_CHANCES = 100000, /* of which `lose` are lost */
};

/* A piece that was written: where it begins in the stream. */
struct stream_piece {
    uint64_t from;
    const uint8_t *at;
    uint64_t length;
};

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

/* What lies behind `read_to` in buffers, sorted by its place in the stream. */
struct stream_places {
    struct stream_place *place;
    uint32_t first, count;
};

struct rddp_stream {
    struct utcp tcp;
    struct rddp_stream_net *net;
    struct rddp_stream *next, *touched; /* of the net; of those that a batch of packets was for */
    struct timer timer;
    bool accepted, is_touched; /* accepted: the application has it */
    uint16_t port;             /* that it came to, until it is accepted */
    void *room;
    size_t room_octets;
    struct stream_piece *piece;
    uint32_t piece_head, pieces;
    struct tcpopt_map map;
    uint8_t *ring; /* kept octets at their positions */
    uint64_t ring_octets, read_to;
    struct stream_places places;
    struct stream_buffer *buffer, *offer; /* sorted by RID; as they were given */
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
    uint64_t random; /* of packets that are lost on purpose */
    int fd;
    uint8_t packet[TUN_PACKET_MAX];
};

static inline const struct stream_piece *stream_piece_at(const struct rddp_stream *s, uint32_t i)
{
    return &s->piece[(s->piece_head + i) & (STREAM_PIECES - 1)];
}

/* stream_send.c. Is this packet to be lost on purpose? One that leaves; all that a stream has to say, and its timer. */
bool stream_loses(struct rddp_stream_net *net);
void stream_send_packet(struct rddp_stream_net *net, const struct utcp_packet *p);
void stream_pump(struct rddp_stream *s);

/* stream_read.c */
struct utcp_verdict stream_arrived(void *user, const struct utcp_arrival *a);

/* stream.c */
struct rddp_stream *stream_new(struct rddp_stream_net *net, int *error);
extern const struct utcp_user stream_user;

#endif
