/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dir.c - open directories: fetches blocks of entries with READDIRPLUS and serves the kernel from them. Offsets are the
 * server's cookies. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/circle.h"
#include "nfs/nfs3_xdr.h"
#include "nfs/mount/mount.h"

enum {
    BLOCK_MAX = 64 << 10,
    ENTRY_MIN = 128, /* a lower bound for the octets of an entry with attributes */
};

/* An open directory; fi->fh points to it. */
struct dir {
    struct nfs_op op; /* the first member; holds the block that was fetched last */
    struct opened opened;
    struct mount *m;
    struct mount_call *call; /* the call that waits for the op */
    bool has_block, plus;
    bool bare; /* the server does not support READDIRPLUS: entries are names only */
    uint8_t verifier[NFS3_VERIFIER];
    struct xdr_in left;           /* entries of the block that the kernel did not get yet */
    uint64_t position;            /* the cookie before these entries */
    uint64_t reached;             /* the cookie of the last entry that the kernel got */
    struct circle circle;         /* of the entries up to it, if they were read in a row */
    uint64_t changes;             /* m->changes when the block was requested */
    uint64_t started, started_ns; /* m->clock and the time when the block was requested */
};

static struct dir *dir_of(const struct fuse_file_info *fi)
{
    return (struct dir *)(uintptr_t)fi->fh;
}

static void rewind_block(struct dir *d)
{
    d->left = (struct xdr_in){.at = d->op.result.list.entries, .left = d->op.result.list.length};
    d->position = d->op.args.list.cookie;
}

static bool next_entry(struct dir *d, struct nfs3_entry *entry)
{
    *entry = (struct nfs3_entry){0};
    return nfs3_get_entry(&d->left, entry, !d->bare);
}

/* --- entries --------------------------------------------------------------------------------------------------- */

static bool is_name(const struct nfs3_text *name)
{
    return name->length > 0 && name->length <= NFS3_NAME_MAX && !memchr(name->at, 0, name->length) &&
           !memchr(name->at, '/', name->length);
}

static bool dir_is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Describes an entry for the kernel. `*inode` is pinned, or NULL. */
static struct fuse_entry_param dir_describe(struct mount *m, const struct nfs3_entry *entry, const char *name,
                                            bool fresh, uint64_t since, struct inode **inode)
{
    double timeout_s = m->options->attr_timeout_s;
    struct fuse_entry_param e = {.generation = 1, .attr_timeout = timeout_s, .entry_timeout = timeout_s};

    *inode = NULL;
    if (entry->attr.present)
        e.attr = mount_stat(NULL, &entry->attr.attr);
    e.attr.st_ino = entry->fileid;
    if (!fresh || !entry->attr.present || !entry->fh.present || dir_is_dots(name))
        return e;
    *inode = inodes_get(&m->inodes, &entry->fh.fh);
    if (!*inode || mount_is_stale(*inode, since))
        return e;
    e.ino = (*inode)->ino;
    e.attr = mount_stat(*inode, &entry->attr.attr);
    return e;
}

struct filling {
    char *at;
    size_t capacity, used;
    struct inode *looked[BLOCK_MAX / ENTRY_MIN + 1]; /* inodes that the kernel will count a lookup for */
    unsigned count;
};

/* Adds an entry to the reply. Returns false if it does not fit. */
static bool add_entry(struct mount_call *c, struct dir *d, struct filling *to, const struct nfs3_entry *entry,
                      bool fresh)
{
    struct mount *m = d->m;
    char name[NFS3_NAME_MAX + 1];
    struct inode *inode;
    struct fuse_entry_param e;
    size_t n, left = to->capacity - to->used;

    memcpy(name, entry->name.at, entry->name.length);
    name[entry->name.length] = 0;
    e = dir_describe(m, entry, name, fresh && d->plus, d->started, &inode);
    if (d->plus)
        n = fuse_add_direntry_plus(c->req, to->at + to->used, left, name, &e, (off_t)entry->cookie);
    else
        n = fuse_add_direntry(c->req, to->at + to->used, left, name, &e.attr, (off_t)entry->cookie);
    if (n <= left) {
        to->used += n;
        if (e.ino) {
            mount_reported(inode, &e.attr);
            inode->lookups++;
            to->looked[to->count++] = inode;
        }
    }
    if (inode)
        inode_unpin(&m->inodes, inode);
    return n <= left;
}

/* The kernel does not get these entries. */
static void forget_looked(struct mount *m, struct filling *to)
{
    while (to->count)
        inode_forget(&m->inodes, to->looked[--to->count], 1);
}

static void dir_fetch(struct mount_call *c, struct dir *d, uint64_t cookie);

/* Serves the rest of the block. `fresh`: it was fetched for this request, or nothing has changed since. */
static void dir_serve(struct mount_call *c, struct dir *d, bool fresh)
{
    struct filling to;
    struct nfs3_entry entry;
    struct xdr_in before = d->left;
    bool broken = false;

    to.at = (char *)c->buffer;
    to.capacity = c->size;
    to.used = to.count = 0;
    while (next_entry(d, &entry)) {
        if (is_name(&entry.name) && !add_entry(c, d, &to, &entry, fresh))
            break;
        broken = circle_closes(&d->circle, entry.cookie);
        if (broken)
            break;
        d->position = d->reached = entry.cookie;
        before = d->left;
    }
    d->left = before;
    if (broken) {
        forget_looked(d->m, &to);
        call_reply_error(c, EIO);
        return;
    }
    if (!to.used && !before.left && !d->op.result.list.eof) {
        dir_fetch(c, d, d->position);
        return;
    }
    if (!to.used && before.left) { /* the rest is not a list of entries */
        call_reply_error(c, EIO);
        return;
    }
    if (fuse_reply_buf(c->req, to.at, to.used)) /* the request was interrupted */
        forget_looked(d->m, &to);
    call_end(c);
}

/* --- blocks ---------------------------------------------------------------------------------------------------- */

static void fetched(struct nfs_op *op)
{
    struct dir *d = (struct dir *)op;
    struct mount_call *c = d->call;

    d->m->calls--;
    d->call = NULL;
    c->reader.dir = NULL;
    c->op.error = op->error;
    c->op.result.status = op->result.status;
    if (!op->error && op->result.status == NFS3ERR_NOTSUPP && !d->bare) {
        d->bare = true;
        dir_fetch(c, d, op->args.list.cookie);
        return;
    }
    if (call_failed(c))
        return;
    /* An empty block that is not the last one would be requested again without end. */
    if (!op->result.list.length && !op->result.list.eof) {
        call_reply_error(c, EIO);
        return;
    }
    memcpy(d->verifier, op->result.list.verifier, sizeof(d->verifier));
    d->has_block = true;
    rewind_block(d);
    dir_serve(c, d, true);
}

static void dir_cancel(struct dir *d)
{
    nfs_cancel(d->m->client, &d->op);
    d->op.error = -EINTR;
    fetched(&d->op);
}

static void dir_fetch(struct mount_call *c, struct dir *d, uint64_t cookie)
{
    struct mount *m = d->m;

    if (m->closing || d->call) {
        call_reply_error(c, m->closing ? EIO : EBUSY);
        return;
    }
    d->has_block = false;
    d->call = c;
    c->reader = (struct dir_reader){d, dir_cancel};
    d->changes = m->changes;
    d->started_ns = clock_ns();
    d->op.proc = d->bare ? NFS3_READDIR : NFS3_READDIRPLUS;
    d->op.done = fetched;
    d->op.cred = &c->cred;
    d->op.args.list = (struct nfs3_list){.dir = c->inode->fh, .cookie = cookie};
    if (cookie)
        memcpy(d->op.args.list.verifier, d->verifier, sizeof(d->verifier));
    d->op.args.list.dircount = BLOCK_MAX / 4;
    d->op.args.list.maxcount = BLOCK_MAX;
    d->started = ++m->clock;
    m->calls++;
    nfs_start(m->client, &d->op);
}

/* Moves to the entries after the cookie, if the block has them. */
static bool seek(struct dir *d, uint64_t cookie)
{
    struct nfs3_entry entry;

    if (!d->has_block)
        return false;
    if (d->position == cookie)
        return d->left.left || d->op.result.list.eof;
    rewind_block(d);
    while (d->position != cookie && next_entry(d, &entry))
        d->position = entry.cookie;
    return d->position == cookie && (d->left.left || d->op.result.list.eof);
}

/* Whether the block is recent; otherwise the kernel may know newer attributes. */
static bool dir_is_fresh(const struct dir *d)
{
    return d->changes == d->m->changes && (double)(clock_ns() - d->started_ns) < d->m->options->attr_timeout_s * 1e9;
}

static void fetch_now(struct mount_call *c)
{
    dir_fetch(c, dir_of(&c->fi), c->offset);
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi, bool plus)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);
    struct dir *d = dir_of(fi);

    if (!c || !call_inode(c, ino))
        return;
    c->fi = *fi;
    c->offset = (uint64_t)offset;
    c->size = size > BLOCK_MAX ? BLOCK_MAX : (uint32_t)size;
    c->buffer = malloc(c->size);
    if (!c->buffer) {
        call_reply_error(c, ENOMEM);
        return;
    }
    d->plus = plus;
    if (!offset || (uint64_t)offset != d->reached)
        d->circle = (struct circle){0};
    /* Reading from the beginning shows the current state. */
    if (offset && !d->call && seek(d, (uint64_t)offset))
        dir_serve(c, d, dir_is_fresh(d));
    else
        when_gone(c, fetch_now);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    read_dir(req, ino, size, offset, fi, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    read_dir(req, ino, size, offset, fi, true);
}

static void dir_close(struct dir *d)
{
    opened_remove(&d->opened);
    nfs_forget(&d->op);
    free(d);
}

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct dir *d = calloc(1, sizeof(*d));

    (void)ino;
    if (!d) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    d->m = fuse_req_userdata(req);
    opened_add(&d->m->dirs, &d->opened, d);
    fi->fh = (uintptr_t)d;
    if (fuse_reply_open(req, fi))
        dir_close(d);
}

void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    dir_close(dir_of(fi));
    fuse_reply_err(req, 0);
}

void dirs_close(struct mount *m)
{
    while (m->dirs)
        dir_close(m->dirs->of);
}
#endif
