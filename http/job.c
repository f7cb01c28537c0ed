/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* job.c - how one file of the client ends: done, failed, or to be gone on with. */
#include <inttypes.h>
#include <stdio.h>

#include "http/http_client.h"
#include "tools/xfer/xfer.h"

void http_job_fail(struct http_client *client, struct http_job *job, int code, const char *why)
{
    char name[XFER_TEXT];
    job->state = HTTP_JOB_FAILED;
    client->failed++;
    client->code = fail(code, "%s: %s", xfer_printable(name, job->target), why);
}

void http_job_done(struct http_client *client, struct http_job *job, uint64_t octets, bool verified)
{
    uint64_t placed = job->landing.placed, kept = job->landing.start;
    char name[XFER_TEXT];
    job->state = HTTP_JOB_DONE;
    client->files++;
    client->octets += octets;
    client->placed += placed;
    client->verified += verified;
    if (client->options->quiet)
        return;
    printf("%s: %" PRIu64 " octets", xfer_printable(name, job->put ? job->target : job->name), octets);
    if (!job->put)
        printf(", %" PRIu64 " placed", placed);
    if (!job->put && kept)
        printf(", %" PRIu64 " kept", kept);
    if (verified)
        printf(", verified");
    else if (!job->put && (placed || kept))
        printf(", not verified");
    putchar('\n');
}

void http_job_part(struct http_client *client, struct http_job *job)
{
    struct landing *landing = &job->landing;
    /* All octets have come, but not what ends them: the last one is asked for again, and the end with it. */
    if (landing->position == job->size && job->part[0])
        landing->position--;
    bool keeps =
        landing->fd >= 0 && job->part[0] && landing->position >= HTTP_PART_MIN && landing->position < job->size;
    if (!keeps)
        landing_drop(landing);
    else if (!landing_keep(landing, job->part))
        client->has_parts = true;
}
