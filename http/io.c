/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* io.c - reads parts of a stream in their order, and keeps what is written until it is acknowledged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http/io.h"

#define RING_WAIT_NS 300000

int http_in_look(struct http_in *in)
{
    struct rddp_stream_record record;
    if (in->left)
        return 1;
    int got = rddp_stream_read(in->stream, in->scratch, HTTP_SCRATCH, &record);
    if (got <= 0)
        return got;
    if (record.kind == RDDP_STREAM_FINISH)
        return -ENODATA;
    in->placed = record.kind == RDDP_STREAM_PLACED;
    in->at = in->placed ? record.at : in->scratch;
    in->rid = record.rid;
    in->left = record.length;
    in->octets += record.length;
    return 1;
}

void http_in_took(struct http_in *in, size_t n)
{
    in->at += n;
    in->left -= n;
}

void http_in_forget(struct http_in *in, uint64_t rid)
{
    if (in->placed && in->left && !rddp_stream_unread(in->stream, in->left)) {
        in->octets -= in->left;
        in->left = 0;
    }
    (void)rddp_stream_forget(in->stream, rid);
}

int http_in_land(struct http_in *in, struct landing *landing, uint64_t rid, size_t n)
{
    /* A plain octet is written to the file, behind the back of the stream, which has to know. If a peer has marked
     * other octets for that place already, the file gets all that follows as plain octets. */
    if (landing->lands && !landing_has(landing, in->at, n, in->placed) &&
        rddp_stream_fill(in->stream, rid, landing->position - landing->start, n)) {
        landing->lands = false;
        http_in_forget(in, rid);
        return -EAGAIN;
    }
    return landing_take(landing, in->at, n, in->placed);
}

static uint64_t grown; /* octets by which rings have grown; one thread has all connections */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* A ring that stays full while everything in it is sent is what limits the connection: a larger one takes its place. A
 * short round trip is over before it would help. */
static void grow_ring(struct http_out *out)
{
    uint64_t octets = 2 * out->ring_octets;
    bool waits = !out->old && !rddp_stream_unsent(out->stream);
    if (!waits || !out->full_ns) {
        out->full_ns = waits ? now_ns() : 0;
        return;
    }
    if (octets > HTTP_RING_MAX || octets - out->ring_octets > HTTP_RINGS_MAX - grown ||
        now_ns() - out->full_ns < RING_WAIT_NS)
        return;
    uint8_t *ring = malloc(octets);
    if (!ring)
        return;
    grown += octets - out->ring_octets;
    out->old = out->ring;
    out->ring = ring;
    out->ring_octets = octets;
    out->from = out->written;
    out->full_ns = 0;
}

size_t http_out_space(struct http_out *out, uint8_t **at)
{
    uint64_t acked = out->written - rddp_stream_unacked(out->stream);
    if (out->old && acked >= out->from) {
        free(out->old);
        out->old = NULL;
    }
    uint64_t used = out->written - (acked > out->from ? acked : out->from);
    if (out->ring_octets - used < HTTP_STEP / 4) { /* rather wait than cut small pieces */
        grow_ring(out);
        used = out->from == out->written ? 0 : used;
    } else {
        out->full_ns = 0;
    }
    uint64_t place = (out->written - out->from) & (out->ring_octets - 1), space = out->ring_octets - used;
    *at = out->ring + place;
    if (space < HTTP_STEP / 4)
        return 0;
    return space < out->ring_octets - place ? space : out->ring_octets - place;
}

bool http_out_send(struct http_out *out, size_t n, unsigned flags, const struct rddp_stream_mark *mark)
{
    uint64_t place = (out->written - out->from) & (out->ring_octets - 1);
    if (rddp_stream_write(out->stream, out->ring + place, n, flags, mark))
        return false;
    out->written += n;
    return true;
}

size_t http_out_text(struct http_out *out, const void *text, size_t n, bool begins)
{
    size_t sent = 0;
    while (sent < n) {
        uint8_t *at;
        size_t space = http_out_space(out, &at), part = n - sent < space ? n - sent : space;
        if (part)
            memcpy(at, (const uint8_t *)text + sent, part);
        if (!part || !http_out_send(out, part, begins && !sent ? RDDP_STREAM_MESSAGE : 0, NULL))
            break;
        sent += part;
    }
    return sent;
}

void http_frame_make(struct http_frame *frame, size_t n, bool chunked)
{
    char head[HTTP_FRAME_HEAD + 1];
    snprintf(head, sizeof(head), "%04x\r\n", (unsigned)n & 0xffff);
    memcpy(frame->octets, head, HTTP_FRAME_HEAD);
    frame->data_to = HTTP_FRAME_HEAD + n;
    memcpy(frame->octets + frame->data_to, "\r\n", HTTP_FRAME_TAIL);
    frame->length = frame->data_to + (chunked ? HTTP_FRAME_TAIL : 0);
    frame->sent = chunked ? 0 : HTTP_FRAME_HEAD;
}

bool http_frame_send(struct http_frame *frame, struct http_out *out, struct rddp_stream_mark *mark)
{
    while (frame->sent < frame->length) {
        uint8_t *at;
        size_t to = frame->sent < HTTP_FRAME_HEAD  ? HTTP_FRAME_HEAD
                    : frame->sent < frame->data_to ? frame->data_to
                                                   : frame->length;
        size_t space = http_out_space(out, &at), n = to - frame->sent < space ? to - frame->sent : space;
        bool data = to == frame->data_to && frame->sent >= HTTP_FRAME_HEAD;
        if (!n)
            return false;
        memcpy(at, frame->octets + frame->sent, n);
        if (!http_out_send(out, n, 0, data ? mark : NULL))
            return false;
        frame->sent += n;
        mark->buffer_offset += data ? (uint32_t)n : 0;
    }
    return true;
}

bool http_io_open(struct http_in *in, struct http_out *out, struct rddp_stream *stream)
{
    *in = (struct http_in){.stream = stream, .scratch = malloc(HTTP_SCRATCH)};
    *out = (struct http_out){.stream = stream, .ring = malloc(HTTP_RING), .ring_octets = HTTP_RING};
    return in->scratch && out->ring;
}

void http_io_close(struct http_in *in, struct http_out *out)
{
    rddp_stream_close(in->stream);
    free(in->scratch);
    if (out->ring)
        grown -= out->ring_octets - HTTP_RING;
    free(out->ring);
    free(out->old);
}
