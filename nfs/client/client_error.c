/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_error.c - what went wrong: an errno for a status, and a line for the user. */
#include <errno.h>
#include <stdio.h>

#include "nfs/client/client_in.h"

int nfs3_errno(enum nfs3_status status)
{
    switch (status) {
    case NFS3_OK:
        return 0;
    case NFS3ERR_NAMETOOLONG:
        return -ENAMETOOLONG;
    case NFS3ERR_NOTEMPTY:
        return -ENOTEMPTY;
    case NFS3ERR_DQUOT:
        return -EDQUOT;
    case NFS3ERR_STALE:
    case NFS3ERR_BADHANDLE:
        return -ESTALE;
    case NFS3ERR_REMOTE:
        return -EREMOTE;
    case NFS3ERR_NOT_SYNC:
    case NFS3ERR_BAD_COOKIE:
        return -ESTALE;
    case NFS3ERR_NOTSUPP:
    case NFS3ERR_BADTYPE:
        return -EOPNOTSUPP;
    case NFS3ERR_TOOSMALL:
    case NFS3ERR_INVAL:
        return -EINVAL;
    case NFS3ERR_SERVERFAULT:
        return -EIO;
    case NFS3ERR_JUKEBOX:
        return -EAGAIN;
    case NFS3ERR_PERM:
    case NFS3ERR_NOENT:
    case NFS3ERR_IO:
    case NFS3ERR_NXIO:
    case NFS3ERR_ACCES:
    case NFS3ERR_EXIST:
    case NFS3ERR_XDEV:
    case NFS3ERR_NODEV:
    case NFS3ERR_NOTDIR:
    case NFS3ERR_ISDIR:
    case NFS3ERR_FBIG:
    case NFS3ERR_NOSPC:
    case NFS3ERR_ROFS:
    case NFS3ERR_MLINK:
        return -(int)status; /* these have the numbers of Unix */
    }
    return -EIO;
}

int client_fail(const struct nfs_client_attr *attr, char *message, int error, const char *what, const char *why)
{
    snprintf(message, NFS_CLIENT_TEXT, "%.100s: %s%s%s", attr->host, what, why ? ": " : "", why ? why : "");
    return error;
}
