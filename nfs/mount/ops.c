/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ops.c - the table of FUSE operations, and what is negotiated with the kernel. Extended attributes and locks are left
 * out: the kernel reports the former as unsupported and keeps the latter locally. */
#ifdef RDDP_FUSE
#include "nfs/mount/mount.h"

enum { BACKGROUND = 64 }; /* requests that the kernel may have under way without a waiting program */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    struct mount *m = userdata;
    uint32_t write_max = nfs_write_max(m->client);

    /* O_TRUNC arrives as open and setattr, which saves a round trip. Cached pages are dropped at open and when the size
     * changes; dropping them when the time changes would do so after each of our own writes. */
    conn->want &= ~(unsigned)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA);
    /* Always ask for attributes with directory entries: they cost nothing here, while a later LOOKUP for each does. */
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
    conn->want |= conn->capable & (FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ASYNC_READ);
    conn->max_write = write_max > 4096 ? write_max & ~4095u : 4096;
    conn->max_read = nfs_read_max(m->client);
    conn->max_background = BACKGROUND;
    conn->congestion_threshold = BACKGROUND * 3 / 4;
    m->initialised = true;
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
    struct mount *m = fuse_req_userdata(req);
    struct inode *inode = inodes_find(&m->inodes, ino);

    if (inode)
        inode_forget(&m->inodes, inode, lookups);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    struct mount *m = fuse_req_userdata(req);

    for (size_t i = 0; i < count; i++) {
        struct inode *inode = inodes_find(&m->inodes, forgets[i].ino);

        if (inode)
            inode_forget(&m->inodes, inode, forgets[i].nlookup);
    }
    fuse_reply_none(req);
}

const struct fuse_lowlevel_ops mount_operations = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .readlink = op_readlink,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .flush = op_flush,
    .release = op_release,
    .fsync = op_fsync,
    .opendir = op_opendir,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .releasedir = op_releasedir,
    .statfs = op_statfs,
    .access = op_access,
    .create = op_create,
};
#endif
