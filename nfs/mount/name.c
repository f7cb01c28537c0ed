/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name.c - removes and renames. A file that is open here keeps a name until its last close: it is renamed to ".nfs" and
 * a number first, as other NFS clients do. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "nfs/mount/mount.h"

/* --- silly names ----------------------------------------------------------------------------------------------- */

static struct nfs3_where silly_where(const struct silly *silly)
{
    return (struct nfs3_where){.dir = silly->dir, .name = {silly->name, (uint32_t)strlen(silly->name)}};
}

static bool meets_leaving(const struct mount_call *c)
{
    for (const struct silly *s = c->m->leaving; s; s = s->next) {
        if (s->since <= c->wait.seq)
            return true;
    }
    return false;
}

void when_gone(struct mount_call *c, void (*then)(struct mount_call *))
{
    c->wait.seq = c->m->clock;
    call_waits(c, &c->m->behind, meets_leaving, then);
}

void silly_leave(struct mount *m, struct inode *inode)
{
    struct silly *silly = inode->silly;

    if (!silly || silly->since)
        return;
    silly->since = ++m->clock;
    silly->next = m->leaving;
    m->leaving = silly;
}

/* The name is gone, or it stays. */
static void silly_left(struct mount *m, struct silly *silly)
{
    struct silly **at = &m->leaving;

    while (*at && *at != silly)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = silly->next;
    silly->since = 0;
    calls_serve(&m->behind, meets_leaving);
}

static void silly_removed(struct mount_call *c)
{
    silly_left(c->m, c->silly);
    call_end(c);
}

void silly_remove(struct mount *m, struct inode *inode)
{
    struct mount_call *c = inode->silly && !inode->opens ? call_new(m, NULL) : NULL;

    if (!c) { /* no memory, or the silly name was opened again */
        silly_left(m, inode->silly);
        return;
    }
    silly_leave(m, inode);
    c->silly = inode->silly;
    inode->silly = NULL;
    c->cred = c->silly->cred;
    c->op.args.where = silly_where(c->silly);
    call_start(c, NFS3_REMOVE, silly_removed);
}

static struct silly *silly_new(const struct mount_call *c, const struct inode *dir)
{
    struct silly *silly = malloc(sizeof(*silly));
    uint64_t number;

    if (!silly || getrandom(&number, sizeof(number), 0) != sizeof(number)) {
        free(silly);
        return NULL;
    }
    *silly = (struct silly){.dir = dir->fh, .cred = c->cred};
    snprintf(silly->name, sizeof(silly->name), ".nfs%016" PRIx64, number);
    return silly;
}

static void hidden(struct mount_call *c)
{
    if (call_failed(c))
        return;
    c->hidden = true;
    c->target->silly = c->silly;
    c->silly = NULL;
    c->after(c);
}

static void hide(struct mount_call *c)
{
    const struct inode *dir = c->other ? c->other : c->inode;
    struct inode *target = c->op.result.status ? NULL : inodes_seek(&c->m->inodes, &c->op.result.fh);

    if (c->op.error) {
        call_reply_error(c, call_error(c));
        return;
    }
    if (!target || !target->opens || target->silly) {
        c->after(c);
        return;
    }
    c->silly = silly_new(c, dir);
    if (!c->silly) {
        call_reply_error(c, ENOMEM);
        return;
    }
    inode_pin(target);
    c->target = target;
    c->op.args.rename.from = call_where(c, dir, c->other ? 1 : 0);
    c->op.args.rename.to = silly_where(c->silly);
    call_start(c, NFS3_RENAME, hidden);
}

/* The last name in the last directory of the call is about to be removed. Hides the file if it is open here, then calls
 * `after`. */
static void hide_if_open(struct mount_call *c, void (*after)(struct mount_call *))
{
    c->after = after;
    if (!c->m->files) {
        after(c);
        return;
    }
    c->op.args.where = call_where(c, c->other ? c->other : c->inode, c->other ? 1 : 0);
    call_start(c, NFS3_LOOKUP, hide);
}

/* --- operations ------------------------------------------------------------------------------------------------ */

static void name_removed(struct mount_call *c)
{
    call_reply_error(c, call_error(c));
}

static void unlink_now(struct mount_call *c)
{
    if (!c->hidden) {
        c->op.args.where = call_where(c, c->inode, 0);
        call_start(c, NFS3_REMOVE, name_removed);
        return;
    }
    silly_remove(c->m, c->target); /* the file may have been closed meanwhile */
    call_reply_error(c, 0);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (c && call_inode(c, parent) && call_name(c, 0, name))
        hide_if_open(c, unlink_now);
}

static void rmdir_now(struct mount_call *c)
{
    c->op.args.where = call_where(c, c->inode, 0);
    call_start(c, NFS3_RMDIR, name_removed);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (c && call_inode(c, parent) && call_name(c, 0, name))
        when_gone(c, rmdir_now);
}

static void rename_undone(struct mount_call *c)
{
    call_reply_error(c, c->error);
}

static void renamed(struct mount_call *c)
{
    c->error = call_error(c);
    if (c->error && c->hidden && c->target->silly) {
        c->silly = c->target->silly;
        c->target->silly = NULL;
        silly_left(c->m, c->silly);
        c->op.args.rename.from = silly_where(c->silly);
        c->op.args.rename.to = call_where(c, c->other, 1);
        call_start(c, NFS3_RENAME, rename_undone);
        return;
    }
    if (c->hidden)
        silly_remove(c->m, c->target);
    call_reply_error(c, c->error);
}

static void rename_start(struct mount_call *c)
{
    c->op.args.rename.from = call_where(c, c->inode, 0);
    c->op.args.rename.to = call_where(c, c->other, 1);
    call_start(c, NFS3_RENAME, renamed);
}

static void rename_now(struct mount_call *c) /* perhaps over a directory */
{
    when_gone(c, rename_start);
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent, const char *newname,
               unsigned flags)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, parent) || !call_other(c, newparent) || !call_name(c, 0, name) ||
        !call_name(c, 1, newname))
        return;
    if (flags) /* NFS version 3 has neither exchange nor rename without replacing */
        call_reply_error(c, EINVAL);
    else
        hide_if_open(c, rename_now);
}
#endif
