/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* response.c - writes an answer: its text, then a file or a listing as the transfer of the request's index. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http/http_conn.h"
#include "http/resource.h"

enum { STEPS = 4 };

void http_answer_keep(struct http_answer *answer, struct kept_sums *sums, const struct sockaddr_storage *peer)
{
    if (!answer->sum)
        return;
    kept_sums_put(sums, answer->fd, answer->tag, answer->sum, answer->summed, peer);
    answer->sum = NULL;
}

void http_answer_drop(struct http_answer *answer)
{
    if (answer->fd >= 0)
        close(answer->fd);
    answer->fd = -1;
    XXH3_freeState(answer->sum);
    answer->sum = NULL;
    http_listing_close(&answer->listing);
}

static struct rddp_stream_mark mark_of(uint32_t index, uint64_t at, uint64_t total)
{
    return (struct rddp_stream_mark){
        .rid = rddp_rid_http(index),
        .buffer_offset = (uint32_t)at,
        .total = (uint32_t)total,
        .has_total = total != 0,
    };
}

/* The octets up to answer->at have been read, the last `n` of them now. What an earlier answer has hashed counts once.
 */
static void sum_sent(struct http_answer *answer, const uint8_t *octets, size_t n)
{
    uint64_t fresh = answer->at > answer->summed ? answer->at - answer->summed : 0;
    if (!answer->sum || !fresh)
        return;
    XXH3_128bits_update(answer->sum, octets + n - fresh, (size_t)fresh);
    answer->summed = answer->at;
}

/* One step of a file. Octets behind the first 4 GiB have no place in a buffer that the option could name. */
static int write_step(struct http_answer *answer, struct http_out *out, uint32_t index)
{
    uint8_t *at;
    uint64_t left = answer->stop - answer->at, total = answer->end - answer->from;
    size_t space = http_out_space(out, &at), n = left < HTTP_STEP ? (size_t)left : HTTP_STEP;
    if (!space)
        return 0;
    ssize_t got = pread(answer->fd, at, n < space ? n : space, (off_t)answer->at);
    if (got <= 0)
        return -EIO;
    bool marked = total <= UINT32_MAX;
    struct rddp_stream_mark mark = mark_of(index, answer->at - answer->from, total);
    if (!http_out_send(out, (size_t)got, 0, marked ? &mark : NULL))
        return 0;
    answer->at += (uint64_t)got;
    sum_sent(answer, at, (size_t)got);
    return 1;
}

/* Writes up to where the next text is due. */
static int write_file(struct http_answer *answer, struct http_out *out, uint32_t index)
{
    int wrote = 1;
    for (int i = 0; i < STEPS && wrote > 0 && answer->at < answer->stop; i++)
        wrote = write_step(answer, out, index);
    return wrote < 0 ? wrote : answer->at == answer->stop;
}

/* Is the file what it was when the head was made? What was read while it changed is no version of it. */
static bool is_unchanged(const struct http_answer *answer)
{
    struct http_version version;
    struct stat st;
    if (fstat(answer->fd, &st))
        return false;
    http_source_version(&version, &st);
    return !strcmp(strchr(version.tag, '"'), strchr(answer->tag, '"')); /* a weak one becomes strong with time */
}

void http_answer_frame(struct http_answer *answer)
{
    char *to = answer->text + answer->length, digest[HTTP_DIGEST_TEXT];
    size_t space = sizeof(answer->text) - answer->length;
    uint64_t left = answer->end - answer->at;
    const char *before = answer->at > answer->from ? "\r\n" : "";
    XXH128_canonical_t value;
    if (left) {
        answer->stop = answer->at + (left < HTTP_CHUNK_OCTETS ? left : HTTP_CHUNK_OCTETS);
        answer->length += (size_t)snprintf(to, space, "%s%" PRIx64 "\r\n", before, answer->stop - answer->at);
        return;
    }
    XXH128_canonicalFromHash(&value, XXH3_128bits_digest(answer->sum));
    http_format_digest(digest, value.digest);
    if (is_unchanged(answer))
        answer->length += (size_t)snprintf(to, space, "%s0\r\nRepr-Digest: %s\r\n\r\n", before, digest);
    else
        answer->length += (size_t)snprintf(to, space, "%s0\r\n\r\n", before);
    answer->frame_is_last = true;
}

/* --- a listing ----------------------------------------------------------------------------------------------- */

/* Makes the next piece; the last one is of no octets. */
static void fill_frame(struct http_answer *answer)
{
    char *data = (char *)answer->frame.octets + HTTP_FRAME_HEAD;
    size_t n = http_listing_lines(&answer->listing, data, HTTP_FRAME_MAX - HTTP_FRAME_HEAD - HTTP_FRAME_TAIL);
    answer->frame_is_last = !n;
    http_frame_make(&answer->frame, n, answer->chunked);
}

/* How long the whole will be is not known: its marks have no total. */
static int write_names(struct http_answer *answer, struct http_out *out, uint32_t index)
{
    struct rddp_stream_mark mark = mark_of(index, answer->at, 0);
    bool sent;
    while ((sent = http_frame_send(&answer->frame, out, &mark)) && !answer->frame_is_last)
        fill_frame(answer);
    answer->at = mark.buffer_offset;
    return sent;
}

int http_answer_write(struct http_answer *answer, struct http_out *out, uint32_t index)
{
    bool begins = !answer->sent && answer->at == answer->from;
    if (answer->sent < answer->length)
        answer->sent += http_out_text(out, answer->text + answer->sent, answer->length - answer->sent, begins);
    if (answer->sent < answer->length)
        return 0;
    if (answer->fd < 0)
        return answer->listing.names ? write_names(answer, out, index) : 1;
    int wrote = write_file(answer, out, index);
    if (wrote <= 0 || !answer->sum || answer->frame_is_last)
        return wrote;
    answer->length = answer->sent = 0;
    http_answer_frame(answer);
    return 0;
}
