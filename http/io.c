/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* io.c - reads parts of a stream in their order, and keeps what is written until it is acknowledged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/io.h"

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

size_t http_out_space(const struct http_out *out, uint8_t **at)
{
    uint64_t used = rddp_stream_unacked(out->stream), place = out->written & (HTTP_RING - 1);
    *at = out->ring + place;
    uint64_t space = used < HTTP_RING ? HTTP_RING - used : 0;
    if (space < HTTP_STEP / 4) /* rather wait than cut small pieces */
        return 0;
    return space < HTTP_RING - place ? space : HTTP_RING - place;
}

bool http_out_send(struct http_out *out, size_t n, unsigned flags, const struct rddp_stream_mark *mark)
{
    if (rddp_stream_write(out->stream, out->ring + (out->written & (HTTP_RING - 1)), n, flags, mark))
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

void http_frame_make(struct http_frame *frame, size_t n)
{
    char head[HTTP_FRAME_HEAD + 1];
    snprintf(head, sizeof(head), "%04x\r\n", (unsigned)n & 0xffff);
    memcpy(frame->octets, head, HTTP_FRAME_HEAD);
    frame->data_to = HTTP_FRAME_HEAD + n;
    memcpy(frame->octets + frame->data_to, "\r\n", 2);
    frame->length = frame->data_to + 2;
    frame->sent = 0;
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
    *out = (struct http_out){.stream = stream, .ring = malloc(HTTP_RING)};
    return in->scratch && out->ring;
}

void http_io_close(struct http_in *in, struct http_out *out)
{
    rddp_stream_close(in->stream);
    free(in->scratch);
    free(out->ring);
}
