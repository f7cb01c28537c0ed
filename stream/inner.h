/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inner.h - what the files of marked streams share: a net drives its streams, and a stream keeps what its reader has
 * not read. One thread at a time uses a net and its streams: there is no lock. */
#ifndef RDDP_STREAM_INNER_H
#define RDDP_STREAM_INNER_H

#include <sys/uio.h>

#include <string.h>

#include <rddp/stream.h>

#include "loop/reactor.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"
#include "tcp/host.h"
#include "wire/tcpopt.h"
#include "wire/tcpopt_map.h"

enum {
    STREAM_PORTS = 16,
    STREAM_PIECES = 1024, /* pieces written and not acknowledged; a power of two */
    STREAM_BUFFERS = 1024,
    STREAM_OFFERS = 64,
    STREAM_PLACES = 8192, /* ranges placed and not read; when they run out octets are kept instead */
    STREAM_FILLS = 8192,  /* ranges of buffers that are taken; the same */
    STREAM_MARKS = 1024,  /* beginnings of messages behind a gap */
    STREAM_TAKENS = 1024, /* ranges that were read before their turn */
    STREAM_SENTS = 16384,
    STREAM_BATCH = 64, /* packets that are read before anything else is done */
    STREAM_BATCH_OCTETS = 1 << 18,
    STREAM_BUCKETS = 1024,
    STREAM_HALVES = 1024,
    STREAM_GROWN_MAX = 1 << 29, /* octets by which all rings of a net may grow */
    STREAM_CHANCES = 100000,    /* of which `lose` are lost */
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

/* How the segment that came last goes on: its successor's place in the stream, and its data's in a buffer. */
struct stream_ahead {
    uint64_t position, rid, offset;
    uint32_t head, lead; /* octets of headers; octets before the data in the first segment of a transfer */
};

/* What was guessed about the next packet: `length` of its octets from `hole` on do not lie there but at `at`. */
struct stream_guess {
    struct rddp_stream *stream, *recent; /* whose it should be, or NULL; whose the last segment with data was */
    uint8_t *hole, *at;
    uint32_t heads, space, length;
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

/* Octets [from, to) of the buffer of `rid` are taken: nothing is placed there any more. */
struct stream_fill {
    uint64_t rid, from, to;
};

/* Sorted by buffer and offset; neighbours do not touch. */
struct stream_fills {
    struct stream_fill *row;
    uint32_t count;
};

/* The record that was read last, as long as it can go back. `at` NULL: its octets are still in the ring. */
struct stream_last {
    const uint8_t *at;
    uint64_t rid, length;
};

/* Octets [from, to) of the stream were read before their turn; `plain` of them wait in the ring. */
struct stream_taken {
    uint64_t from, to, plain;
};

/* Messages behind a gap: sorted, where they begin, and what was read of them. Octets [at, end) are the rest of one. */
struct stream_early {
    uint64_t mark[STREAM_MARKS];
    uint32_t marks, takens;
    struct stream_taken taken[STREAM_TAKENS];
    uint64_t at, end;
};

struct rddp_stream {
    struct utcp tcp;
    struct rddp_stream_net *net;
    struct rddp_stream *next, *touched; /* lists: all of the net; those that this batch of packets was for */
    struct timer timer;
    bool accepted, is_touched; /* accepted: the application has it */
    uint16_t port;             /* the listening port that it came to, until it is accepted */
    void *memory;              /* one mapping for all arrays below; the stream owns it */
    size_t memory_octets;
    struct stream_piece *piece;
    uint32_t piece_head, pieces;
    struct tcpopt_map map;
    uint8_t *ring; /* kept octets at their positions */
    uint64_t ring_octets, read_to;
    uint64_t ring_first; /* the octets of the ring before it grew; 0: it has not */
    struct stream_places places;
    struct stream_fills fills;
    struct stream_last last;
    struct stream_buffer *buffer, *offer; /* named ones, sorted by RID; offered ones, in the order of the calls */
    uint32_t buffers, offers;
    struct stream_ahead ahead;
    struct stream_early early;
    struct rddp_stream_counters count;
};

struct rddp_stream_net {
    struct reactor reactor;
    struct watch watch;
    struct timer timer; /* the host's */
    struct rddp_stream_net_attr attr;
    struct utcp_host host;
    struct utcp *bucket[STREAM_BUCKETS];
    struct utcp_half half[STREAM_HALVES];
    struct rddp_stream *streams, *touched;
    uint32_t stream_count;
    uint64_t grown; /* octets by which rings have grown */
    struct {
        uint16_t port;
        uint32_t backlog, waiting;
    } port[STREAM_PORTS];
    uint32_t ports;
    uint16_t next_port;
    uint64_t random;                    /* chooses the packets to lose on purpose */
    int fd, joined;                     /* the device; for descriptors_part() */
    struct tun_before before;           /* how the device was */
    uint32_t linger_vain, linger_skips; /* looks without sleeping: in vain since the last success; not done next */
    uint32_t batch;                     /* packets that the last look found */
    uint64_t empty_us;                  /* when the device had none */
    bool is_watched, stays_watched;     /* by the loop; always, because the application has its descriptor */
    bool is_gone;                       /* the device was removed, or the program has closed its descriptor */
    struct stream_guess guess;
    uint8_t packet[TUN_PACKET_MAX];
};

static inline const struct stream_piece *stream_piece_at(const struct rddp_stream *s, uint32_t i)
{
    return &s->piece[(s->piece_head + i) & (STREAM_PIECES - 1)];
}

/* stream_net.c. stream_net_check() lets all streams fail if the program has closed the descriptors.
 * stream_net_receive() reads and processes a batch of packets. stream_net_watch() makes packets wake the
 * loop; it returns 0, or an errno of reactor_watch(). */
bool stream_net_check(struct rddp_stream_net *net);
void stream_net_receive(struct rddp_stream_net *net);
int stream_net_watch(struct rddp_stream_net *net);

/* stream_ring.c. Maps the ring; false: out of memory. Unmaps it. Makes it larger if the window has grown, and memory is
 * left for it; else the limit of the window stays where the ring has it. */
bool stream_ring_open(struct rddp_stream *s);
void stream_ring_close(struct rddp_stream *s);
void stream_ring_grow(struct rddp_stream *s);

/* stream_send.c */

/* Is this packet to be lost on purpose? */
bool stream_loses(struct rddp_stream_net *net);
/* Sends a packet, which the device cuts into segments of `each` octets if it is longer. */
void stream_send_packet(struct rddp_stream_net *net, const struct utcp_packet *p, uint32_t each);

/* Sends all that the stream has to send, and sets its timer. */
void stream_pump(struct rddp_stream *s);

/* The octets of a buffer that its transfer may fill. */
static inline uint64_t stream_buffer_end(const struct stream_buffer *b)
{
    return b->has_total && b->total < b->length ? b->total : b->length;
}

/* Returns the index of `rid` among the buffers, or where it would be inserted. */
static inline uint32_t stream_find_buffer(const struct rddp_stream *s, uint64_t rid, bool *there)
{
    uint32_t low = 0, high = s->buffers;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (s->buffer[middle].rid < rid)
            low = middle + 1;
        else
            high = middle;
    }
    *there = low < s->buffers && s->buffer[low].rid == rid;
    return low;
}

/* stream_read.c: what the TCP calls with each arrival. */
struct utcp_verdict stream_arrived(void *user, const struct utcp_arrival *a);

/* Copies kept octets from `position` on. */
static inline void stream_read_ring(struct rddp_stream *s, uint64_t position, uint8_t *to, uint64_t length)
{
    uint64_t at = position & (s->ring_octets - 1), first = s->ring_octets - at;

    if (first > length)
        first = length;
    memcpy(to, s->ring + at, first);
    memcpy(to + first, s->ring, length - first);
    s->count.octets_copied += length;
}

/* Keeps octets at their positions. */
static inline void stream_write_ring(struct rddp_stream *s, uint64_t position, const uint8_t *from, uint64_t length)
{
    uint64_t at = position & (s->ring_octets - 1), first = s->ring_octets - at;

    if (first > length)
        first = length;
    memcpy(s->ring + at, from, first);
    memcpy(s->ring, from + first, length - first);
    s->count.octets_copied += length;
}

/* stream_fill.c. Returns how many octets from `offset` on are not taken; without an end if the buffer has no range
 * behind. */
uint64_t stream_fill_space(const struct stream_fills *f, uint64_t rid, uint64_t offset);
/* Takes a range that is free. The caller knows that there are fewer than STREAM_FILLS. */
void stream_fill_add(struct stream_fills *f, uint64_t rid, uint64_t from, uint64_t to);
void stream_fill_drop(struct stream_fills *f, uint64_t rid);

/* stream_early.c. stream_early_note(): a segment behind a gap begins a message at `position`. stream_early_skip() moves
 * the reader over what was read before its turn, and returns where the next such octets begin. */
void stream_early_note(struct rddp_stream *s, uint64_t position);
uint64_t stream_early_skip(struct rddp_stream *s);

/* stream_guess.c. Where to read the next packet to; what was read, and whether its checksum is known to be right. */
uint32_t stream_guess(struct rddp_stream_net *net, struct iovec piece[3]);
void stream_guess_read(struct rddp_stream_net *net, size_t octets, bool checked);
/* Do these octets of the packet lie at `to` already? Makes sure that they lie in the packet. */
bool stream_guess_was_right(const struct rddp_stream_net *net, const uint8_t *from, uint64_t length, const uint8_t *to);
void stream_guess_undo(struct rddp_stream_net *net, const uint8_t *from, uint64_t length);
/* This arrived; `o` says what of it was placed, NULL: nothing. */
void stream_guess_next(struct rddp_stream *s, const struct utcp_arrival *a, const struct tcpopt *o);

/* stream.c. NULL and *error: -ENOMEM, -EMFILE. */
struct rddp_stream *stream_new(struct rddp_stream_net *net, int *error);

#endif
