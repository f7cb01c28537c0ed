/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_send.c - the client's requests: which is next, its head, and the body of a PUT. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http/http_client.h"

/* MAP_SMALL: a shorter file is not worth a map. MAP_GUESS: for one whose length is unknown. */
enum { MAP_SMALL = 4096, MAP_GUESS = 1048576 };

static struct http_job *next_job(const struct http_client *client)
{
    struct http_job *new = NULL;
    for (size_t i = client->first; i < client->jobs; i++) {
        struct http_job *job = &client->job[i];
        if (job->state == HTTP_JOB_SIZED)
            return job;
        if (job->state == HTTP_JOB_NEW && !new)
            new = job;
        if (i - client->first > 2 * HTTP_DEPTH_MAX)
            break;
    }
    return new;
}

/* Goes on with a part that was kept, or begins. */
static int open_part(struct http_client *client, struct http_job *job, uint64_t space)
{
    struct landing *landing = &job->landing;
    for (bool part = job->part[0];; part = false) {
        int parent = fcntl(client->directory, F_DUPFD_CLOEXEC, 0);
        if (parent < 0)
            return -errno;
        if (!part)
            return landing_open(landing, parent, job->name, space, space);
        if (!landing_resume(landing, parent, job->name, job->part, space)) {
            if (landing->start && landing->start < job->size)
                return 0;
            landing_drop(landing);
        }
    }
}

/* The file is mapped, and its buffer named, before the GET leaves: nothing of the answer can come too early. */
static int expect_file(struct http_client *client, struct http_job *job)
{
    struct landing *landing = &job->landing;
    uint64_t space = job->size == UINT64_MAX ? MAP_GUESS : job->size;
    bool maps = rddp_stream_has_option(client->in.stream) && space >= MAP_SMALL && space <= UINT32_MAX;
    int error = open_part(client, job, maps ? space : 0);
    if (!error && landing->map)
        error = rddp_stream_expect(client->in.stream, rddp_rid_http(client->index), landing->map + landing->start,
                                   landing->mapped - landing->start);
    landing->lands = !error && landing->map;
    if (error)
        landing_drop(landing);
    return error;
}

static void put_head(struct http_client *client, struct http_job *job, enum http_method method)
{
    static const char *const names[] = {[HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD", [HTTP_PUT] = "PUT"};
    struct http_sending *sending = &client->sending;
    char length[SMALL_TEXT * 2 + HTTP_TAG_MAX] = "";
    const char *digest = "";
    /* Where octets are placed, and where some lie here already; else they come in their order, and TCP's checksum is
     * what there is. */
    if (method != HTTP_HEAD && (rddp_stream_has_option(client->in.stream) || job->landing.start))
        digest = method == HTTP_PUT ? "Want-Repr-Digest: xxh3-128=10\r\n"
                                    : "Want-Repr-Digest: xxh3-128=10\r\nTE: trailers\r\nConnection: TE\r\n";
    if (method == HTTP_PUT && !job->sum)
        job->sum = XXH3_createState();
    if (job->sum)
        XXH3_128bits_reset(job->sum);
    if (method == HTTP_GET && job->landing.start)
        snprintf(length, sizeof(length), "Range: bytes=%" PRIu64 "-\r\nIf-Range: %s\r\n", job->landing.start, job->tag);
    else if (method == HTTP_PUT && job->chunked)
        strcpy(length, "Transfer-Encoding: chunked\r\n");
    else if (method == HTTP_PUT)
        snprintf(length, sizeof(length), "Content-Length: %" PRIu64 "\r\n", job->size);
    sending->length = (size_t)snprintf(sending->text, sizeof(sending->text),
                                       "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: rddp\r\n%s%s\r\n", names[method],
                                       job->target, client->authority, length, digest);
    sending->sent = 0;
    sending->job = method == HTTP_PUT ? job : NULL;
    sending->at = 0;
    sending->frame.length = sending->frame.sent = 0;
    sending->is_last = false;
    sending->index = client->index;
}

/* Begins the next request. False: there is none, or too many answers are due. */
static bool begin_request(struct http_client *client)
{
    size_t depth = client->deep ? client->options->depth : 1;
    struct http_job *job = client->flights < depth && !client->leaves ? next_job(client) : NULL;
    if (!job)
        return false;
    enum http_method method = job->put ? HTTP_PUT : HTTP_GET;
    /* The length is asked for only where octets are placed; the version, where there may be a part of it. */
    bool asks = rddp_stream_has_option(client->in.stream) || client->has_parts || job->tries;
    if (!job->put && job->state == HTTP_JOB_NEW && asks)
        method = HTTP_HEAD;
    int error = method == HTTP_GET ? expect_file(client, job) : 0;
    if (error) {
        http_job_fail(client, job, EXIT_FAILED, error_text(error));
        return true;
    }
    put_head(client, job, method);
    job->state = method == HTTP_HEAD ? HTTP_JOB_ASKED : HTTP_JOB_SENT;
    job->end = UINT64_MAX;
    client->flight[(client->flight_first + client->flights++) % HTTP_DEPTH_MAX] =
        (struct http_flight){job, method, client->index++};
    return true;
}

static struct rddp_stream_mark body_mark(const struct http_client *client)
{
    const struct http_sending *sending = &client->sending;
    return (struct rddp_stream_mark){
        .rid = rddp_rid_http(sending->index),
        .buffer_offset = (uint32_t)sending->at,
        .total = sending->job->chunked ? 0 : (uint32_t)sending->job->size,
        .has_total = !sending->job->chunked,
        .unsolicited = true, /* the server has not asked for it */
    };
}

/* The file is not what it was, or cannot be read: the server must not take what is there for all of it. */
static bool break_off(struct http_client *client, const char *why)
{
    struct http_job *job = client->sending.job;
    client->sending.job = NULL;
    client->leaves = true;
    http_job_fail(client, job, EXIT_FAILED, why);
    rddp_stream_finish(client->out.stream);
    return true;
}

static bool end_body(struct http_client *client)
{
    client->sending.job->end = client->out.written;
    client->sending.job = NULL;
    return true;
}

static bool send_body_octets(struct http_client *client)
{
    struct http_sending *sending = &client->sending;
    struct http_job *job = sending->job;
    uint8_t *at;
    uint64_t left = job->size - sending->at;
    size_t space = http_out_space(&client->out, &at), n = left < HTTP_STEP ? (size_t)left : HTTP_STEP;
    if (!left)
        return end_body(client);
    if (!space)
        return false;
    ssize_t got = pread(job->fd, at, n < space ? n : space, (off_t)sending->at);
    if (got <= 0)
        return break_off(client, got ? error_text(errno) : "became shorter while it was read");
    struct rddp_stream_mark mark = body_mark(client);
    if (!http_out_send(&client->out, (size_t)got, 0, job->size <= UINT32_MAX ? &mark : NULL))
        return false;
    sending->at += (uint64_t)got;
    if (job->sum)
        XXH3_128bits_update(job->sum, at, (size_t)got);
    return true;
}

static bool send_body_chunks(struct http_client *client)
{
    struct http_sending *sending = &client->sending;
    struct http_frame *frame = &sending->frame;
    struct rddp_stream_mark mark = body_mark(client);
    size_t before = frame->sent;
    bool whole = http_frame_send(frame, &client->out, &mark);
    sending->at = mark.buffer_offset;
    if (!whole)
        return frame->sent != before;
    if (sending->is_last) {
        sending->job->size = sending->at;
        return end_body(client);
    }
    struct pollfd ready = {.fd = sending->job->fd, .events = POLLIN};
    if (poll(&ready, 1, 0) <= 0)
        return false;
    ssize_t got =
        read(sending->job->fd, frame->octets + HTTP_FRAME_HEAD, HTTP_FRAME_MAX - HTTP_FRAME_HEAD - HTTP_FRAME_TAIL);
    if (got < 0)
        return break_off(client, error_text(errno));
    sending->is_last = !got;
    if (sending->job->sum)
        XXH3_128bits_update(sending->job->sum, frame->octets + HTTP_FRAME_HEAD, (size_t)got);
    http_frame_make(frame, (size_t)got, true);
    return true;
}

bool http_client_send(struct http_client *client)
{
    struct http_sending *sending = &client->sending;
    if (sending->sent < sending->length) {
        size_t sent =
            http_out_text(&client->out, sending->text + sending->sent, sending->length - sending->sent, !sending->sent);
        sending->sent += sent;
        return sent;
    }
    if (sending->job)
        return sending->job->chunked ? send_body_chunks(client) : send_body_octets(client);
    return begin_request(client);
}
