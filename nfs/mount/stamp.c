/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stamp.c - attributes as the kernel has them, and what it was told of them. */
#ifdef RDDP_FUSE
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "nfs/mount/mount.h"

static mode_t type_mode(enum nfs3_type type)
{
    static const mode_t modes[] = {
        [NFS3_REG] = S_IFREG, [NFS3_DIR] = S_IFDIR,   [NFS3_BLK] = S_IFBLK,  [NFS3_CHR] = S_IFCHR,
        [NFS3_LNK] = S_IFLNK, [NFS3_SOCK] = S_IFSOCK, [NFS3_FIFO] = S_IFIFO,
    };

    return (unsigned)type < sizeof(modes) / sizeof(modes[0]) ? modes[type] : 0;
}

static struct timespec timespec_of(struct nfs3_time t)
{
    return (struct timespec){.tv_sec = t.s, .tv_nsec = t.ns < 1000000000 ? t.ns : 0};
}

/* Converts attributes. The size includes data that the server does not know yet. */
struct stat mount_stat(const struct inode *inode, const struct nfs3_attr *attr)
{
    uint64_t end = inode && inode->dirty ? inode->dirty->end : 0;
    uint64_t size = attr->size > INT64_MAX ? INT64_MAX : attr->size;

    return (struct stat){
        .st_ino = attr->fileid,
        .st_mode = type_mode(attr->type) | (attr->mode & 07777),
        .st_nlink = attr->nlink,
        .st_uid = attr->uid,
        .st_gid = attr->gid,
        .st_rdev = makedev(attr->major, attr->minor),
        .st_size = (off_t)(end > size ? end : size),
        .st_blksize = 4096,
        .st_blocks = (blkcnt_t)((attr->used + 511) / 512),
        .st_atim = timespec_of(attr->atime),
        .st_mtim = timespec_of(attr->mtime),
        .st_ctim = timespec_of(attr->ctime),
    };
}

bool mount_is_stale(const struct inode *inode, uint64_t since)
{
    return inode->dirty && inode->dirty->dropped > since;
}

void mount_reported(struct inode *inode, const struct stat *st)
{
    inode->reported = true;
    inode->reported_size = (uint64_t)st->st_size;
    inode->reported_mtime = (struct nfs3_time){(uint32_t)st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec};
}

static bool is_same_time(struct nfs3_time a, struct nfs3_time b)
{
    return a.s == b.s && a.ns == b.ns;
}

bool mount_same_stamp(const struct inode *inode, const struct nfs3_attr *attr)
{
    return inode->cached && inode->stamp.size == attr->size && is_same_time(inode->stamp.mtime, attr->mtime) &&
           is_same_time(inode->stamp.ctime, attr->ctime);
}

void mount_stamp(struct inode *inode, const struct nfs3_post_attr *attr)
{
    inode->cached = attr && attr->present;
    if (inode->cached)
        inode->stamp = (struct stamp){attr->attr.size, attr->attr.mtime, attr->attr.ctime};
}

void mount_restamp(struct inode *inode, const struct nfs3_post_attr *attr)
{
    if (inode->cached)
        mount_stamp(inode, attr);
}
#endif
