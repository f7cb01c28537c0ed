/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open_file.c - open files. open() shows what other clients have written before; after close() the data written here
 * are on the server's disk. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/mount/mount.h"

static struct file *file_of(const struct fuse_file_info *fi)
{
    return (struct file *)(uintptr_t)fi->fh;
}

struct file *handle_open(struct mount_call *c, struct inode *inode)
{
    struct file *f = malloc(sizeof(*f));

    if (!f)
        return NULL;
    inode_pin(inode);
    inode->opens++;
    *f = (struct file){.inode = inode, .cred = c->cred, .seen = inode->errors, .users = 1};
    opened_add(&c->m->files, &f->opened, f);
    return f;
}

void handle_close(struct mount *m, struct file *f)
{
    struct inode *inode = f->inode;

    inode->opens--;
    opened_remove(&f->opened);
    if (!inode->opens && (inode->silly || (inode->dirty && !dirty_is_empty(inode->dirty))))
        sync_closed(m, inode);
    inode_unpin(&m->inodes, inode);
    handle_leave(f);
}

void handles_close(struct mount *m)
{
    while (m->files)
        handle_close(m, m->files->of);
}

/* --- open ------------------------------------------------------------------------------------------------------ */

enum { OPENED_TO_EXECUTE = 0x20 }; /* the kernel's FMODE_EXEC in open()'s flags */

static uint32_t needed_access(int flags)
{
    int mode = flags & O_ACCMODE;
    uint32_t need = mode == O_WRONLY ? 0 : flags & OPENED_TO_EXECUTE ? NFS3_ACCESS_EXECUTE : NFS3_ACCESS_READ;

    return need | (mode == O_RDONLY ? 0 : NFS3_ACCESS_MODIFY | NFS3_ACCESS_EXTEND);
}

static bool may(uint32_t need, uint32_t have)
{
    /* The owner may read an executable file. */
    if (need == NFS3_ACCESS_EXECUTE && (have & NFS3_ACCESS_READ))
        return true;
    return !(need & ~have);
}

/* The kernel uses a cached size that is no longer true, and the reply to open() cannot correct it. ESTALE makes the
 * kernel look the name up again and retry. */
static bool must_look_again(struct mount_call *c, const struct nfs3_attr *attr)
{
    struct stat st = mount_stat(c->inode, attr);
    pid_t pid = fuse_req_ctx(c->req)->pid;

    if (c->inode->reported && c->inode->reported_size == (uint64_t)st.st_size)
        return false;
    if (pid == c->inode->retry_pid)
        return false;
    c->inode->retry_pid = pid;
    return true;
}

/* Close-to-open consistency: from now on the file shows what other clients wrote before they closed it. */
static void look_at_content(struct mount_call *c, const struct nfs3_post_attr *attr)
{
    struct stat st;

    c->fi.keep_cache = attr->present && mount_same_stamp(c->inode, &attr->attr);
    mount_stamp(c->inode, attr);
    if (!attr->present)
        return;
    st = mount_stat(c->inode, &attr->attr);
    /* Invalidate only the attributes: invalidating pages could wait for this thread itself. */
    if (memcmp(&c->inode->reported_mtime, &attr->attr.mtime, sizeof(attr->attr.mtime)))
        fuse_lowlevel_notify_inval_inode(c->m->session, c->inode->ino, -1, 0);
    mount_reported(c->inode, &st);
}

static void open_known(struct mount_call *c)
{
    const struct nfs3_post_attr *attr = &c->op.result.attr;
    struct file *f;

    if (call_failed(c))
        return;
    if (!may(needed_access(c->fi.flags), c->op.result.access)) {
        call_reply_error(c, EACCES);
        return;
    }
    if (attr->present && must_look_again(c, &attr->attr)) {
        call_reply_error(c, ESTALE);
        return;
    }
    c->inode->retry_pid = 0;
    f = handle_open(c, c->inode);
    if (!f) {
        call_reply_error(c, ENOMEM);
        return;
    }
    look_at_content(c, attr);
    c->fi.noflush = (c->fi.flags & O_ACCMODE) == O_RDONLY;
    c->fi.fh = (uintptr_t)f;
    if (fuse_reply_open(c->req, &c->fi)) /* the request was interrupted */
        handle_close(c->m, f);
    call_end(c);
}

static void open_ask(struct mount_call *c)
{
    c->op.args.access.fh = c->inode->fh;
    c->op.args.access.access = NFS3_ACCESS_READ | NFS3_ACCESS_MODIFY | NFS3_ACCESS_EXTEND | NFS3_ACCESS_EXECUTE;
    call_start(c, NFS3_ACCESS, open_known);
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, ino))
        return;
    c->fi = *fi;
    when_written(c, 0, UINT64_MAX, open_ask);
}

/* --- read ------------------------------------------------------------------------------------------------------ */

static void read_some(struct mount_call *c);

/* The server may not know the end of the file yet, since data written here are still on their way. */
static void file_read_reply(struct mount_call *c)
{
    const struct dirty *d = c->inode->dirty;

    if (c->got < c->size && mount_is_stale(c->inode, c->started)) {
        read_some(c);
        return;
    }
    if (d)
        c->got = dirty_overlay(d, c->offset, c->buffer, c->got, c->size);
    fuse_reply_buf(c->req, (const char *)c->buffer, c->got);
    call_end(c);
}

static void read_done(struct mount_call *c)
{
    uint32_t count = c->op.result.read.count;

    if (call_failed(c))
        return;
    c->got += count;
    /* A short reply ends the file for the kernel; a short READ of the server does not. */
    if (c->op.result.read.eof || c->got == c->size)
        file_read_reply(c);
    else if (count == 0)
        call_reply_error(c, EIO);
    else
        read_some(c);
}

static void read_some(struct mount_call *c)
{
    uint32_t left = c->size - c->got, most = nfs_read_max(c->m->client);

    c->op.args.range.fh = c->inode->fh;
    c->op.args.range.offset = c->offset + c->got;
    c->op.args.range.count = left < most ? left : most;
    c->op.buffer = c->buffer + c->got;
    call_start(c, NFS3_READ, read_done);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    if (!c || !call_inode(c, ino))
        return;
    call_as_opener(c, file_of(fi));
    c->offset = (uint64_t)offset;
    c->size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    c->buffer = malloc(c->size ? c->size : 1);
    if (!c->buffer)
        call_reply_error(c, ENOMEM);
    else
        when_written(c, c->offset, c->offset + c->size, read_some);
}

/* --- write and what ends it ------------------------------------------------------------------------------------ */

/* Answers the write of a mapped page. No process waits for it, so there is none to which an error could be reported. */
static void page_reply(struct mount_call *c)
{
    fuse_reply_write(c->req, c->size);
    call_end(c);
}

static void write_reply(struct mount_call *c)
{
    int error = handle_error(c->file);

    if (error) {
        call_reply_error(c, error);
        return;
    }
    fuse_reply_write(c->req, c->size);
    call_end(c);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);
    bool through = !fi->writepage && (fi->flags & (O_SYNC | O_DSYNC));

    if (!c || !call_inode(c, ino))
        return;
    /* Any process may have written a mapped page: write it with the credential of the file's opener. */
    call_as_opener(c, file_of(fi));
    c->size = (uint32_t)size;
    if (size == 0)
        write_reply(c);
    else if (!sync_write(c->m, c->inode, &c->cred, (uint64_t)offset, data, c->size, through))
        call_reply_error(c, ENOMEM);
    else if (fi->writepage)
        when_space(c, page_reply);
    else if (through)
        when_committed(c, write_reply);
    else if (fi->flags & O_DIRECT)
        when_written(c, (uint64_t)offset, (uint64_t)offset + size, write_reply);
    else
        when_space(c, write_reply);
}

static void file_synced(struct mount_call *c)
{
    call_reply_error(c, handle_error(c->file));
}

void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    struct mount_call *c = call_new(fuse_req_userdata(req), req);

    (void)datasync;
    if (!c || !call_inode(c, ino))
        return;
    call_as_opener(c, file_of(fi));
    when_committed(c, file_synced);
}

void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    op_fsync(req, ino, 0, fi);
}

void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    handle_close(fuse_req_userdata(req), file_of(fi));
    fuse_reply_err(req, 0);
}
#endif
