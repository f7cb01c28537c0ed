/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* io.h - the octets of one connection, both ways, over a stream of which marked parts lie in buffers. */
#ifndef RDDP_HTTP_IO_H
#define RDDP_HTTP_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/landing.h"
#include <rddp/stream.h>

enum {
    HTTP_SCRATCH = 65536, /* plain octets that are read at once */
    HTTP_RING = 524288,   /* octets written and not acknowledged, at first; a power of two */
    HTTP_RING_MAX = 1 << 24,
    HTTP_RINGS_MAX = 1 << 28, /* octets by which the rings of all connections may grow */
    HTTP_STEP = 65536,        /* octets of a file that are read at once */
};

/* The part of the stream that is next: `left` octets at `at`. */
struct http_in {
    struct rddp_stream *stream;
    uint8_t *scratch;
    const uint8_t *at;
    size_t left;
    bool placed; /* they lie in the buffer of the transfer `rid`; else in the scratch */
    uint64_t rid, octets;
};

/* Is there a part? Reads the next one if not. 1: there is; 0: not yet; -ENODATA: the peer has finished; or the error
 * of the stream. */
int http_in_look(struct http_in *in);
void http_in_took(struct http_in *in, size_t n);
/* Takes the buffer of `rid` back, which may go at once. Octets in it that were not taken are read again, as plain. */
void http_in_forget(struct http_in *in, uint64_t rid);
/* Puts the next `n` octets of the part where they belong in a file whose buffer `rid` names; they are taken by
 * http_in_took() then. 0 or a negative errno; -EAGAIN: look again, for the part is not what it was. */
int http_in_land(struct http_in *in, struct landing *landing, uint64_t rid, size_t n);

/* Octets in a ring until they are acknowledged. What was written before `from` lies in a smaller ring, which goes when
 * all of it is acknowledged. */
struct http_out {
    struct rddp_stream *stream;
    uint8_t *ring, *old;
    uint64_t ring_octets, written, from;
    uint64_t full_ns; /* since when the ring is full; 0: it is not */
};

/* Room for the next octets, at *at. 0: wait. */
size_t http_out_space(struct http_out *out, uint8_t **at);
/* Sends `n` octets that were put into that space. False: too many pieces wait, or the stream is over; nothing is sent.
 */
bool http_out_send(struct http_out *out, size_t n, unsigned flags, const struct rddp_stream_mark *mark);
/* Copies and sends plain octets; returns how many. A message begins with the first of them if `begins`. */
size_t http_out_text(struct http_out *out, const void *text, size_t n, bool begins);

enum { HTTP_FRAME_HEAD = 6, HTTP_FRAME_TAIL = 2, HTTP_FRAME_MAX = 8192 }; /* a chunk, its framing included */

/* One chunk on its way. All 0: none. */
struct http_frame {
    uint8_t octets[HTTP_FRAME_MAX]; /* data is put behind HTTP_FRAME_HEAD octets, and leaves two free at the end */
    size_t length, sent, data_to;
};

/* Frames `n` octets of data that lie there, as a chunk or as they are. Of no octets it is the last chunk, or nothing.
 */
void http_frame_make(struct http_frame *frame, size_t n, bool chunked);
/* Sends what fits; the data as the transfer `mark`, whose offset moves on. True: all of it. */
bool http_frame_send(struct http_frame *frame, struct http_out *out, struct rddp_stream_mark *mark);

/* False: out of memory. Close it all the same. */
bool http_io_open(struct http_in *in, struct http_out *out, struct rddp_stream *stream);
void http_io_close(struct http_in *in, struct http_out *out); /* and the stream */

#endif
