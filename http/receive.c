/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - the answers to the client's requests, in their order. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "http/http_client.h"

static int no_http(struct http_client *client, const char *why)
{
    client->code = fail(EXIT_PROTOCOL, "%s: %s", client->server.text, why);
    return -EPROTO;
}

static struct http_flight *first_flight(struct http_client *client)
{
    return &client->flight[client->flight_first];
}

static bool is_version(const struct http_head *head, const struct http_job *job)
{
    return head->tag.at && head->tag.n == strlen(job->tag) && !memcmp(head->tag.at, job->tag, head->tag.n);
}

/* 206: exactly the rest of the file that was asked for. */
static bool is_rest(const struct http_head *head, const struct http_job *job)
{
    const struct http_content_range *content = &head->content;
    return head->status == 206 && job->landing.start && content->first == job->landing.start &&
           content->length == job->size - content->first && content->total == job->size && is_version(head, job) &&
           (head->body != HTTP_BODY_LENGTH || head->length == content->length);
}

static bool is_success(const struct http_head *head, const struct http_job *job)
{
    if (job->put)
        return head->status == 200 || head->status == 201 || head->status == 204;
    return head->status == 200 || is_rest(head, job);
}

static bool is_wanted(const struct http_client *client, const struct http_flight *flight)
{
    return flight->method == HTTP_GET && is_success(&client->answering.head, flight->job) &&
           flight->job->landing.fd >= 0;
}

/* --- an answer is over --------------------------------------------------------------------------------------- */

/* A part of this version of the file has a name of its own: what is found under it can be gone on with. */
static void name_part(struct http_client *client, struct http_job *job)
{
    struct http_words tag = client->answering.head.tag;
    job->tag[0] = job->part[0] = 0;
    if (!http_tag_is_strong(tag) || job->size == UINT64_MAX || job->size <= HTTP_PART_MIN)
        return;
    memcpy(job->tag, tag.at, tag.n);
    job->tag[tag.n] = 0;
    XXH64_hash_t hash = XXH3_64bits_withSeed(client->authority, strlen(client->authority),
                                             XXH3_64bits(job->target, strlen(job->target)));
    hash = XXH3_64bits_withSeed(job->tag, tag.n, hash);
    temp_name(job->part, job->name, &(struct path_stamp){job->size, (int64_t)hash, 0});
}

static void end_head(struct http_client *client, struct http_job *job)
{
    const struct http_head *head = &client->answering.head;
    char why[SMALL_TEXT * 2];
    if (head->status == 200 || head->status == 405 || head->status == 501) {
        job->size = head->status == 200 ? head->length : UINT64_MAX;
        job->state = HTTP_JOB_SIZED;
        name_part(client, job);
        return;
    }
    snprintf(why, sizeof(why), "%d %s", head->status, http_phrase(head->status));
    http_job_fail(client, job, EXIT_FAILED, why);
}

/* A PUT has succeeded only if the server has all octets of the file when it says so; a GET only if as many came as a
 * HEAD announced, where the end of the connection alone ends the body. Returns what is wrong, or NULL. */
static const char *what_is_missing(const struct http_client *client, const struct http_job *job)
{
    uint64_t taken = client->out.written - rddp_stream_unacked(client->out.stream);
    if (job->put)
        return job->end > taken ? "the server answered before it had the file" : NULL;
    const struct http_head *head = &client->answering.head;
    bool told = job->size != UINT64_MAX && (head->body == HTTP_BODY_TO_END || head->status == 206);
    return told && job->landing.position != job->size ? "the connection ended within the file" : NULL;
}

/* The digest of what was sent, or of the file as it is now. 0 or a negative errno. */
static int own_digest(const struct http_job *job, uint8_t value[HTTP_DIGEST])
{
    XXH128_canonical_t canonical;
    if (!job->put)
        return landing_digest(&job->landing, value);
    if (!job->sum)
        return -ENOMEM;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(job->sum));
    memcpy(value, canonical.digest, HTTP_DIGEST);
    return 0;
}

/* Compares the file with the digests that the server gave in its head and behind the body: one that differs counts. */
static enum http_digest_match match_file(const struct http_answering *answering, const struct http_job *job)
{
    struct http_words given[] = {answering->head.digest, {0}};
    enum http_digest_match match = HTTP_DIGEST_NONE;
    char text[HTTP_DIGEST_TEXT] = "";
    uint8_t value[HTTP_DIGEST];
    if (answering->head.body == HTTP_BODY_CHUNKED)
        given[1] = http_chunk_digest(&answering->chunk);
    if ((http_has_digest(given[0]) || http_has_digest(given[1])) && !own_digest(job, value))
        http_format_digest(text, value);
    for (int i = 0; i < 2 && match != HTTP_DIGEST_OTHER; i++) {
        enum http_digest_match one = http_match_digest(given[i], text);
        match = one == HTTP_DIGEST_NONE ? match : one;
    }
    return match;
}

static void end_job(struct http_client *client, struct http_job *job)
{
    int status = client->answering.head.status;
    uint64_t octets = job->put ? job->size : job->landing.position;
    char text[SMALL_TEXT * 2];
    snprintf(text, sizeof(text), "%d %s", status, http_phrase(status));
    const char *why = is_success(&client->answering.head, job) ? what_is_missing(client, job) : text;
    enum http_digest_match match = why ? HTTP_DIGEST_NONE : match_file(&client->answering, job);
    if (match == HTTP_DIGEST_OTHER) {
        landing_drop(&job->landing);
        http_job_fail(client, job, EXIT_FAILED,
                      job->put             ? "the server has other octets than were sent"
                      : job->landing.start ? "the server's file is another one: what was kept of it is removed"
                                           : "other octets came than the server has sent");
        return;
    }
    if (why) {
        http_job_part(client, job);
        http_job_fail(client, job, EXIT_FAILED, why);
        return;
    }
    int error = job->put ? 0 : landing_finish(&job->landing, client->options->sync ? LANDING_SYNC : 0);
    if (error)
        http_job_fail(client, job, EXIT_FAILED, error_text(error));
    else
        http_job_done(client, job, octets, match == HTTP_DIGEST_SAME);
}

static void end_answer(struct http_client *client)
{
    struct http_flight flight = *first_flight(client);
    struct http_answering *answering = &client->answering;
    http_in_forget(&client->in, rddp_rid_http(flight.index));
    client->flight_first = (client->flight_first + 1) % HTTP_DEPTH_MAX;
    client->flights--;
    client->answers++;
    client->leaves |= !answering->head.stays;
    client->deep |= answering->head.stays && !answering->head.is_1_0;
    if (flight.job->state == HTTP_JOB_FAILED)
        landing_drop(&flight.job->landing);
    else if (flight.method == HTTP_HEAD)
        end_head(client, flight.job);
    else
        end_job(client, flight.job);
    answering->in_body = false;
    answering->have = answering->scanned = 0;
}

/* --- an answer comes ----------------------------------------------------------------------------------------- */

/* A whole file comes, perhaps of another version than the HEAD told of. If the rest of one was asked for, it has
 * changed, or the server knows no ranges. */
static void restart_file(struct http_client *client, const struct http_flight *flight)
{
    struct http_job *job = flight->job;
    const struct http_head *head = &client->answering.head;
    if (flight->method != HTTP_GET || head->status != 200)
        return;
    job->part[0] = 0;
    if (head->body == HTTP_BODY_LENGTH)
        job->size = head->length;
    if (head->body == HTTP_BODY_LENGTH || is_version(head, job))
        name_part(client, job);
    if (!job->landing.start)
        return;
    http_in_forget(&client->in, rddp_rid_http(flight->index));
    int error = landing_restart(&job->landing);
    if (error)
        http_job_fail(client, job, EXIT_FAILED, error_text(error));
}

static int take_answer_head(struct http_client *client)
{
    struct http_answering *answering = &client->answering;
    size_t space = HTTP_HEAD_MAX - answering->have, n = client->in.left < space ? client->in.left : space;
    if (!client->flights)
        return no_http(client, "an answer without a request");
    memcpy(answering->octets + answering->have, client->in.at, n);
    size_t end = http_head_end(answering->octets, answering->have + n, &answering->scanned);
    if (end)
        n = end - answering->have;
    http_in_took(&client->in, n);
    answering->have += n;
    if (!end)
        return answering->have < HTTP_HEAD_MAX ? 1 : no_http(client, "too long a head");
    if (!http_parse_response(&answering->head, first_flight(client)->method, answering->octets, end))
        return no_http(client, answering->head.why);
    if (answering->head.status == 101)
        return no_http(client, "a switch of protocols without a request for it");
    if (answering->head.status < 200) {
        answering->have = answering->scanned = 0;
        return ++answering->interim <= HTTP_INTERIM_MAX ? 1 : no_http(client, "interim answers without end");
    }
    answering->interim = 0;
    restart_file(client, first_flight(client));
    answering->in_body = answering->head.body != HTTP_BODY_NONE;
    answering->left = answering->head.length;
    answering->chunk = (struct http_chunk){0};
    if (!answering->in_body || (answering->head.body == HTTP_BODY_LENGTH && !answering->left))
        end_answer(client);
    return 1;
}

static int take_answer_body(struct http_client *client)
{
    struct http_answering *answering = &client->answering;
    struct http_flight *flight = first_flight(client);
    bool chunked = answering->head.body == HTTP_BODY_CHUNKED;
    uint64_t data = answering->left;
    if (chunked) {
        http_in_took(&client->in, http_chunk_eat(&answering->chunk, client->in.at, client->in.left));
        if (answering->chunk.state == HTTP_CHUNK_BAD)
            return no_http(client, "a broken chunk");
        data = answering->chunk.state == HTTP_CHUNK_DATA ? answering->chunk.left : 0;
    }
    size_t n = client->in.left < data ? client->in.left : (size_t)data;
    if (n && is_wanted(client, flight)) {
        int error = http_in_land(&client->in, &flight->job->landing, rddp_rid_http(flight->index), n);
        if (error == -EAGAIN)
            return 1;
        if (error) {
            /* Its place in the file stays the peer's until the answer is over. */
            http_job_fail(client, flight->job, EXIT_FAILED, error_text(error));
        }
    }
    http_in_took(&client->in, n);
    if (chunked && n)
        http_chunk_took(&answering->chunk, n);
    else if (answering->head.body == HTTP_BODY_LENGTH)
        answering->left -= n;
    if (chunked ? answering->chunk.state == HTTP_CHUNK_DONE : !answering->left)
        end_answer(client);
    return 1;
}

int http_client_receive(struct http_client *client)
{
    int got = http_in_look(&client->in);
    if (got > 0)
        return client->answering.in_body ? take_answer_body(client) : take_answer_head(client);
    if (got == -ENODATA && client->answering.in_body && client->answering.head.body == HTTP_BODY_TO_END) {
        client->leaves = true;
        end_answer(client);
    }
    return got;
}
