/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_status.c - the status of RFC 1813 for an errno. */
#include <errno.h>

#include "nfs/server/serve_in.h"

/* Statuses by errno. An errno that is not listed has no status of its own in RFC 1813. */
enum nfs3_status nfs3_status_of(int error)
{
    static const struct {
        int error;
        enum nfs3_status status;
    } table[] = {
        {0, NFS3_OK},
        {EPERM, NFS3ERR_PERM},
        {ENOENT, NFS3ERR_NOENT},
        {EIO, NFS3ERR_IO},
        {ENXIO, NFS3ERR_NXIO},
        {EACCES, NFS3ERR_ACCES},
        {EBUSY, NFS3ERR_ACCES},   /* a mount point: clients may not remove it */
        {ETXTBSY, NFS3ERR_ACCES}, /* a running program */
        {EEXIST, NFS3ERR_EXIST},
        {EXDEV, NFS3ERR_XDEV},
        {ENODEV, NFS3ERR_NODEV},
        {ENOTDIR, NFS3ERR_NOTDIR},
        {ELOOP, NFS3ERR_NOTDIR}, /* a symbolic link where none is followed */
        {EISDIR, NFS3ERR_ISDIR},
        {EINVAL, NFS3ERR_INVAL},
        {EOVERFLOW, NFS3ERR_INVAL},
        {EFBIG, NFS3ERR_FBIG},
        {ENOSPC, NFS3ERR_NOSPC},
        {EROFS, NFS3ERR_ROFS},
        {EMLINK, NFS3ERR_MLINK},
        {ENAMETOOLONG, NFS3ERR_NAMETOOLONG},
        {ENOTEMPTY, NFS3ERR_NOTEMPTY},
        {EDQUOT, NFS3ERR_DQUOT},
        {ESTALE, NFS3ERR_STALE},
        {EREMOTE, NFS3ERR_REMOTE},
        {EOPNOTSUPP, NFS3ERR_NOTSUPP},
        {ENOSYS, NFS3ERR_NOTSUPP},
        /* Temporary errors: the client tries again later. */
        {EAGAIN, NFS3ERR_JUKEBOX},
        {ENOMEM, NFS3ERR_JUKEBOX},
        {EMFILE, NFS3ERR_JUKEBOX},
        {ENFILE, NFS3ERR_JUKEBOX},
        {ETIMEDOUT, NFS3ERR_JUKEBOX},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (table[i].error == error)
            return table[i].status;
    }
    return NFS3ERR_SERVERFAULT;
}
