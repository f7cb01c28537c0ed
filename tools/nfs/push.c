/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* push.c - from the file system to a server: CREATE, WRITEs that the server may keep in memory, COMMIT, SETATTR. If
 * the server started again in between, which its verifier tells, what it may have lost is sent once more. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/copy.h"

struct push {
    struct nfs_copy copy;
    struct walk walk;
    struct walk_entry entry;
    struct place *base;
    char top[XFER_NAME + 1];             /* what the top will be called; "": its contents go right into base */
    struct place *place[XFER_DEPTH + 1]; /* NULL: it could not be made, and nothing in it is copied */
    unsigned depth;
    int fd;
};

static struct nfs3_text text(const char *name)
{
    return (struct nfs3_text){name, (uint32_t)strlen(name)};
}

static struct nfs3_time nfs_time(int64_t seconds, uint32_t nanoseconds)
{
    if (seconds < 0)
        return (struct nfs3_time){0, 0};
    return (struct nfs3_time){seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds, nanoseconds};
}

/* --- a file: what is asked ----------------------------------------------------------------------------------- */

static void ask_create(const struct job *job, struct nfs_op *op)
{
    op->proc = NFS3_CREATE;
    op->args.make.where = (struct nfs3_where){job->place->fh, text(job->name)};
    op->args.make.how = NFS3_UNCHECKED;
    /* Writable until it is written: not every server lets an owner write what is not. */
    op->args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = (job->mode & 0777) | 0600, .set_size = true};
}

static void ask_attr(const struct job *job, struct nfs_op *op)
{
    op->proc = NFS3_SETATTR;
    op->args.setattr.fh = job->fh;
    op->args.setattr.attr = (struct nfs3_sattr){
        .set_mode = true, .mode = job->mode & 01777, .set_mtime = NFS3_CLIENT_TIME, .mtime = job->mtime};
    op->args.setattr.guarded = false;
}

static void ask_write(const struct job *job, struct slot *slot)
{
    struct nfs_op *op = &slot->op;
    op->proc = NFS3_WRITE;
    op->args.write.fh = job->fh;
    op->args.write.offset = slot->offset + slot->done;
    op->args.write.count = op->args.write.length = slot->length - slot->done;
    op->args.write.data = slot->buffer + slot->done;
    /* What fits into one WRITE needs no COMMIT. */
    op->args.write.stable = job->size <= slot->copy->room ? NFS3_FILE_SYNC : NFS3_UNSTABLE;
}

static bool window_is_full(const struct job *job)
{
    return job->next_offset - job->committed >= COPY_COMMIT_OCTETS;
}

static bool load(struct job *job, struct slot *slot)
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

static bool issue_data(struct job *job, struct slot *slot)
{
    uint64_t left = job->size - job->next_offset;
    if (left == 0 || job->changed || window_is_full(job))
        return false;
    slot->offset = job->next_offset;
    slot->length = left < slot->copy->room ? (uint32_t)left : slot->copy->room;
    slot->done = 0;
    if (!load(job, slot))
        return false;
    job->next_offset += slot->length;
    ask_write(job, slot);
    return true;
}

bool push_issue(struct job *job, struct slot *slot)
{
    struct nfs_op *op = &slot->op;
    if (job->state == JOB_DATA)
        return issue_data(job, slot);
    if (job->under_way)
        return false;
    switch (job->state) {
    case JOB_CREATE:
        ask_create(job, op);
        return true;
    case JOB_FIND:
        op->proc = NFS3_LOOKUP;
        op->args.where = (struct nfs3_where){job->place->fh, text(job->name)};
        return true;
    case JOB_COMMIT:
        op->proc = NFS3_COMMIT;
        op->args.range.fh = job->fh;
        op->args.range.offset = 0;
        op->args.range.count = 0;
        return true;
    case JOB_ATTR:
        ask_attr(job, op);
        return true;
    case JOB_DATA:
    case JOB_OVER:
        break;
    }
    return false;
}

/* --- what is answered ---------------------------------------------------------------------------------------- */

/* The verifier is of the server's run: another one says that what was not committed may be lost (RFC 1813 3.3.7). */
static void compare(struct job *job, const uint8_t *verifier)
{
    if (!job->verified)
        memcpy(job->verifier, verifier, NFS3_VERIFIER);
    job->verified = true;
    if (memcmp(job->verifier, verifier, NFS3_VERIFIER))
        job->changed = true;
}

/* False: the rest of it was started. */
static bool written(struct job *job, struct slot *slot)
{
    const struct nfs3_result *result = &slot->op.result;
    uint32_t n = result->write.count;
    slot->copy->report->octets += n;
    if (result->write.committed == NFS3_UNSTABLE) {
        job->unstable = true;
        compare(job, result->write.verifier);
    }
    slot->done += n;
    if (slot->done == slot->length || job->failed || job->changed)
        return true;
    if (n == 0) {
        job_fail(slot->copy, job, EXIT_PROTOCOL, "the server takes no octets and names no reason");
        return true;
    }
    ask_write(job, slot);
    nfs_start(slot->copy->session->client, &slot->op);
    return false;
}

static void committed(struct job *job, const struct nfs3_result *result)
{
    compare(job, result->write.verifier);
    job->state = JOB_DATA;
    if (job->changed)
        return;
    job->unstable = false;
    job->committed = job->next_offset;
}

static void found(struct job *job, const struct nfs3_post_fh *fh, const struct nfs3_post_attr *attr)
{
    job->fh = fh->fh;
    job->state = fh->present ? JOB_DATA : JOB_FIND;
    if (attr->present && attr->attr.type != NFS3_REG)
        job->state = JOB_CREATE;
}

bool push_done(struct job *job, struct slot *slot)
{
    struct nfs_op *op = &slot->op;
    if (op->error || op->result.status != NFS3_OK) {
        job_fail(slot->copy, job, nfs_exit_code(op->error), nfs_why(op));
        return true;
    }
    if (op->proc == NFS3_WRITE)
        return written(job, slot);
    if (op->proc == NFS3_COMMIT)
        committed(job, &op->result);
    else if (op->proc == NFS3_CREATE)
        found(job, &op->result.made, &op->result.attr);
    else if (op->proc == NFS3_LOOKUP)
        found(job, &(struct nfs3_post_fh){true, op->result.fh}, &op->result.attr);
    else
        job->state = JOB_OVER;
    if (job->state == JOB_CREATE)
        job_fail(slot->copy, job, EXIT_FAILED, "is there, and no file");
    return true;
}

/* --- what comes next ----------------------------------------------------------------------------------------- */

static void restart(struct nfs_copy *copy, struct job *job)
{
    if (++job->restarts > COPY_RESTARTS_MAX) {
        job_fail(copy, job, EXIT_FAILED, "the server starts again and again");
        return;
    }
    copy->report->restarts++;
    job->next_offset = job->committed;
    job->changed = job->verified = job->unstable = false;
}

static void go_on(struct nfs_copy *copy, struct job *job)
{
    if (job->changed) {
        restart(copy, job);
    } else if (job->unstable && (job->next_offset == job->size || window_is_full(job))) {
        job->state = JOB_COMMIT;
    } else if (job->next_offset == job->size) {
        job->state = JOB_ATTR;
    } else if (window_is_full(job)) {
        job->committed = job->next_offset;
    }
}

bool push_settle(struct nfs_copy *copy, struct job *job)
{
    if (!job->failed && job->state == JOB_DATA)
        go_on(copy, job);
    if (!job->failed && job->state != JOB_OVER)
        return false;
    if (job->fd >= 0)
        close(job->fd);
    copy->report->files += !job->failed && !job->directory;
    return true;
}

/* --- directories and links ----------------------------------------------------------------------------------- */

bool push_leave(struct nfs_copy *copy, struct place *place)
{
    struct job *job = place->finish && !copy->closing ? job_make(copy, place, "") : NULL;
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

/* Runs an op that makes `name`; if that is there, looks what it is. 0, or a negative errno and a reason. */
static int make(struct push *push, struct place *up, const char *name, struct nfs_op *op, struct nfs3_fh *fh,
                const char **why)
{
    struct nfs_client *client = push->copy.session->client;
    op->args.make.where = (struct nfs3_where){up->fh, text(name)};
    int rc = nfs_call(client, op);
    *why = nfs_why(op);
    if (rc && rc != -EEXIST)
        return rc;
    if (!rc && op->result.made.present) {
        *fh = op->result.made.fh;
        return 0;
    }
    enum nfs3_proc proc = op->proc;
    op->proc = NFS3_LOOKUP;
    op->args.where = (struct nfs3_where){up->fh, text(name)};
    rc = nfs_call(client, op);
    *why = nfs_why(op);
    *fh = op->result.fh;
    bool same = !op->result.attr.present || op->result.attr.attr.type == (proc == NFS3_MKDIR ? NFS3_DIR : NFS3_LNK);
    if (rc || same)
        return rc;
    *why = "is there, and something else";
    return -EEXIST;
}

static void enter(struct push *push, struct place *up, const char *name)
{
    const struct walk_entry *entry = &push->entry;
    struct nfs_op op = {.proc = NFS3_MKDIR};
    const char *why = "";
    struct place *place = place_make(up, *entry->path ? name : "");
    op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = (entry->mode & 01777) | 0700};
    int rc = 0;
    if (!place)
        rc = -ENOMEM, why = xfer_result_text(XFER_NO_MEMORY);
    else if (*name)
        rc = make(push, up, name, &op, &place->fh, &why);
    else
        place->fh = up->fh;
    nfs_forget(&op);
    if (rc) {
        copy_fail(&push->copy, entry->path, nfs_exit_code(rc), why);
        if (place)
            place_drop(&push->copy, place);
        place = NULL;
    } else {
        place->finish = *name;
        place->mode = entry->mode;
        place->mtime = nfs_time(entry->seconds, entry->nanoseconds);
        push->copy.report->directories++;
    }
    push->place[push->depth++] = place;
}

static void copy_link(struct push *push, struct place *up, const char *name)
{
    const struct walk_entry *entry = &push->entry;
    struct nfs_client *client = push->copy.session->client;
    struct nfs_op op = {.proc = NFS3_SYMLINK};
    op.args.make.where = (struct nfs3_where){up->fh, text(name)};
    op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = 0777};
    op.args.make.target = text(entry->target);
    int rc = nfs_call(client, &op);
    if (rc == -EEXIST) {
        struct nfs_op gone = {.proc = NFS3_REMOVE, .args.where = {up->fh, text(name)}};
        nfs_call(client, &gone);
        nfs_forget(&gone);
        rc = nfs_call(client, &op);
    }
    if (rc)
        copy_fail(&push->copy, entry->path, nfs_exit_code(rc), nfs_why(&op));
    else
        push->copy.report->links++;
    nfs_forget(&op);
}

/* --- the tree ------------------------------------------------------------------------------------------------ */

static void start_file(struct push *push, struct place *up, const char *name)
{
    const struct walk_entry *entry = &push->entry;
    struct job *job = job_make(&push->copy, up, name);
    if (!job) {
        copy_fail(&push->copy, entry->path, EXIT_FAILED, xfer_result_text(XFER_NO_MEMORY));
        close(entry->fd);
        return;
    }
    job->fd = entry->fd;
    job->state = JOB_CREATE;
    job->size = entry->size;
    job->mode = entry->mode;
    job->mtime = nfs_time(entry->seconds, entry->nanoseconds);
}

static void leave(struct push *push)
{
    struct place *place = push->place[--push->depth];
    if (place)
        place_drop(&push->copy, place);
}

static int more(struct nfs_copy *copy)
{
    struct push *push = copy->walker;
    struct walk_entry *entry = &push->entry;
    walk_next(&push->walk, entry);
    if (entry->kind == WALK_OVER)
        return 0;
    struct place *up = push->depth ? push->place[push->depth - 1] : push->base;
    const char *slash = strrchr(entry->path, '/');
    const char *name = !*entry->path ? push->top : slash ? slash + 1 : entry->path;
    if (entry->kind == WALK_DIRECTORY_END) {
        leave(push);
    } else if (!up) {
        if (entry->kind == WALK_DIRECTORY)
            push->place[push->depth++] = NULL;
        if (entry->fd >= 0)
            close(entry->fd);
    } else if (entry->kind == WALK_TROUBLE) {
        copy_fail(copy, entry->path, EXIT_FAILED, xfer_result_text(entry->result));
    } else if (entry->kind == WALK_DIRECTORY) {
        enter(push, up, name);
    } else if (entry->kind == WALK_LINK) {
        copy_link(push, up, name);
    } else {
        start_file(push, up, name);
    }
    return 1;
}

/* --- from the top -------------------------------------------------------------------------------------------- */

static int open_source(struct push *push, const char *local)
{
    struct nfs_report *report = push->copy.report;
    struct stat st;
    char name[XFER_TEXT];
    push->fd = open(local, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (push->fd < 0 || fstat(push->fd, &st))
        return nfs_report_failure(report, EXIT_FAILED, "%s: %s", xfer_printable(name, local), error_text(errno));
    if (S_ISDIR(st.st_mode) && !push->copy.session->options->recursive)
        return nfs_report_failure(report, EXIT_FAILED, "%s: %s", xfer_printable(name, local),
                                  xfer_result_text(XFER_NOT_RECURSIVE));
    return 0;
}

/* cp's rule: into the path as `local` if that is a directory, else it is to become the path. */
static int find_place(struct push *push, struct nfs_session *s, const char *local)
{
    struct nfs3_attr attr;
    struct nfs3_fh fh;
    struct stat st;
    bool directory = fstat(push->fd, &st) == 0 && S_ISDIR(st.st_mode);
    last_name(push->top, local);
    int rc = nfs_lookup(s->client, s->inside, true, &fh, &attr);
    if (!rc && attr.type == NFS3_DIR && !directory && !*push->top)
        rc = -EISDIR;
    else if (rc == -ENOENT && s->remote.into && !directory)
        return nfs_report_failure(push->copy.report, EXIT_FAILED, "%s/: %s", s->name, error_text(rc));
    else if (!rc && attr.type != NFS3_DIR && (directory || s->remote.into))
        rc = -ENOTDIR;
    if (rc && rc != -ENOENT)
        return nfs_report_failure(push->copy.report, nfs_exit_code(rc), "%s: %s", s->name, nfs_errno_text(rc));
    if (rc || attr.type != NFS3_DIR) {
        int code = nfs_parent(s, &fh, push->top);
        if (code)
            return code;
    }
    push->base = place_make(NULL, "");
    if (!push->base)
        return nfs_report_failure(push->copy.report, EXIT_FAILED, "out of memory");
    push->base->fh = fh;
    return 0;
}

int push_run(struct nfs_session *s, struct nfs_report *report, const char *local)
{
    struct push *push = calloc(1, sizeof(*push));
    if (!push)
        return nfs_report_failure(report, EXIT_FAILED, "out of memory");
    int code = copy_engine_open(&push->copy, s, report, false);
    push->fd = -1;
    if (!code)
        code = open_source(push, local);
    if (!code)
        code = find_place(push, s, local);
    if (!code) {
        walk_init(&push->walk, push->fd, 0);
        push->copy.more = more;
        push->copy.walker = push;
        code = copy_engine_run(&push->copy);
        walk_fini(&push->walk);
    }
    copy_engine_close(&push->copy);
    while (push->depth)
        leave(push);
    place_drop(&push->copy, push->base);
    if (push->fd >= 0)
        close(push->fd);
    free(push);
    return code;
}
