/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_client.c - one connection after the other until every job is done or given up. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http/http_client.h"

enum { TRIES = 3, TURN = 256, WAIT_MS = 100, CONNECT_MS = 10000, BYE_MS = 1000 };

static bool jobs_are_over(struct http_client *client)
{
    while (client->first < client->jobs && client->job[client->first].state >= HTTP_JOB_DONE)
        client->first++;
    return client->first == client->jobs;
}

/* --- a connection -------------------------------------------------------------------------------------------- */

static int await_open(struct http_client *client, struct rddp_stream *stream)
{
    uint64_t deadline_ns = clock_ns() + CONNECT_MS * 1000000ULL;
    int state;
    while ((state = rddp_stream_state(stream)) == RDDP_STREAM_CONNECTING) {
        if (tool_stopped || clock_ns() > deadline_ns)
            return tool_stopped ? -EINTR : -ETIMEDOUT;
        rddp_stream_progress(client->net, WAIT_MS);
    }
    return state < 0 ? state : 0;
}

static int connect_to(struct http_client *client, const struct sockaddr_storage *to)
{
    struct rddp_stream *stream =
        rddp_stream_connect(client->net, (const struct sockaddr *)&client->own, (const struct sockaddr *)to);
    int error = stream ? await_open(client, stream) : -errno;
    if (!error && !http_io_open(&client->in, &client->out, stream)) {
        http_io_close(&client->in, &client->out);
        return -ENOMEM;
    }
    if (error && stream)
        rddp_stream_close(stream);
    return error;
}

static int connect_any(struct http_client *client)
{
    int error = -EAFNOSUPPORT;
    for (int i = 0; i < client->server.count && error && !tool_stopped; i++) {
        if (client->server.address[i].ss_family == client->own.ss_family)
            error = connect_to(client, &client->server.address[i]);
    }
    if (error)
        return fail(EXIT_CONNECT, "%s: %s", client->server.text,
                    error == -EAFNOSUPPORT ? "no address of the family of --packet" : error_text(error));
    client->index = client->answers = 0;
    client->leaves = false;
    client->flights = client->flight_first = 0;
    client->answering.in_body = false;
    client->answering.have = client->answering.scanned = client->answering.interim = 0;
    client->sending.job = NULL;
    client->sending.length = client->sending.sent = 0;
    return 0;
}

/* Answers that did not come are asked for again on the next connection: GET, HEAD and PUT may be. */
static void requeue(struct http_client *client)
{
    for (size_t i = 0; i < client->flights; i++) {
        struct http_job *job = client->flight[(client->flight_first + i) % HTTP_DEPTH_MAX].job;
        http_job_part(client, job);
        if (job->state == HTTP_JOB_FAILED)
            continue;
        job->tries += !i;
        if (job->tries >= TRIES || (job->put && job->chunked))
            http_job_fail(client, job, EXIT_FAILED, "the connection ended before the answer");
        else
            job->state = HTTP_JOB_NEW;
    }
}

static void disconnect(struct http_client *client)
{
    uint64_t deadline_ns = clock_ns() + BYE_MS * 1000000ULL;
    struct rddp_stream *stream = client->in.stream;
    bool polite = !client->flights && !rddp_stream_finish(stream);
    while (polite && !tool_stopped && rddp_stream_state(stream) == RDDP_STREAM_OPEN && clock_ns() < deadline_ns) {
        if (http_in_look(&client->in) > 0)
            http_in_took(&client->in, client->in.left);
        rddp_stream_progress(client->net, 10);
    }
    http_io_close(&client->in, &client->out);
    requeue(client);
}

/* Sends and receives. 1: something moved; 0: nothing; a negative errno: the connection is over. */
static int client_turn(struct http_client *client)
{
    bool moved = false;
    int got = 1;
    for (int i = 0; i < TURN && got > 0; i++) {
        got = http_client_receive(client);
        moved |= got > 0;
    }
    if (got < 0)
        return got;
    for (int i = 0; i < TURN && http_client_send(client); i++)
        moved = true;
    return moved;
}

static uint64_t moved_octets(const struct http_client *client)
{
    return client->in.octets + client->out.written - rddp_stream_unacked(client->out.stream);
}

/* Until all is done, the server leaves, or nothing moves any more. */
static void client_drive(struct http_client *client)
{
    uint64_t moved = 0, last_ns = clock_ns(), timeout_ns = (uint64_t)(client->options->timeout_s * 1e9);
    while (!tool_stopped && !jobs_are_over(client)) {
        int got = client_turn(client);
        if (got < 0 || (client->leaves && !client->flights))
            return;
        if (moved_octets(client) != moved) {
            moved = moved_octets(client);
            last_ns = clock_ns();
        } else if (clock_ns() - last_ns > timeout_ns) {
            client->code =
                fail(EXIT_FAILED, "%s: received nothing for %g s", client->server.text, client->options->timeout_s);
            return;
        }
        rddp_stream_progress(client->net, got ? 0 : WAIT_MS);
    }
}

static void summarize(const struct http_client *client, uint64_t start_ns)
{
    double seconds = (double)(clock_ns() - start_ns) / 1e9;
    char rate[SMALL_TEXT];
    if (client->options->quiet || client->jobs < 2)
        return;
    printf("%" PRIu64 " file%s, %" PRIu64 " failed, %" PRIu64 " octets, %" PRIu64 " placed", client->files,
           plural_s(client->files), client->failed, client->octets, client->placed);
    if (client->verified)
        printf(", %" PRIu64 " file%s verified", client->verified, plural_s(client->verified));
    if (client->octets >= RATE_OCTETS)
        printf(", %s", rate_text(rate, (double)client->octets / seconds));
    putchar('\n');
}

int http_client_run(struct http_client *client)
{
    uint64_t start_ns = clock_ns();
    int code = http_open_net(client->options, 4, &client->net, &client->own);
    if (code)
        return code;
    while (!tool_stopped && !jobs_are_over(client) && client->code != EXIT_PROTOCOL) {
        code = connect_any(client);
        if (code)
            break;
        uint64_t failed = client->failed;
        client_drive(client);
        uint32_t answers = client->answers;
        disconnect(client);
        if (client->code && !answers && client->failed == failed)
            break;
    }
    rddp_stream_net_close(client->net);
    summarize(client, start_ns);
    if (tool_stopped && !code)
        code = EXIT_FAILED;
    return code ? code : client->code;
}
