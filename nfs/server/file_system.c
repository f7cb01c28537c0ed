/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_system.c - what the type of a file system says about waiting. */
#include "nfs/server/file_system.h"

#include <linux/magic.h>
#include <sys/vfs.h>

static unsigned long fs_type(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) ? 0 : (unsigned long)fs.f_type;
}

bool fs_is_local(int fd)
{
    switch (fs_type(fd)) {
    case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
        return true;
    default:
        return false;
    }
}

bool fs_is_in_memory(int fd)
{
    unsigned long type = fs_type(fd);

    return type == TMPFS_MAGIC || type == RAMFS_MAGIC;
}
