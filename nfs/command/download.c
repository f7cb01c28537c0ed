/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* download.c - copies from a server to the file system. Names come from the server: each is used as a single name in an
 * open directory without following links, and a file gets its name only when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs/command/nfs_copy.h"
#include "tools/xfer/store.h"

struct level {
    struct nfs_list list;
    struct copy_place *place;
};

struct pull {
    struct nfs_copy copy;
    struct nfs_item top;
    bool top_is_next;
    struct copy_place *base;
    struct path_place where;
    struct level *level;
    unsigned depth;
};

/* --- a file -------------------------------------------------------------------------------------------------- */

static void pull_ask(struct copy_job *job, struct slot *slot)
{
    slot->op.proc = NFS3_READ;
    slot->op.args.range.fh = job->fh;
    slot->op.args.range.offset = slot->offset + slot->done;
    slot->op.args.range.count = slot->length - slot->done;
    slot->op.buffer = slot->buffer;
}

static bool pull_issue(struct copy_job *job, struct slot *slot)
{
    uint64_t left = job->size - job->next_offset;
    if (job->state == JOB_DIGEST)
        return digest_issue(job, slot);
    if (left == 0)
        return false;
    slot->offset = job->next_offset;
    slot->length = left < slot->copy->capacity ? (uint32_t)left : slot->copy->capacity;
    slot->done = 0;
    job->next_offset += slot->length;
    pull_ask(job, slot);
    return true;
}

static bool pull_store(struct nfs_copy *copy, struct copy_job *job, const struct slot *slot, uint32_t n)
{
    for (uint32_t at = 0; at < n;) {
        ssize_t put = pwrite(job->fd, slot->buffer + at, n - at, (off_t)(slot->offset + slot->done + at));
        if (put < 0 && errno != EINTR) {
            job_fail(copy, job, EXIT_FAILED, xfer_result_text(xfer_result_of(errno)));
            return false;
        }
        at += put < 0 ? 0 : (uint32_t)put;
    }
    return true;
}

static bool pull_done(struct copy_job *job, struct slot *slot)
{
    struct nfs_copy *copy = slot->copy;
    const struct nfs3_result *result = &slot->op.result;
    if (slot->op.proc == NFS3_DIGEST) {
        digest_done(job, slot);
        return true;
    }
    if (slot->op.error || result->status != NFS3_OK) {
        job_fail(copy, job, nfs_exit_code(slot->op.error), nfs_why(&slot->op));
        return true;
    }
    uint32_t n = result->read.count;
    if (job->failed || !pull_store(copy, job, slot, n))
        return true;
    slot->done += n;
    copy->report->octets += n;
    if (slot->done == slot->length)
        return true;
    if (result->read.eof || n == 0) {
        job_fail(copy, job, result->read.eof ? EXIT_FAILED : EXIT_PROTOCOL,
                 result->read.eof ? "it ends before the size that the server gave"
                                  : "the server gives neither octets nor the end");
        return true;
    }
    pull_ask(job, slot);
    nfs_start(copy->session->client, &slot->op);
    return false;
}

static int finish_file(struct nfs_copy *copy, const struct copy_job *job)
{
    struct timespec times[2] = {{job->atime.s, job->atime.ns}, {job->mtime.s, job->mtime.ns}};
    if (times[0].tv_nsec >= 1000000000 || times[1].tv_nsec >= 1000000000)
        times[0].tv_nsec = times[1].tv_nsec = 0;
    if (fchmod(job->fd, job->mode & 0777))
        return errno;
    int error = store_check(job->fd, copy->session->options->sync);
    if (error)
        return -error;
    /* Not before: a part with this time is taken for one that is stored. */
    if (futimens(job->fd, times))
        return errno;
    return renameat(job->place->fd, job->temp, job->place->fd, job->name) ? errno : 0;
}

/* Keeps an incomplete temporary file for the next time. READs end in any order, so it is cut to the part without gaps
 * and gets the modification time of the server's file, by which find_part() recognizes it. The octets are not compared
 * then, so they have to be on the disk. */
static bool keep_part(const struct copy_job *job)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {job->mtime.s, job->mtime.ns}};
    return job->size >= XFER_RESUMABLE && job->prefix && job->mtime.ns < 1000000000 &&
           !ftruncate(job->fd, (off_t)job->prefix) && !futimens(job->fd, times) && !store_check(job->fd, true);
}

/* Finds and locks what an earlier command left of this file. Its size becomes job->next_offset. -1: nothing. */
static int find_part(struct copy_job *job)
{
    struct stat st;
    int fd = job->size >= XFER_RESUMABLE ? temp_find(job->place->fd, job->temp) : -1;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) || !st.st_size || (uint64_t)st.st_size > job->size || st.st_mtim.tv_sec != job->mtime.s ||
        st.st_mtim.tv_nsec != job->mtime.ns) {
        close(fd);
        return -1;
    }
    job->next_offset = (uint64_t)st.st_size;
    return fd;
}

static bool pull_settle(struct nfs_copy *copy, struct copy_job *job)
{
    if (!job->failed && job->next_offset < job->size)
        return false;
    if (!job->failed && digest_is_due(copy, job)) {
        job->state = JOB_DIGEST;
        return false;
    }
    int error = job->failed ? 0 : finish_file(copy, job);
    if (error)
        job_fail(copy, job, EXIT_FAILED, xfer_result_text(xfer_result_of(error)));
    if (job->failed && *job->temp && !(job->interrupted && keep_part(job)))
        unlinkat(job->place->fd, job->temp, 0);
    if (job->fd >= 0)
        close(job->fd);
    copy->report->files += !job->failed;
    copy->report->verified += !job->failed && job->size && job->verified_octets == job->size;
    return true;
}

static int open_file(struct nfs_copy *copy, struct copy_job *job, const struct nfs3_attr *attr)
{
    struct path_stamp stamp = {attr->size, attr->mtime.s, attr->mtime.ns};
    if (attr->size > INT64_MAX)
        return -EFBIG;
    temp_name(job->temp, job->name, &stamp);
    job->fd = find_part(job);
    if (job->fd >= 0) {
        nfs_report_resumed(copy->report, job->name, job->next_offset);
        return 0;
    }
    job->fd = temp_make(job->place->fd, job->temp, job->name);
    if (job->fd < 0) {
        job->temp[0] = 0;
        return job->fd;
    }
    return 0;
}

static void pull_start_file(struct pull *pull, struct copy_place *place, const struct nfs_item *item, const char *name)
{
    struct nfs_copy *copy = &pull->copy;
    struct copy_job *job = job_make(copy, place, name);
    if (!job) {
        copy_fail(copy, place->path, EXIT_FAILED, xfer_result_text(XFER_NO_MEMORY));
        return;
    }
    job->state = JOB_DATA;
    job->fh = item->fh;
    job->size = item->attr.size;
    job->mode = item->attr.mode;
    job->mtime = item->attr.mtime;
    job->atime = item->attr.atime;
    int error = open_file(copy, job, &item->attr);
    if (error)
        job_fail(copy, job, EXIT_FAILED, xfer_result_text(xfer_result_of(-error)));
}

/* --- a directory --------------------------------------------------------------------------------------------- */

static bool pull_leave(struct nfs_copy *copy, struct copy_place *place)
{
    struct timespec times[2] = {{place->atime.s, place->atime.ns}, {place->mtime.s, place->mtime.ns}};
    if (times[0].tv_nsec >= 1000000000 || times[1].tv_nsec >= 1000000000)
        times[0].tv_nsec = times[1].tv_nsec = 0;
    if (place->finish && (futimens(place->fd, times) || fchmod(place->fd, place->mode & 01777)))
        copy_fail(copy, place->path, EXIT_FAILED, xfer_result_text(xfer_result_of(errno)));
    if (place->fd >= 0)
        close(place->fd);
    return true;
}

static int pull_make_directory(int parent, const char *name)
{
    if (mkdirat(parent, name, 0700) && errno != EEXIST)
        return -errno;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Enters a directory: `name` is its path below the one the user gave, `local` its name here. */
static void pull_enter(struct pull *pull, struct copy_place *up, const struct nfs_item *item, const char *name,
                       const char *local)
{
    struct nfs_copy *copy = &pull->copy;
    char path[XFER_PATH + 1] = "";
    if (pull->depth == XFER_DEPTH || !nfs_join(path, up->path, name)) {
        copy_fail(copy, up->path, EXIT_FAILED, xfer_result_text(XFER_TOO_DEEP));
        return;
    }
    int fd = *local ? pull_make_directory(up->fd, local) : openat(up->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!*local && fd < 0)
        fd = -errno;
    struct copy_place *place = fd < 0 ? NULL : place_make(up, name);
    if (!place) {
        copy_fail(copy, path, EXIT_FAILED, xfer_result_text(fd < 0 ? xfer_result_of(-fd) : XFER_NO_MEMORY));
        if (fd >= 0)
            close(fd);
        return;
    }
    place->fd = fd;
    place->finish = *local;
    place->mode = item->attr.mode;
    place->mtime = item->attr.mtime;
    place->atime = item->attr.atime;
    copy->report->directories++;
    struct level *level = &pull->level[pull->depth++];
    level->place = place;
    nfs_list_open(&level->list, copy->session->client, &item->fh, false);
}

static void pull_leave_level(struct pull *pull)
{
    struct level *level = &pull->level[--pull->depth];
    nfs_list_close(&level->list);
    place_put(&pull->copy, level->place);
}

/* --- what is neither ----------------------------------------------------------------------------------------- */

static int pull_make_link(int dir, const char *name, const char *target)
{
    if (!symlinkat(target, dir, name))
        return 0;
    struct stat st;
    if (errno != EEXIST || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISLNK(st.st_mode))
        return -errno;
    return unlinkat(dir, name, 0) || symlinkat(target, dir, name) ? -errno : 0;
}

/* Copies a symbolic link unchanged, wherever it leads: nothing here follows it. */
static void pull_copy_link(struct pull *pull, struct copy_place *place, const struct nfs_item *item, const char *name)
{
    struct nfs_copy *copy = &pull->copy;
    char target[NFS3_PATH_MAX + 1] = "", path[XFER_PATH + 1];
    struct nfs_op op = {.proc = NFS3_READLINK, .args.fh = item->fh, .buffer = target};
    const char *why = NULL;
    int error = nfs_call(copy->session->client, &op);
    if (error) {
        why = nfs_why(&op);
    } else {
        target[op.result.target.length] = 0;
        if (!*target || strlen(target) != op.result.target.length)
            error = -EPROTO, why = "the server returns a symbolic link that is empty or contains a NUL";
    }
    if (!error && (error = pull_make_link(place->fd, name, target)) != 0)
        why = xfer_result_text(xfer_result_of(-error));
    if (error)
        copy_fail(copy, nfs_join(path, place->path, name) ? path : name, nfs_exit_code(error), why);
    else
        copy->report->links++;
    nfs_forget(&op);
}

static void pull_take(struct pull *pull, struct copy_place *place, const struct nfs_item *item, const char *local)
{
    char path[XFER_PATH + 1];
    switch (item->attr.type) {
    case NFS3_DIR:
        pull_enter(pull, place, item, place == pull->base ? "" : item->name, local);
        break;
    case NFS3_REG:
        pull_start_file(pull, place, item, local);
        break;
    case NFS3_LNK:
        pull_copy_link(pull, place, item, local);
        break;
    default:
        copy_fail(&pull->copy, nfs_join(path, place->path, item->name) ? path : item->name, EXIT_FAILED,
                  xfer_result_text(XFER_NOT_FILE));
    }
}

static int pull_more(struct nfs_copy *copy)
{
    struct pull *pull = copy->walker;
    struct nfs_item item;
    if (pull->top_is_next) {
        pull->top_is_next = false;
        pull_take(pull, pull->base, &pull->top, pull->where.top);
        return -1;
    }
    if (!pull->depth)
        return 0;
    struct level *level = &pull->level[pull->depth - 1];
    int error = nfs_list_next(&level->list, &item);
    if (error > 0) {
        pull_take(pull, level->place, &item, item.name);
        return 1;
    }
    if (error < 0 && !tool_stopped)
        copy_fail(copy, level->place->path, nfs_exit_code(error), level->list.trouble);
    pull_leave_level(pull);
    return -1;
}

/* --- from the top -------------------------------------------------------------------------------------------- */

static int pull_look_up(struct pull *pull, struct nfs_session *s)
{
    int error = nfs_lookup(s->client, s->inside, true, &pull->top.fh, &pull->top.attr);
    if (error)
        return nfs_report_failure(pull->copy.report, nfs_exit_code(error), "%s: %s", s->name, nfs_errno_text(error));
    if (pull->top.attr.type == NFS3_DIR && !s->options->recursive)
        return nfs_report_failure(pull->copy.report, EXIT_FAILED, "%s: %s", s->name,
                                  xfer_result_text(XFER_NOT_RECURSIVE));
    return 0;
}

static int pull_find_place(struct pull *pull, struct nfs_session *s, const char *local)
{
    char name[XFER_NAME + 1] = "", path[XFER_PATH + 1];
    bool directory = pull->top.attr.type == NFS3_DIR;
    size_t n = strlen(local);
    unsigned flags = (directory ? XFER_IS_DIR : 0) | (n && local[n - 1] == '/' ? XFER_INTO : 0);
    enum xfer_result result = XFER_TOO_LONG;
    if (!s->remote.contents)
        last_name(name, s->remote.path);
    while (n > 1 && local[n - 1] == '/')
        n--;
    if (n <= XFER_PATH) {
        memcpy(path, local, n);
        path[n] = 0;
        result = path_place(AT_FDCWD, path, name, flags, &pull->where);
    }
    if (!result && !*pull->where.top && !directory) {
        close(pull->where.base);
        result = XFER_IS_DIRECTORY;
    }
    if (result)
        return nfs_report_failure(pull->copy.report, EXIT_FAILED, "%s: %s", local, xfer_result_text(result));
    pull->base = place_make(NULL, "");
    if (!pull->base)
        return nfs_report_failure(pull->copy.report, EXIT_FAILED, "out of memory");
    pull->base->fd = pull->where.base;
    return 0;
}

static const struct copy_direction pull_direction = {
    .pulls = true, .issue = pull_issue, .done = pull_done, .settle = pull_settle, .leave = pull_leave};

int pull_run(struct nfs_session *s, struct nfs_report *report, const char *local)
{
    struct pull *pull = calloc(1, sizeof(*pull));
    if (pull)
        pull->level = calloc(XFER_DEPTH, sizeof(*pull->level));
    int code = pull && pull->level ? copy_engine_open(&pull->copy, s, report, &pull_direction)
                                   : nfs_report_failure(report, EXIT_FAILED, "out of memory");
    if (!code)
        code = pull_look_up(pull, s);
    if (!code)
        code = pull_find_place(pull, s, local);
    if (!code) {
        pull->copy.more = pull_more;
        pull->copy.walker = pull;
        pull->top_is_next = true;
        digest_ask(&pull->copy);
        code = copy_engine_run(&pull->copy);
    }
    if (pull && pull->level) {
        copy_engine_close(&pull->copy);
        while (pull->depth)
            pull_leave_level(pull);
        place_put(&pull->copy, pull->base);
    }
    if (pull)
        free(pull->level);
    free(pull);
    return code;
}
