/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount_call.c - one request of the kernel: who asks, for which inodes, and the call that is made for it. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mount.h"

/* The server is told who asks; a process has its groups in /proc alone, so they are remembered for a moment. */
enum { GROUPS_KEPT = 64, GROUPS_NS = 1000000000 };

struct kept_groups {
    pid_t pid;
    uid_t uid;
    gid_t gid;
    uint64_t at_ns;
    uint32_t groups, group[RPC_GROUPS_MAX];
};

static struct kept_groups kept[GROUPS_KEPT];

static void read_groups(struct kept_groups *k, fuse_req_t req)
{
    gid_t group[RPC_GROUPS_MAX];
    int n = fuse_req_getgroups(req, RPC_GROUPS_MAX, group);

    k->groups = n < 0 ? 0 : n > RPC_GROUPS_MAX ? RPC_GROUPS_MAX : (uint32_t)n;
    for (uint32_t i = 0; i < k->groups; i++)
        k->group[i] = group[i];
}

static void read_cred(struct rpc_cred *cred, fuse_req_t req)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    struct kept_groups *k = &kept[(unsigned)ctx->pid % GROUPS_KEPT];
    uint64_t now = clock_ns();

    if (!ctx->pid || k->pid != ctx->pid || k->uid != ctx->uid || k->gid != ctx->gid || now - k->at_ns > GROUPS_NS) {
        *k = (struct kept_groups){.pid = ctx->pid, .uid = ctx->uid, .gid = ctx->gid, .at_ns = now};
        if (ctx->pid)
            read_groups(k, req);
    }
    *cred = (struct rpc_cred){.flavor = RPC_AUTH_SYS, .uid = ctx->uid, .gid = ctx->gid, .groups = k->groups};
    memcpy(cred->group, k->group, sizeof(cred->group));
}

struct call *call_new(struct mount *m, fuse_req_t req)
{
    struct call *c = malloc(sizeof(*c));

    if (!c) {
        if (req)
            fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    memset(c, 0, sizeof(*c));
    c->m = m;
    c->req = req;
    if (req)
        read_cred(&c->cred, req);
    else
        m->owed++;
    return c;
}

void call_end(struct call *c)
{
    struct mount *m = c->m;

    if (c->inode)
        inode_unpin(&m->inodes, c->inode);
    if (c->other)
        inode_unpin(&m->inodes, c->other);
    if (c->target)
        inode_unpin(&m->inodes, c->target);
    if (!c->req)
        m->owed--;
    nfs_forget(&c->op);
    free(c->silly);
    free(c->text);
    free(c->buffer);
    free(c);
}

void call_reply_error(struct call *c, int error)
{
    if (c->req)
        fuse_reply_err(c->req, error);
    call_end(c);
}

static bool find(struct call *c, fuse_ino_t ino, struct inode **at)
{
    *at = inodes_find(&c->m->inodes, ino);
    if (*at) {
        inode_pin(*at);
        return true;
    }
    call_reply_error(c, ESTALE);
    return false;
}

bool call_inode(struct call *c, fuse_ino_t ino)
{
    return find(c, ino, &c->inode);
}

bool call_other(struct call *c, fuse_ino_t ino)
{
    return find(c, ino, &c->other);
}

bool call_name(struct call *c, int which, const char *name)
{
    size_t n = strlen(name);

    if (n > NFS3_NAME_MAX) {
        call_reply_error(c, ENAMETOOLONG);
        return false;
    }
    memcpy(c->name[which], name, n + 1);
    return true;
}

struct nfs3_where call_where(const struct call *c, const struct inode *dir, int which)
{
    return (struct nfs3_where){.dir = dir->fh, .name = {c->name[which], (uint32_t)strlen(c->name[which])}};
}

void call_as_opener(struct call *c, struct file *f)
{
    c->file = f;
    c->cred = f->cred;
}

/* --- the call -------------------------------------------------------------------------------------------------- */

static bool is_change(enum nfs3_proc proc)
{
    return proc == NFS3_SETATTR || proc == NFS3_WRITE || (proc >= NFS3_CREATE && proc <= NFS3_LINK);
}

static void done(struct nfs_op *op)
{
    struct call *c = (struct call *)op;

    c->m->calls--;
    c->m->changes += is_change(op->proc);
    c->then(c);
}

void call_start(struct call *c, enum nfs3_proc proc, void (*then)(struct call *c))
{
    c->op.proc = proc;
    c->op.done = done;
    c->op.cred = &c->cred;
    c->then = then;
    c->started = ++c->m->clock;
    if (c->m->closing) {
        c->op.error = -ECANCELED;
        then(c);
        return;
    }
    c->m->calls++;
    nfs_start(c->m->client, &c->op);
}

int call_error(const struct call *c)
{
    int error = c->op.error ? c->op.error : nfs3_errno(c->op.result.status);

    /* With --soft; a program expects EIO. */
    return error == -ETIMEDOUT || error == -ECANCELED ? EIO : -error;
}

bool call_failed(struct call *c)
{
    int error = call_error(c);

    if (error)
        call_reply_error(c, error);
    return error != 0;
}
#endif
