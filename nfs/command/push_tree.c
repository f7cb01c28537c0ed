/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* push_tree.c - walks a local tree and creates it at a server: directories, symbolic links, and a job for each file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs/command/nfs_copy.h"

struct push {
    struct nfs_copy copy;
    struct walk walk;
    struct walk_entry entry;
    struct copy_place *base;
    char top[XFER_NAME + 1];                  /* the name of the top at the server; "": its contents go into `base` */
    struct copy_place *place[XFER_DEPTH + 1]; /* NULL: it could not be created, and its contents are skipped */
    unsigned depth;
    int fd;
};

static struct nfs3_time push_time(int64_t seconds, uint32_t nanoseconds)
{
    if (seconds < 0)
        return (struct nfs3_time){0, 0};
    return (struct nfs3_time){seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds, nanoseconds};
}

/* --- directories and links ----------------------------------------------------------------------------------- */

/* Runs an op that creates `name`, or looks up what exists already. Returns 0, or a negative errno and a reason. */
static int push_tree_make(struct push *push, struct copy_place *up, const char *name, struct nfs_op *op,
                          struct nfs3_fh *fh, const char **why)
{
    struct nfs_client *client = push->copy.session->client;
    op->args.make.where = (struct nfs3_where){up->fh, nfs_text(name)};
    int error = nfs_call(client, op);
    *why = nfs_why(op);
    if (error && error != -EEXIST)
        return error;
    if (!error && op->result.made.present) {
        *fh = op->result.made.fh;
        return 0;
    }
    enum nfs3_proc proc = op->proc;
    op->proc = NFS3_LOOKUP;
    op->args.where = (struct nfs3_where){up->fh, nfs_text(name)};
    error = nfs_call(client, op);
    *why = nfs_why(op);
    *fh = op->result.fh;
    bool same = !op->result.attr.present || op->result.attr.attr.type == (proc == NFS3_MKDIR ? NFS3_DIR : NFS3_LNK);
    if (error || same)
        return error;
    *why = "already exists and is something else";
    return -EEXIST;
}

static void push_tree_enter(struct push *push, struct copy_place *up, const char *name)
{
    const struct walk_entry *entry = &push->entry;
    struct nfs_op op = {.proc = NFS3_MKDIR};
    const char *why = "";
    struct copy_place *place = place_make(up, *entry->path ? name : "");
    op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = (entry->mode & 01777) | 0700};
    int error = 0;
    if (!place)
        error = -ENOMEM, why = xfer_result_text(XFER_NO_MEMORY);
    else if (*name)
        error = push_tree_make(push, up, name, &op, &place->fh, &why);
    else
        place->fh = up->fh;
    nfs_forget(&op);
    if (error) {
        copy_fail(&push->copy, entry->path, nfs_exit_code(error), why);
        if (place)
            place_put(&push->copy, place);
        place = NULL;
    } else {
        place->finish = *name;
        place->mode = entry->mode;
        place->mtime = push_time(entry->seconds, entry->nanoseconds);
        push->copy.report->directories++;
    }
    push->place[push->depth++] = place;
}

static void push_tree_copy_link(struct push *push, struct copy_place *up, const char *name)
{
    const struct walk_entry *entry = &push->entry;
    struct nfs_client *client = push->copy.session->client;
    struct nfs_op op = {.proc = NFS3_SYMLINK};
    op.args.make.where = (struct nfs3_where){up->fh, nfs_text(name)};
    op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = 0777};
    op.args.make.target = nfs_text(entry->target);
    int error = nfs_call(client, &op);
    if (error == -EEXIST) {
        struct nfs_op gone = {.proc = NFS3_REMOVE, .args.where = {up->fh, nfs_text(name)}};
        nfs_call(client, &gone);
        nfs_forget(&gone);
        error = nfs_call(client, &op);
    }
    if (error)
        copy_fail(&push->copy, entry->path, nfs_exit_code(error), nfs_why(&op));
    else
        push->copy.report->links++;
    nfs_forget(&op);
}

/* --- the tree ------------------------------------------------------------------------------------------------ */

static void push_tree_start_file(struct push *push, struct copy_place *up, const char *name)
{
    const struct walk_entry *entry = &push->entry;
    struct copy_job *job = job_make(&push->copy, up, name);
    if (!job) {
        copy_fail(&push->copy, entry->path, EXIT_FAILED, xfer_result_text(XFER_NO_MEMORY));
        close(entry->fd);
        return;
    }
    job->fd = entry->fd;
    job->state = JOB_CREATE;
    if (strlen(name) > XFER_NAME || !temp_unique(job->temp, name))
        job_fail(&push->copy, job, EXIT_FAILED, xfer_result_text(XFER_IO));
    job->size = entry->size;
    job->mode = entry->mode;
    job->mtime = push_time(entry->seconds, entry->nanoseconds);
}

static void push_tree_leave(struct push *push)
{
    struct copy_place *place = push->place[--push->depth];
    if (place)
        place_put(&push->copy, place);
}

static int push_tree_more(struct nfs_copy *copy)
{
    struct push *push = copy->walker;
    struct walk_entry *entry = &push->entry;
    walk_next(&push->walk, entry);
    if (entry->kind == WALK_OVER)
        return 0;
    struct copy_place *up = push->depth ? push->place[push->depth - 1] : push->base;
    const char *slash = strrchr(entry->path, '/');
    const char *name = !*entry->path ? push->top : slash ? slash + 1 : entry->path;
    if (entry->kind == WALK_DIRECTORY_END) {
        push_tree_leave(push);
    } else if (!up) {
        if (entry->kind == WALK_DIRECTORY)
            push->place[push->depth++] = NULL;
        if (entry->fd >= 0)
            close(entry->fd);
    } else if (entry->kind == WALK_TROUBLE) {
        copy_fail(copy, entry->path, EXIT_FAILED, xfer_result_text(entry->result));
    } else if (entry->kind == WALK_DIRECTORY) {
        push_tree_enter(push, up, name);
    } else if (entry->kind == WALK_LINK) {
        push_tree_copy_link(push, up, name);
    } else {
        push_tree_start_file(push, up, name);
    }
    return 1;
}

/* --- from the top -------------------------------------------------------------------------------------------- */

static int push_tree_open_source(struct push *push, const char *local)
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

/* Like cp: if the path is a directory, copies into it as `local`; else the copy becomes the path. */
static int push_tree_find_place(struct push *push, struct nfs_session *s, const char *local)
{
    struct nfs3_attr attr;
    struct nfs3_fh fh;
    struct stat st;
    bool directory = fstat(push->fd, &st) == 0 && S_ISDIR(st.st_mode);
    last_name(push->top, local);
    int error = nfs_lookup(s->client, s->inside, true, &fh, &attr);
    if (!error && attr.type == NFS3_DIR && !directory && !*push->top)
        error = -EISDIR;
    else if (error == -ENOENT && s->remote.into && !directory)
        return nfs_report_failure(push->copy.report, EXIT_FAILED, "%s/: %s", s->name, error_text(error));
    else if (!error && attr.type != NFS3_DIR && (directory || s->remote.into))
        error = -ENOTDIR;
    if (error && error != -ENOENT)
        return nfs_report_failure(push->copy.report, nfs_exit_code(error), "%s: %s", s->name, nfs_errno_text(error));
    if (error || attr.type != NFS3_DIR) {
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
    int code = copy_engine_open(&push->copy, s, report, &push_direction);
    push->fd = -1;
    if (!code)
        code = push_tree_open_source(push, local);
    if (!code)
        code = push_tree_find_place(push, s, local);
    if (!code) {
        walk_init(&push->walk, push->fd, 0);
        push->copy.more = push_tree_more;
        push->copy.walker = push;
        digest_ask(&push->copy);
        code = copy_engine_run(&push->copy);
        walk_fini(&push->walk);
    }
    copy_engine_close(&push->copy);
    while (push->depth)
        push_tree_leave(push);
    place_put(&push->copy, push->base);
    if (push->fd >= 0)
        close(push->fd);
    free(push);
    return code;
}
