/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attributes.c - lookups, attributes, symbolic links, access checks, and free space. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "nfs/mount/mount.h"

/* --- attributes ------------------------------------------------------------------------------------------------ */

/* --- answers --------------------------------------------------------------------------------------------------- */

static void call_reply_attr(struct mount_call *c, const struct nfs3_post_attr *attr);

static void again_attr(struct mount_call *c)
{
    if (!call_failed(c))
        call_reply_attr(c, &c->op.result.attr);
}

static void attr_ask(struct mount_call *c)
{
    c->op.args.fh = c->inode->fh;
    call_start(c, NFS3_GETATTR, again_attr);
}

/* Answers with the attributes of c->inode. If the server did not return them, they are requested. */
static void call_reply_attr(struct mount_call *c, const struct nfs3_post_attr *attr)
{
    struct stat st;

    if (!attr->present && c->op.proc == NFS3_GETATTR) {
        call_reply_error(c, EIO);
        return;
    }
    if (!attr->present || mount_is_stale(c->inode, c->started)) {
        when_written(c, 0, UINT64_MAX, attr_ask);
        return;
    }
    st = mount_stat(c->inode, &attr->attr);
    mount_reported(c->inode, &st);
    fuse_reply_attr(c->req, &st, c->m->options->attr_timeout_s);
    call_end(c);
}

static void reply_entry(struct mount_call *c, struct inode *inode, const struct nfs3_attr *attr)
{
    double timeout_s = c->m->options->attr_timeout_s;
    struct fuse_entry_param e = {.generation = 1, .attr_timeout = timeout_s, .entry_timeout = timeout_s};
    int error;

    e.ino = inode->ino;
    e.attr = mount_stat(inode, attr);
    mount_reported(inode, &e.attr);
    inode->lookups++;
    if (c->creates) {
        struct file *f = handle_open(c, inode);

        if (!f) {
            inode_forget(&c->m->inodes, inode, 1);
            call_reply_error(c, ENOMEM);
            return;
        }
        mount_stamp(inode, &(struct nfs3_post_attr){true, *attr});
        c->fi.fh = (uintptr_t)f;
        error = fuse_reply_create(c->req, &e, &c->fi);
        if (error)
            handle_close(c->m, f);
    } else {
        error = fuse_reply_entry(c->req, &e);
    }
    /* The request was interrupted, so the kernel has not counted the lookup. */
    if (error)
        inode_forget(&c->m->inodes, inode, 1);
    call_end(c);
}

static void made_attr(struct mount_call *c)
{
    struct nfs3_post_fh fh = {true, c->fh};

    if (!call_failed(c))
        call_reply_made(c, &fh, &c->op.result.attr);
}

static void ask_made(struct mount_call *c)
{
    c->op.args.fh = c->fh;
    call_start(c, NFS3_GETATTR, made_attr);
}

static void made_found(struct mount_call *c)
{
    struct nfs3_post_fh fh = {true, c->op.result.fh};

    if (!call_failed(c))
        call_reply_made(c, &fh, &c->op.result.attr);
}

/* Replies with a new object in the directory c->inode. */
void call_reply_made(struct mount_call *c, const struct nfs3_post_fh *fh, const struct nfs3_post_attr *attr)
{
    struct inode *inode;

    if (!fh->present) {
        c->op.args.where = call_where(c, c->inode, 0);
        call_start(c, NFS3_LOOKUP, made_found);
        return;
    }
    c->fh = fh->fh;
    inode = inodes_get(&c->m->inodes, &c->fh);
    if (!inode) {
        call_reply_error(c, ENOMEM);
        return;
    }
    if (c->other)
        inode_unpin(&c->m->inodes, c->other);
    c->other = inode; /* unpinned when the call ends */
    if (attr->present && !mount_is_stale(inode, c->started))
        reply_entry(c, inode, &attr->attr);
    else if (c->op.proc == NFS3_GETATTR && !attr->present)
        call_reply_error(c, EIO);
    else
        ask_made(c);
}

/* --- operations ------------------------------------------------------------------------------------------------ */

static void looked_up(struct mount_call *c)
{
    struct fuse_entry_param none = {.entry_timeout = c->m->options->attr_timeout_s};
    struct nfs3_post_fh fh = {true, c->op.result.fh};

    if (call_error(c) == ENOENT) {
        fuse_reply_entry(c->req, &none);
        call_end(c);
    } else if (!call_failed(c)) {
        call_reply_made(c, &fh, &c->op.result.attr);
    }
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, parent) || !call_name(c, 0, name))
        return;
    c->op.args.where = call_where(c, c->inode, 0);
    call_start(c, NFS3_LOOKUP, looked_up);
}

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    (void)fi;
    if (c && call_inode(c, ino))
        when_written(c, 0, UINT64_MAX, attr_ask);
}

static struct nfs3_time attr_time_of(struct timespec t)
{
    if (t.tv_sec < 0)
        return (struct nfs3_time){0, 0};
    if (t.tv_sec > UINT32_MAX)
        return (struct nfs3_time){UINT32_MAX, 0};
    return (struct nfs3_time){(uint32_t)t.tv_sec, (uint32_t)t.tv_nsec};
}

static struct nfs3_sattr sattr_of(const struct stat *st, int set)
{
    struct nfs3_sattr a = {
        .set_mode = set & FUSE_SET_ATTR_MODE,
        .set_uid = set & FUSE_SET_ATTR_UID,
        .set_gid = set & FUSE_SET_ATTR_GID,
        .set_size = set & FUSE_SET_ATTR_SIZE,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .atime = attr_time_of(st->st_atim),
        .mtime = attr_time_of(st->st_mtim),
    };

    if (set & FUSE_SET_ATTR_ATIME)
        a.set_atime = set & FUSE_SET_ATTR_ATIME_NOW ? NFS3_SERVER_TIME : NFS3_CLIENT_TIME;
    if (set & FUSE_SET_ATTR_MTIME)
        a.set_mtime = set & FUSE_SET_ATTR_MTIME_NOW ? NFS3_SERVER_TIME : NFS3_CLIENT_TIME;
    return a;
}

static void attr_set(struct mount_call *c)
{
    if (call_failed(c))
        return;
    mount_restamp(c->inode, &c->op.result.wcc.after);
    call_reply_attr(c, &c->op.result.wcc.after);
}

static void set_attr(struct mount_call *c)
{
    c->op.args.setattr.fh = c->inode->fh;
    call_start(c, NFS3_SETATTR, attr_set);
}

/* Whether the new mode only clears SUID and SGID. */
static bool clears_privileges(const struct nfs3_attr *attr, mode_t mode)
{
    mode_t taken = attr->mode & ~mode & 07777, given = mode & ~attr->mode & 07777;

    return taken && !(taken & ~(mode_t)(S_ISUID | S_ISGID)) && !given;
}

static void privileges_known(struct mount_call *c)
{
    const struct nfs3_attr *attr = &c->op.result.attr.attr;
    struct stat st;

    if (call_failed(c))
        return;
    if (c->op.result.attr.present && attr->uid != c->cred.uid && clears_privileges(attr, c->mode)) {
        st = mount_stat(c->inode, attr);
        st.st_mode = (st.st_mode & S_IFMT) | c->mode;
        fuse_reply_attr(c->req, &st, 0);
        call_end(c);
        return;
    }
    c->op.args = (union nfs3_args){.setattr = {.attr = {.set_mode = true, .mode = c->mode}}};
    when_committed(c, set_attr);
}

static void ask_privileges(struct mount_call *c)
{
    c->op.args.fh = c->inode->fh;
    call_start(c, NFS3_GETATTR, privileges_known);
}

/* The kernel clears SUID and SGID before a write, in the name of the writer, who may not be allowed to chmod(). The
 * server clears them itself at the WRITE. Since the kernel checks who may chmod(), no other caller asks to set the
 * mode of a file of another owner. */
static bool may_clear_privileges(const struct mount_call *c, int set)
{
    return set == FUSE_SET_ATTR_MODE && !c->m->options->server_permissions && c->cred.uid != 0;
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int set, struct fuse_file_info *fi)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, ino))
        return;
    if (may_clear_privileges(c, set)) {
        c->mode = st->st_mode & 07777;
        ask_privileges(c);
        return;
    }
    c->op.args.setattr.attr = sattr_of(st, set);
    c->op.args.setattr.guarded = false;
    /* ftruncate() needs only the right of the opener. */
    if (fi && (set & FUSE_SET_ATTR_SIZE) && !(set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
        call_as_opener(c, (struct file *)(uintptr_t)fi->fh);
    /* A WRITE that arrives later would change times and size again. */
    when_committed(c, set_attr);
}

static void link_read(struct mount_call *c)
{
    const struct nfs3_text *target = &c->op.result.target;

    if (call_failed(c))
        return;
    c->buffer[target->length] = 0; /* the target is in c->buffer: see nfs_client.h */
    fuse_reply_readlink(c->req, (const char *)c->buffer);
    call_end(c);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, ino))
        return;
    c->buffer = malloc(NFS3_PATH_MAX + 1);
    if (!c->buffer) {
        call_reply_error(c, ENOMEM);
        return;
    }
    c->op.args.fh = c->inode->fh;
    c->op.buffer = c->buffer;
    call_start(c, NFS3_READLINK, link_read);
}

static void access_known(struct mount_call *c)
{
    if (!call_failed(c))
        call_reply_error(c, c->size & ~c->op.result.access ? EACCES : 0);
}

static void access_kind(struct mount_call *c)
{
    if (call_failed(c))
        return;
    if (c->op.result.attr.present && c->op.result.attr.attr.type == NFS3_DIR) {
        if (c->size & NFS3_ACCESS_EXECUTE)
            c->size = (c->size & ~(uint32_t)NFS3_ACCESS_EXECUTE) | NFS3_ACCESS_LOOKUP;
    } else {
        c->size &= ~(uint32_t)NFS3_ACCESS_DELETE;
    }
    access_known(c);
}

void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, ino))
        return;
    c->size = (mask & R_OK ? NFS3_ACCESS_READ : 0u) | (mask & X_OK ? NFS3_ACCESS_EXECUTE : 0u) |
              (mask & W_OK ? NFS3_ACCESS_MODIFY | NFS3_ACCESS_EXTEND | NFS3_ACCESS_DELETE : 0u);
    c->op.args.access.fh = c->inode->fh;
    c->op.args.access.access = c->size | NFS3_ACCESS_LOOKUP;
    call_start(c, NFS3_ACCESS, access_kind);
}

static void fs_known(struct mount_call *c)
{
    enum { UNIT = 4096 };
    struct statvfs v = {.f_bsize = UNIT, .f_frsize = UNIT, .f_namemax = NFS3_NAME_MAX};

    if (call_failed(c))
        return;
    v.f_blocks = c->op.result.fsstat.total_bytes / UNIT;
    v.f_bfree = c->op.result.fsstat.free_bytes / UNIT;
    v.f_bavail = c->op.result.fsstat.available_bytes / UNIT;
    v.f_files = c->op.result.fsstat.total_files;
    v.f_ffree = c->op.result.fsstat.free_files;
    v.f_favail = c->op.result.fsstat.available_files;
    fuse_reply_statfs(c->req, &v);
    call_end(c);
}

void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, ino ? ino : INODE_ROOT))
        return;
    c->op.args.fh = c->inode->fh;
    call_start(c, NFS3_FSSTAT, fs_known);
}
#endif
