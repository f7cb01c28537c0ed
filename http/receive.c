/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - the answers to the client's requests, in their order. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static bool is_wanted(const struct http_client *client, const struct http_flight *flight)
{
    return flight->method == HTTP_GET && client->answering.head.status == 200 && flight->job->landing.fd >= 0;
}

/* --- an answer is over --------------------------------------------------------------------------------------- */

static void end_head(struct http_client *client, struct http_job *job)
{
    const struct http_head *head = &client->answering.head;
    char why[SMALL_TEXT * 2];
    if (head->status == 200 || head->status == 405 || head->status == 501) {
        job->size = head->status == 200 ? head->length : UINT64_MAX;
        job->state = HTTP_JOB_SIZED;
        return;
    }
    snprintf(why, sizeof(why), "%d %s", head->status, http_phrase(head->status));
    http_job_fail(client, job, EXIT_FAILED, why);
}

static void end_job(struct http_client *client, struct http_job *job)
{
    int status = client->answering.head.status;
    uint64_t octets = job->put ? client->sending.job == job ? client->sending.at : job->size : job->landing.position;
    uint64_t placed = job->landing.placed;
    char why[SMALL_TEXT * 2];
    snprintf(why, sizeof(why), "%d %s", status, http_phrase(status));
    bool good = job->put ? status == 200 || status == 201 || status == 204 : status == 200;
    if (!good) {
        http_job_fail(client, job, EXIT_FAILED, why);
        return;
    }
    int error = job->put ? 0 : landing_finish(&job->landing, client->options->sync);
    if (error)
        http_job_fail(client, job, EXIT_FAILED, error_text(error));
    else
        http_job_done(client, job, octets, placed);
}

static void end_answer(struct http_client *client)
{
    struct http_flight flight = *first_flight(client);
    struct http_answering *answering = &client->answering;
    (void)rddp_stream_forget(client->in.stream, rddp_rid_http(flight.index));
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

static int take_answer_head(struct http_client *client)
{
    struct http_answering *answering = &client->answering;
    size_t space = HTTP_HEAD_MAX - answering->have, n = client->in.left < space ? client->in.left : space;
    if (!client->flights)
        return no_http(client, "an answer that nobody asked for");
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
        return no_http(client, "another protocol that nobody asked for");
    if (answering->head.status < 200) {
        answering->have = answering->scanned = 0;
        return 1;
    }
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
        int error = landing_take(&flight->job->landing, client->in.at, n, client->in.placed);
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
