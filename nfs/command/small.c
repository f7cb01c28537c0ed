/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* small.c - `rddp nfs mkdir`, `rm` and `df`. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "nfs/command/nfs.h"

enum { RM_ROUNDS = 100 }; /* attempts to empty a directory in which new names appear */

static int small_worse(int a, int b)
{
    return a > b ? a : b;
}

/* Runs `one` for each HOST:/PATH, in a session of its own. Returns the worst exit code. */
static int for_each(const struct nfs_options *options, int argc, char **argv, int (*one)(struct nfs_session *s))
{
    int code = 0;
    for (int i = 0; i < argc && !tool_stopped; i++) {
        struct nfs_session s;
        int this = nfs_session_open(&s, options, argv[i]);
        if (!this)
            this = one(&s);
        nfs_session_close(&s);
        code = small_worse(code, this);
    }
    return code;
}

/* Runs an op without a buffer. Returns 0, or a negative errno and the reason in `*why`. */
static int call(struct nfs_session *s, struct nfs_op *op, const char **why)
{
    int error = nfs_call(s->client, op);
    *why = nfs_why(op);
    nfs_forget(op);
    return error;
}

/* --- mkdir --------------------------------------------------------------------------------------------------- */

static int small_make(struct nfs_session *s, const struct nfs3_fh *dir, const char *name, bool may_be, const char **why)
{
    struct nfs_op op = {.proc = NFS3_MKDIR};
    op.args.make.where.dir = *dir;
    op.args.make.where.name = (struct nfs3_text){name, (uint32_t)strlen(name)};
    op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = 0755};
    int error = call(s, &op, why);
    return error == -EEXIST && may_be ? 0 : error;
}

/* Creates the path name by name from the root on. */
static int small_make_path(struct nfs_session *s)
{
    char path[XFER_PATH + 1];
    const char *why = "";
    struct nfs3_fh dir = *nfs_root(s->client);
    struct nfs3_attr attr;
    for (size_t at = 0, n; s->inside[at]; at += n + strspn(s->inside + at + n, "/")) {
        n = strcspn(s->inside + at, "/");
        memcpy(path, s->inside, at + n);
        path[at + n] = 0;
        int error = nfs_lookup(s->client, path, true, &dir, &attr);
        if (error == -ENOENT) {
            char *slash = strrchr(path, '/');
            if (slash)
                *slash = 0;
            error = nfs_lookup(s->client, slash ? path : "", true, &dir, &attr);
            if (!error) {
                error = small_make(s, &dir, slash ? slash + 1 : path, true, &why);
                if (error)
                    return nfs_fail(s, nfs_exit_code(error), "", why);
            }
        } else if (!error && attr.type != NFS3_DIR) {
            error = -ENOTDIR;
        }
        if (error)
            return nfs_fail(s, nfs_exit_code(error), "", nfs_errno_text(error));
    }
    return 0;
}

static int mkdir_one(struct nfs_session *s)
{
    char name[XFER_NAME + 1];
    struct nfs3_fh dir;
    const char *why;
    if (s->options->parents)
        return small_make_path(s);
    int code = nfs_parent(s, &dir, name);
    if (code)
        return code;
    int error = small_make(s, &dir, name, false, &why);
    return error ? nfs_fail(s, nfs_exit_code(error), "", why) : 0;
}

int nfs_mkdir(const struct nfs_options *options, int argc, char **argv)
{
    return for_each(options, argc, argv, mkdir_one);
}

/* --- rm ------------------------------------------------------------------------------------------------------ */

static int remove_name(struct nfs_session *s, enum nfs3_proc proc, const struct nfs3_fh *dir, const char *name,
                       const char **why)
{
    struct nfs_op op = {.proc = proc};
    op.args.where.dir = *dir;
    op.args.where.name = (struct nfs3_text){name, (uint32_t)strlen(name)};
    return call(s, &op, why);
}

static int remove_tree(struct nfs_session *s, const struct nfs3_fh *parent, const struct nfs_item *item,
                       const char *path, unsigned deep);

/* Removes all entries that one reading of the directory shows, and counts them in `gone`. */
static int empty(struct nfs_session *s, const struct nfs3_fh *dir, const char *path, unsigned deep, uint64_t *gone)
{
    char below[XFER_PATH + 1];
    struct nfs_list list;
    struct nfs_item item;
    int error, code = 0;
    nfs_list_open(&list, s->client, dir, false);
    while (!code && (error = nfs_list_next(&list, &item)) != 0) {
        if (error > 0 && (deep == XFER_DEPTH || !nfs_join(below, path, item.name)))
            code = nfs_fail(s, EXIT_FAILED, path, xfer_result_text(XFER_TOO_DEEP));
        else if (error < 0)
            code = nfs_fail(s, nfs_exit_code(error), path, list.trouble);
        if (code)
            break;
        code = remove_tree(s, dir, &item, below, deep + 1);
        ++*gone;
    }
    nfs_list_close(&list);
    return code;
}

/* Removing entries may make a server skip others. The directory is then not empty, and is read again. */
static int remove_tree(struct nfs_session *s, const struct nfs3_fh *parent, const struct nfs_item *item,
                       const char *path, unsigned deep)
{
    const char *why = "";
    bool dir = item->attr.type == NFS3_DIR;
    int error = -ENOTEMPTY, code = 0;
    for (int round = 0; error == -ENOTEMPTY && round < RM_ROUNDS; round++) {
        uint64_t gone = 0;
        if (dir)
            code = empty(s, &item->fh, path, deep, &gone);
        if (code)
            return code;
        error = remove_name(s, dir ? NFS3_RMDIR : NFS3_REMOVE, parent, item->name, &why);
        if (error == -ENOTEMPTY && round && !gone)
            break;
    }
    return error ? nfs_fail(s, nfs_exit_code(error), path, why) : 0;
}

static int rm_one(struct nfs_session *s)
{
    struct nfs3_fh dir;
    struct nfs_item item;
    int code = nfs_parent(s, &dir, item.name);
    if (code)
        return code;
    int error = nfs_lookup(s->client, s->inside, false, &item.fh, &item.attr);
    if (error == -ENOENT && s->options->force)
        return 0;
    if (error)
        return nfs_fail(s, nfs_exit_code(error), "", nfs_errno_text(error));
    if (item.attr.type == NFS3_DIR && !s->options->recursive)
        return nfs_fail(s, EXIT_FAILED, "", "is a directory (-r removes it)");
    return remove_tree(s, &dir, &item, "", 0);
}

int nfs_rm(const struct nfs_options *options, int argc, char **argv)
{
    return for_each(options, argc, argv, rm_one);
}

/* --- df ------------------------------------------------------------------------------------------------------ */

static int df_one(struct nfs_session *s)
{
    struct nfs_op op = {.proc = NFS3_FSSTAT};
    struct nfs3_attr attr;
    char total[SMALL_TEXT], used[SMALL_TEXT], left[SMALL_TEXT], name[XFER_TEXT];
    const char *why;
    int error = nfs_lookup(s->client, s->inside, true, &op.args.fh, &attr);
    if (error)
        return nfs_fail(s, nfs_exit_code(error), "", nfs_errno_text(error));
    error = call(s, &op, &why);
    if (error)
        return nfs_fail(s, nfs_exit_code(error), "", why);
    uint64_t all = op.result.fsstat.total_bytes, free = op.result.fsstat.free_bytes;
    bool human = s->options->human;
    printf("%s: %s octets, %s used, %s available; %" PRIu64 " of %" PRIu64 " files free\n",
           xfer_printable(name, s->name), nfs_size_text(total, all, human),
           nfs_size_text(used, free < all ? all - free : 0, human),
           nfs_size_text(left, op.result.fsstat.available_bytes, human), op.result.fsstat.free_files,
           op.result.fsstat.total_files);
    return 0;
}

int nfs_df(const struct nfs_options *options, int argc, char **argv)
{
    return for_each(options, argc, argv, df_one);
}
