/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount_call.c - one request of the kernel: its caller, its inodes, and the NFS calls made for it. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/mount/mount.h"

/* The server needs the caller's groups, which only /proc tells. They are cached for GROUPS_NS. */
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

static void mount_call_read_cred(struct rpc_cred *cred, fuse_req_t req)
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

/* Notes that a request was interrupted by a signal. Whether the signal is deadly is checked later: other signals must
 * not end an operation on a file. */
static void interrupted(fuse_req_t req, void *data)
{
    struct mount_call *c = data;

    (void)req;
    for (const struct mount_call *other = c->m->killed; other; other = other->next_killed) {
        if (other == c)
            return;
    }
    c->next_killed = c->m->killed;
    c->m->killed = c;
}

struct mount_call *call_new(struct mount *m, fuse_req_t req)
{
    struct mount_call *c = malloc(sizeof(*c));

    if (!c) {
        if (req)
            fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    memset(c, 0, sizeof(*c));
    c->m = m;
    c->req = req;
    if (req) {
        mount_call_read_cred(&c->cred, req);
        fuse_req_interrupt_func(req, interrupted, c);
    } else {
        m->owed++;
    }
    return c;
}

static void forget_killed(struct mount_call *c)
{
    struct mount_call **at = &c->m->killed;

    while (*at && *at != c)
        at = &(*at)->next_killed;
    if (*at)
        *at = c->next_killed;
}

void call_end(struct mount_call *c)
{
    struct mount *m = c->m;

    forget_killed(c);
    if (c->inode)
        inode_unpin(&m->inodes, c->inode);
    if (c->other)
        inode_unpin(&m->inodes, c->other);
    if (c->target)
        inode_unpin(&m->inodes, c->target);
    if (c->file)
        handle_leave(c->file);
    if (!c->req)
        m->owed--;
    nfs_forget(&c->op);
    free(c->silly);
    free(c->text);
    free(c->buffer);
    free(c);
}

void call_reply_error(struct mount_call *c, int error)
{
    if (c->req)
        fuse_reply_err(c->req, error);
    call_end(c);
}

static bool mount_call_find(struct mount_call *c, fuse_ino_t ino, struct inode **at)
{
    *at = inodes_find(&c->m->inodes, ino);
    if (*at) {
        inode_pin(*at);
        return true;
    }
    call_reply_error(c, ESTALE);
    return false;
}

bool call_inode(struct mount_call *c, fuse_ino_t ino)
{
    return mount_call_find(c, ino, &c->inode);
}

bool call_other(struct mount_call *c, fuse_ino_t ino)
{
    return mount_call_find(c, ino, &c->other);
}

bool call_name(struct mount_call *c, int which, const char *name)
{
    size_t n = strlen(name);

    if (n > NFS3_NAME_MAX) {
        call_reply_error(c, ENAMETOOLONG);
        return false;
    }
    memcpy(c->name[which], name, n + 1);
    return true;
}

struct nfs3_where call_where(const struct mount_call *c, const struct inode *dir, int which)
{
    return (struct nfs3_where){.dir = dir->fh, .name = {c->name[which], (uint32_t)strlen(c->name[which])}};
}

void call_as_opener(struct mount_call *c, struct file *f)
{
    c->file = f;
    f->users++;
    c->cred = f->cred;
}

/* --- the call -------------------------------------------------------------------------------------------------- */

static bool is_change(enum nfs3_proc proc)
{
    return proc == NFS3_SETATTR || proc == NFS3_WRITE || (proc >= NFS3_CREATE && proc <= NFS3_LINK);
}

static void mount_call_done(struct nfs_op *op)
{
    struct mount_call *c = (struct mount_call *)op;

    c->under_way = false;
    c->m->calls--;
    c->m->changes += is_change(op->proc);
    c->then(c);
}

void call_start(struct mount_call *c, enum nfs3_proc proc, void (*then)(struct mount_call *c))
{
    c->op.proc = proc;
    c->op.done = mount_call_done;
    c->op.cred = &c->cred;
    c->then = then;
    c->started = ++c->m->clock;
    if (c->m->closing) {
        c->op.error = -ECANCELED;
        then(c);
        return;
    }
    c->under_way = true;
    c->m->calls++;
    nfs_start(c->m->client, &c->op);
}

/* --- calls that wait ------------------------------------------------------------------------------------------- */

static void mount_call_append(struct mount_call **list, struct mount_call *c)
{
    while (*list)
        list = &(*list)->next;
    c->next = NULL;
    *list = c;
}

bool call_waits(struct mount_call *c, struct mount_call **queue, bool (*waits)(const struct mount_call *c),
                void (*then)(struct mount_call *c))
{
    c->after = then;
    if (!waits(c)) {
        then(c);
        return false;
    }
    mount_call_append(queue, c);
    c->wait.queue = queue;
    return true;
}

static void unqueue(struct mount_call *c)
{
    struct mount_call **at = c->wait.queue;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->wait.queue = NULL;
}

void calls_serve(struct mount_call **queue, bool (*waits)(const struct mount_call *c))
{
    struct mount_call *ready = NULL, *c, *next;

    for (c = *queue; c; c = next) {
        next = c->next;
        if (!waits(c)) {
            unqueue(c);
            mount_call_append(&ready, c);
        }
    }
    while ((c = ready)) {
        ready = c->next;
        c->after(c);
    }
}

/* --- processes that are killed --------------------------------------------------------------------------------- */

/* Whether a SIGKILL is pending, which every deadly signal becomes, or the process is exiting and closes its files. */
static bool is_dying(pid_t pid)
{
    enum { EXITING = 4, LINE = 512 }; /* PF_EXITING of the kernel; see proc(5) */
    char path[SMALL_TEXT], line[LINE];
    unsigned long long pending = 0;
    unsigned flags = 0;
    bool dying = false;
    const char *at;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = pid ? fopen(path, "re") : NULL;
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "SigPnd: %llx", &pending) == 1 || sscanf(line, "ShdPnd: %llx", &pending) == 1)
            dying |= pending >> (SIGKILL - 1) & 1;
    }
    if (f)
        fclose(f);
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = pid ? fopen(path, "re") : NULL;
    if (f && fgets(line, sizeof(line), f) && (at = strrchr(line, ')')) &&
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1)
        dying |= flags & EXITING;
    if (f)
        fclose(f);
    return dying;
}

static void kill_call(struct mount_call *c)
{
    if (c->reader.dir) {
        c->reader.cancel(c->reader.dir);
    } else if (c->under_way) {
        nfs_cancel(c->m->client, &c->op);
        c->op.error = -EINTR;
        mount_call_done(&c->op);
    } else if (c->wait.queue) {
        unqueue(c);
        call_reply_error(c, EINTR);
    }
}

void calls_kill(struct mount *m)
{
    for (struct mount_call *c = m->killed, *next; c; c = next) {
        next = c->next_killed;
        if (is_dying(fuse_req_ctx(c->req)->pid)) {
            forget_killed(c);
            kill_call(c);
            next = m->killed; /* the list may have changed: start again */
        }
    }
}

int call_error(const struct mount_call *c)
{
    int error = c->op.error ? c->op.error : nfs3_errno(c->op.result.status);

    /* A call timed out with --soft; programs expect EIO. */
    return error == -ETIMEDOUT || error == -ECANCELED ? EIO : -error;
}

bool call_failed(struct mount_call *c)
{
    int error = call_error(c);

    if (error)
        call_reply_error(c, error);
    return error != 0;
}
#endif
