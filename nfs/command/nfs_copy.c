/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_copy.c - the copy engine: keeps the slots busy with ops of several files and their directories. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs/command/nfs_copy.h"

/* --- places and jobs ----------------------------------------------------------------------------------------- */

static void place_get(struct copy_place *place)
{
    place->users++;
}

struct copy_place *place_make(struct copy_place *up, const char *name)
{
    const char *path = up ? up->path : "";
    struct copy_place *place = calloc(1, sizeof(*place) + strlen(path) + strlen(name) + 2);
    if (!place)
        return NULL;
    place->up = up;
    place->users = 1;
    place->fd = -1;
    sprintf(place->path, "%s%s%s", path, *path && *name ? "/" : "", name);
    if (up)
        place_get(up);
    return place;
}

void place_put(struct nfs_copy *copy, struct copy_place *place)
{
    while (place && --place->users == 0) {
        struct copy_place *up = place->up;
        if (!copy->direction->leave(copy, place))
            return;
        free(place);
        place = up;
    }
}

struct copy_job *job_make(struct nfs_copy *copy, struct copy_place *place, const char *name)
{
    struct copy_job *job = calloc(1, sizeof(*job)), **last = &copy->jobs;
    if (!job)
        return NULL;
    while (*last)
        last = &(*last)->next;
    *last = job;
    copy->job_count++;
    job->place = place;
    job->fd = -1;
    memcpy(job->name, name, strlen(name) + 1);
    place_get(place);
    return job;
}

void copy_fail(struct nfs_copy *copy, const char *path, int code, const char *why)
{
    const char *top = copy->direction->pulls ? copy->session->name : copy->report->source;
    char whole[2 * XFER_PATH], text[XFER_TEXT];
    snprintf(whole, sizeof(whole), "%.4000s%s%.4000s", top, *path ? "/" : "", path);
    copy->report->failed++;
    copy->code = code > copy->code ? code : copy->code;
    nfs_report_failure(copy->report, code, "%s: %s", xfer_printable(text, whole), why);
}

void job_fail(struct nfs_copy *copy, struct copy_job *job, int code, const char *why)
{
    char path[XFER_PATH + 1];
    if (job->failed)
        return;
    job->failed = true;
    /* Each line begins with the path that the user gave, so nothing is added for it. */
    bool top = job->directory || !job->place->up;
    copy_fail(copy, !top && nfs_join(path, job->place->path, job->name) ? path : job->place->path, code, why);
}

/* --- turns --------------------------------------------------------------------------------------------------- */

static void put_back(struct nfs_copy *copy, struct slot *slot)
{
    struct slot **list = slot->small ? &copy->idle_small : &copy->idle;
    slot->job = NULL;
    slot->next = *list;
    *list = slot;
}

static void slot_done(struct nfs_op *op)
{
    struct slot *slot = op->user;
    struct nfs_copy *copy = slot->copy;
    struct copy_job *job = slot->job;
    if (!copy->direction->done(job, slot))
        return;
    job->under_way--;
    put_back(copy, slot);
}

/* Small pieces and ops without data have slots of their own, so that many small files can be under way without as many
 * large buffers. */
static struct slot **slot_for(struct nfs_copy *copy, const struct copy_job *job)
{
    uint64_t need = job->state == JOB_DATA ? job->size - job->next_offset : 0; /* of a buffer */
    return need <= COPY_SMALL && copy->idle_small ? &copy->idle_small : &copy->idle;
}

static bool issue_any(struct nfs_copy *copy)
{
    for (struct copy_job *job = copy->jobs; job && (copy->idle || copy->idle_small); job = job->next) {
        struct slot **list = slot_for(copy, job), *slot = *list;
        if (!slot || (job->failed && job->state != JOB_REMOVE) || !copy->direction->issue(job, slot))
            continue;
        *list = slot->next;
        slot->job = job;
        job->under_way++;
        nfs_start(copy->session->client, &slot->op);
        return true;
    }
    return false;
}

static void copy_settle(struct nfs_copy *copy)
{
    for (struct copy_job **at = &copy->jobs; *at;) {
        struct copy_job *job = *at;
        if (job->under_way || !copy->direction->settle(copy, job)) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        copy->job_count--;
        place_put(copy, job->place);
        free(job);
    }
}

/* Starts ops of the current jobs before it looks for more jobs. */
static void copy_fill(struct nfs_copy *copy)
{
    while (!tool_stopped) {
        if (issue_any(copy))
            continue;
        copy_settle(copy);
        if (issue_any(copy))
            continue;
        if ((!copy->idle && !copy->idle_small) || copy->over || copy->job_count >= copy->slots)
            return;
        copy->over = copy->more(copy) == 0;
    }
}

int copy_engine_run(struct nfs_copy *copy)
{
    while (!tool_stopped) {
        copy_fill(copy);
        if (!copy->jobs && copy->over)
            return copy->code;
        nfs_session_wait(copy->session);
        nfs_report_progress(copy->report);
    }
    copy->code = nfs_report_failure(copy->report, EXIT_FAILED, "interrupted");
    return copy->code;
}

int copy_engine_open(struct nfs_copy *copy, struct nfs_session *s, struct nfs_report *report,
                     const struct copy_direction *direction)
{
    *copy = (struct nfs_copy){.session = s, .report = report, .direction = direction};
    copy->capacity = direction->pulls ? nfs_read_max(s->client) : nfs_write_max(s->client);
    uint32_t small = copy->capacity < COPY_SMALL ? copy->capacity : COPY_SMALL;
    for (; copy->slots < (1 + COPY_SMALL_SLOTS) * s->options->depth; copy->slots++) {
        struct slot *slot = &copy->slot[copy->slots];
        slot->op.done = slot_done;
        slot->op.user = slot;
        slot->copy = copy;
        slot->small = copy->slots >= s->options->depth;
        slot->buffer = malloc(slot->small ? small : copy->capacity);
        if (!slot->buffer)
            return fail(EXIT_FAILED, "out of memory");
        put_back(copy, slot);
    }
    return 0;
}

/* After an interruption ops may be under way: they are cancelled and end as failures. */
void copy_engine_close(struct nfs_copy *copy)
{
    copy->closing = true;
    copy->deadline_ns = clock_ns() + COPY_TIDY_MS * 1000000ULL;
    for (struct copy_job *job = copy->jobs; job; job = job->next) {
        job->interrupted = !job->failed;
        job->failed = true;
        job->prefix = job->next_offset;
    }
    for (unsigned i = 0; i < copy->slots; i++) {
        struct slot *slot = &copy->slot[i];
        struct copy_job *job = slot->job;
        if (!job)
            continue;
        nfs_cancel(copy->session->client, &slot->op);
        job->under_way--;
        if (slot->offset + slot->done < job->prefix)
            job->prefix = slot->offset + slot->done;
    }
    copy_settle(copy);
    for (unsigned i = 0; i < copy->slots; i++) {
        nfs_forget(&copy->slot[i].op);
        free(copy->slot[i].buffer);
    }
}
