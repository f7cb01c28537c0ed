/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* make.c - creates names: files, directories, symbolic links, special files, hard links. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysmacros.h>

#include "nfs/mount/mount.h"

static struct mount_call *make_new(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, parent) || !call_name(c, 0, name))
        return NULL;
    c->op.args.make.where = call_where(c, c->inode, 0);
    c->op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = mode & 07777};
    return c;
}

static void make_done(struct mount_call *c)
{
    if (!call_failed(c))
        call_reply_made(c, &c->op.result.made, &c->op.result.attr);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct mount_call *c = make_new(req, parent, name, mode);

    if (c)
        call_start(c, NFS3_MKDIR, make_done);
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
    struct mount_call *c = make_new(req, parent, name, mode);

    if (!c)
        return;
    if (S_ISREG(mode)) {
        c->op.args.make.how = NFS3_GUARDED;
        call_start(c, NFS3_CREATE, make_done);
        return;
    }
    c->op.args.make.type = S_ISCHR(mode) ? NFS3_CHR : S_ISBLK(mode) ? NFS3_BLK : S_ISSOCK(mode) ? NFS3_SOCK : NFS3_FIFO;
    c->op.args.make.major = major(dev);
    c->op.args.make.minor = minor(dev);
    call_start(c, NFS3_MKNOD, make_done);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct mount_call *c = make_new(req, parent, name, 0777);

    if (!c)
        return;
    c->text = strdup(target);
    if (!c->text) {
        call_reply_error(c, ENOMEM);
        return;
    }
    c->op.args.make.target = (struct nfs3_text){c->text, (uint32_t)strlen(c->text)};
    call_start(c, NFS3_SYMLINK, make_done);
}

static void linked(struct mount_call *c)
{
    struct nfs3_post_fh fh = {true, c->fh};

    if (!call_failed(c))
        call_reply_made(c, &fh, &c->op.result.attr);
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, parent) || !call_other(c, ino) || !call_name(c, 0, name))
        return;
    c->fh = c->other->fh;
    c->op.args.link.fh = c->fh;
    c->op.args.link.to = call_where(c, c->inode, 0);
    call_start(c, NFS3_LINK, linked);
}

/* --- create and open ------------------------------------------------------------------------------------------- */

static void exclusive_set(struct mount_call *c)
{
    struct nfs3_post_fh fh = {true, c->fh};

    if (!call_failed(c))
        call_reply_made(c, &fh, &c->op.result.wcc.after);
}

/* The server may have stored the verifier in the times, and the file has no mode yet (RFC 1813 3.3.8). */
static void exclusive_mode(struct mount_call *c)
{
    c->op.args.setattr.fh = c->fh;
    c->op.args.setattr.guarded = false;
    c->op.args.setattr.attr = (struct nfs3_sattr){
        .set_mode = true,
        .mode = c->mode & 07777,
        .set_atime = NFS3_SERVER_TIME,
        .set_mtime = NFS3_SERVER_TIME,
    };
    call_start(c, NFS3_SETATTR, exclusive_set);
}

static void exclusive_found(struct mount_call *c)
{
    if (call_failed(c))
        return;
    c->fh = c->op.result.fh;
    exclusive_mode(c);
}

static void exclusive_made(struct mount_call *c)
{
    /* The server does not support exclusive CREATE: use a guarded one. */
    if (!c->op.error && c->op.result.status == NFS3ERR_NOTSUPP) {
        c->op.args.make.how = NFS3_GUARDED;
        c->op.args.make.attr = (struct nfs3_sattr){.set_mode = true, .mode = c->mode & 07777};
        call_start(c, NFS3_CREATE, make_done);
        return;
    }
    if (call_failed(c))
        return;
    c->fh = c->op.result.made.fh;
    if (c->op.result.made.present) {
        exclusive_mode(c);
        return;
    }
    c->op.args.where = call_where(c, c->inode, 0);
    call_start(c, NFS3_LOOKUP, exclusive_found);
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    struct mount_call *c = make_new(req, parent, name, mode);

    if (!c)
        return;
    c->creates = true;
    c->fi = *fi;
    c->mode = mode;
    if (!(fi->flags & O_EXCL)) {
        c->op.args.make.how = NFS3_UNCHECKED;
        c->op.args.make.attr.set_size = fi->flags & O_TRUNC;
        call_start(c, NFS3_CREATE, make_done);
        return;
    }
    c->op.args.make.how = NFS3_EXCLUSIVE;
    if (getrandom(c->op.args.make.verifier, NFS3_VERIFIER, 0) != NFS3_VERIFIER) {
        call_reply_error(c, EIO);
        return;
    }
    call_start(c, NFS3_CREATE, exclusive_made);
}
#endif
