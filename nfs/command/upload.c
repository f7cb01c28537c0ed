/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upload.c - copies from the file system to a server: CREATE of a temporary file, UNSTABLE WRITEs, COMMIT, SETATTR,
 * RENAME. When the verifier shows that the server has restarted, what it may have lost is sent again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs/command/nfs_copy.h"

/* --- requests ------------------------------------------------------------------------------------------------ */

static void ask_create(const struct copy_job *job, struct nfs_op *op)
{
    op->proc = NFS3_CREATE;
    op->args.make.where = (struct nfs3_where){job->place->fh, nfs_text(job->temp)};
    op->args.make.how = NFS3_UNCHECKED;
    /* Writable until it is complete: not every server lets an owner write a file that is read-only. */
    op->args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = (job->mode & 0777) | 0600, .set_size = true};
}

static void ask_name(enum nfs3_proc proc, const struct copy_job *job, const char *name, struct nfs_op *op)
{
    op->proc = proc;
    op->args.where = (struct nfs3_where){job->place->fh, nfs_text(name)};
}

static void ask_rename(const struct copy_job *job, struct nfs_op *op)
{
    op->proc = NFS3_RENAME;
    op->args.rename.from = (struct nfs3_where){job->place->fh, nfs_text(job->temp)};
    op->args.rename.to = (struct nfs3_where){job->place->fh, nfs_text(job->name)};
}

static void push_ask_attr(const struct copy_job *job, struct nfs_op *op)
{
    op->proc = NFS3_SETATTR;
    op->args.setattr.fh = job->fh;
    op->args.setattr.attr = (struct nfs3_sattr){
        .set_mode = true, .mode = job->mode & 01777, .set_mtime = NFS3_CLIENT_TIME, .mtime = job->mtime};
    op->args.setattr.guarded = false;
}

static void ask_write(const struct copy_job *job, struct slot *slot)
{
    struct nfs_op *op = &slot->op;
    op->proc = NFS3_WRITE;
    op->args.write.fh = job->fh;
    op->args.write.offset = slot->offset + slot->done;
    op->args.write.count = op->args.write.length = slot->length - slot->done;
    op->args.write.data = slot->buffer + slot->done;
    /* A file that fits into one WRITE is written stable and needs no COMMIT. */
    op->args.write.stable = job->size <= slot->copy->capacity ? NFS3_FILE_SYNC : NFS3_UNSTABLE;
}

static bool window_is_full(const struct copy_job *job)
{
    return job->next_offset - job->committed >= COPY_COMMIT_OCTETS;
}

static bool push_load(struct copy_job *job, struct slot *slot)
{
    for (uint32_t at = 0; at < slot->length;) {
        ssize_t got = pread(job->fd, slot->buffer + at, slot->length - at, (off_t)(slot->offset + at));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            job_fail(slot->copy, job, EXIT_FAILED, xfer_result_text(got ? xfer_result_of(errno) : XFER_CHANGED));
            return false;
        }
        at += got < 0 ? 0 : (uint32_t)got;
    }
    return true;
}

static bool issue_data(struct copy_job *job, struct slot *slot)
{
    uint64_t left = job->size - job->next_offset;
    if (left == 0 || job->changed || window_is_full(job))
        return false;
    slot->offset = job->next_offset;
    slot->length = left < slot->copy->capacity ? (uint32_t)left : slot->copy->capacity;
    slot->done = 0;
    if (!push_load(job, slot))
        return false;
    job->next_offset += slot->length;
    ask_write(job, slot);
    return true;
}

static bool push_issue(struct copy_job *job, struct slot *slot)
{
    struct nfs_op *op = &slot->op;
    if (job->state == JOB_DATA)
        return issue_data(job, slot);
    if (job->state == JOB_DIGEST)
        return digest_issue(job, slot);
    if (job->under_way)
        return false;
    switch (job->state) {
    case JOB_CREATE:
        ask_create(job, op);
        return true;
    case JOB_FIND:
        ask_name(NFS3_LOOKUP, job, job->temp, op);
        return true;
    case JOB_LOOK:
        ask_name(NFS3_LOOKUP, job, job->name, op);
        return true;
    case JOB_REMOVE:
        ask_name(NFS3_REMOVE, job, job->temp, op);
        return true;
    case JOB_RENAME:
        ask_rename(job, op);
        return true;
    case JOB_COMMIT:
        op->proc = NFS3_COMMIT;
        op->args.range.fh = job->fh;
        op->args.range.offset = 0;
        op->args.range.count = 0;
        return true;
    case JOB_ATTR:
        push_ask_attr(job, op);
        return true;
    case JOB_DATA:
    case JOB_DIGEST:
    case JOB_OVER:
        break;
    }
    return false;
}

/* --- replies ------------------------------------------------------------------------------------------------- */

/* The verifier identifies a run of the server. A new one means that uncommitted data may be lost (RFC 1813 3.3.7). */
static void push_compare(struct copy_job *job, const uint8_t *verifier)
{
    if (!job->verified)
        memcpy(job->verifier, verifier, NFS3_VERIFIER);
    job->verified = true;
    if (memcmp(job->verifier, verifier, NFS3_VERIFIER))
        job->changed = true;
}

/* Returns true if the slot is free, false if a WRITE of the rest was started in it. */
static bool written(struct copy_job *job, struct slot *slot)
{
    const struct nfs3_result *result = &slot->op.result;
    uint32_t n = result->write.count;
    slot->copy->report->octets += n;
    if (result->write.committed == NFS3_UNSTABLE) {
        job->unstable = true;
        push_compare(job, result->write.verifier);
    }
    slot->done += n;
    if (slot->done == slot->length || job->failed || job->changed)
        return true;
    if (n == 0) {
        job_fail(slot->copy, job, EXIT_PROTOCOL, "the server wrote nothing and reported no error");
        return true;
    }
    ask_write(job, slot);
    nfs_start(slot->copy->session->client, &slot->op);
    return false;
}

static void push_committed(struct copy_job *job, const struct nfs3_result *result)
{
    push_compare(job, result->write.verifier);
    job->state = JOB_DATA;
    if (job->changed)
        return;
    job->unstable = false;
    job->committed = job->next_offset;
}

static void found(struct copy_job *job, const struct nfs3_post_fh *fh)
{
    job->fh = fh->fh;
    job->state = fh->present ? JOB_DATA : JOB_FIND;
}

/* Whether the handle is that of our file: a retransmitted RENAME fails if the first one succeeded, and the name is then
 * ours. */
static bool is_named(struct copy_job *job, const struct nfs3_fh *fh)
{
    return fh->length == job->fh.length && !memcmp(fh->data, job->fh.data, fh->length);
}

static void answered(struct copy_job *job, struct nfs_op *op, struct nfs_copy *copy)
{
    if (op->proc == NFS3_COMMIT) {
        push_committed(job, &op->result);
    } else if (op->proc == NFS3_CREATE) {
        job->made = true;
        found(job, &op->result.made);
    } else if (op->proc == NFS3_LOOKUP && job->state == JOB_FIND) {
        found(job, &(struct nfs3_post_fh){true, op->result.fh});
    } else if (op->proc == NFS3_SETATTR && !job->directory) {
        job->state = JOB_RENAME;
    } else {
        if (job->state == JOB_LOOK && !is_named(job, &op->result.fh))
            job_fail(copy, job, EXIT_FAILED, "it was removed or renamed meanwhile");
        job->made = false;
        job->state = JOB_OVER;
    }
}

static bool push_done(struct copy_job *job, struct slot *slot)
{
    struct nfs_op *op = &slot->op;
    if (op->proc == NFS3_DIGEST) {
        digest_done(job, slot);
    } else if (job->state == JOB_REMOVE) {
        job->made = false;
        job->state = JOB_OVER;
    } else if (!op->error && op->proc == NFS3_RENAME && op->result.status == NFS3ERR_NOENT) {
        job->state = JOB_LOOK;
    } else if (op->error || op->result.status != NFS3_OK) {
        job_fail(slot->copy, job, nfs_exit_code(op->error), nfs_why(op));
    } else if (op->proc == NFS3_WRITE) {
        return written(job, slot);
    } else {
        answered(job, op, slot->copy);
    }
    return true;
}

/* --- what comes next ----------------------------------------------------------------------------------------- */

static void restart(struct nfs_copy *copy, struct copy_job *job)
{
    if (++job->restarts > COPY_RESTARTS_MAX) {
        job_fail(copy, job, EXIT_FAILED, "the server restarts again and again");
        return;
    }
    copy->report->restarts++;
    job->next_offset = job->committed;
    job->changed = job->verified = job->unstable = false;
}

static void push_go_on(struct nfs_copy *copy, struct copy_job *job)
{
    if (job->changed) {
        restart(copy, job);
    } else if (job->unstable && (job->next_offset == job->size || window_is_full(job))) {
        job->state = JOB_COMMIT;
    } else if (job->next_offset == job->size) {
        job->state = digest_is_due(copy, job) ? JOB_DIGEST : JOB_ATTR;
    } else if (window_is_full(job)) {
        job->committed = job->next_offset;
    }
}

static void push_removed(struct nfs_op *op)
{
    *(bool *)op->user = true;
}

/* Removes the temporary file before the command ends. A server that does not answer in time keeps it. */
static void remove_now(struct nfs_copy *copy, struct copy_job *job)
{
    struct nfs_client *client = copy->session->client;
    bool over = false;
    struct nfs_op op = {.done = push_removed, .user = &over};
    ask_name(NFS3_REMOVE, job, job->temp, &op);
    nfs_start(client, &op);
    while (!over && clock_ns() < copy->deadline_ns)
        nfs_wait(client, NFS_WAIT_MS);
    if (!over) {
        nfs_cancel(client, &op);
        nfs_report_failure(copy->report, EXIT_FAILED, "the server does not answer: %s may be left there", job->temp);
    }
    nfs_forget(&op);
    job->made = false;
}

static bool push_settle(struct nfs_copy *copy, struct copy_job *job)
{
    if (!job->failed && job->state == JOB_DATA)
        push_go_on(copy, job);
    else if (!job->failed && job->state == JOB_DIGEST && !digest_is_due(copy, job))
        job->state = JOB_ATTR;
    if (!job->failed && job->state != JOB_OVER)
        return false;
    if (job->made && copy->closing) {
        remove_now(copy, job);
    } else if (job->made) {
        job->state = JOB_REMOVE;
        return false;
    }
    if (job->fd >= 0)
        close(job->fd);
    copy->report->files += !job->failed && !job->directory;
    copy->report->verified += !job->failed && job->size && job->verified_octets == job->size;
    return true;
}

static bool push_leave(struct nfs_copy *copy, struct copy_place *place)
{
    struct copy_job *job = place->finish && !copy->closing ? job_make(copy, place, "") : NULL;
    place->finish = false;
    if (!job)
        return true;
    job->directory = true;
    job->state = JOB_ATTR;
    job->fh = place->fh;
    job->mode = place->mode;
    job->mtime = place->mtime;
    return false;
}

const struct copy_direction push_direction = {
    .issue = push_issue, .done = push_done, .settle = push_settle, .leave = push_leave};
