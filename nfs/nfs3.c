/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3.c - the names of procedures and statuses. */
#include "nfs/nfs3.h"

const char *nfs3_status_str(enum nfs3_status status)
{
    switch (status) {
    case NFS3_OK:
        return "done";
    case NFS3ERR_PERM:
        return "not the owner";
    case NFS3ERR_NOENT:
        return "no such file or directory";
    case NFS3ERR_IO:
        return "input or output error at the server";
    case NFS3ERR_NXIO:
        return "no such device";
    case NFS3ERR_ACCES:
        return "permission denied";
    case NFS3ERR_EXIST:
        return "it already exists";
    case NFS3ERR_XDEV:
        return "not on the same file system";
    case NFS3ERR_NODEV:
        return "no such device";
    case NFS3ERR_NOTDIR:
        return "not a directory";
    case NFS3ERR_ISDIR:
        return "it is a directory";
    case NFS3ERR_INVAL:
        return "invalid argument";
    case NFS3ERR_FBIG:
        return "the file would be too large";
    case NFS3ERR_NOSPC:
        return "no space left on the server";
    case NFS3ERR_ROFS:
        return "the export is read-only";
    case NFS3ERR_MLINK:
        return "too many links";
    case NFS3ERR_NAMETOOLONG:
        return "the name is too long";
    case NFS3ERR_NOTEMPTY:
        return "the directory is not empty";
    case NFS3ERR_DQUOT:
        return "the disk quota is exceeded";
    case NFS3ERR_STALE:
        return "the object of the file handle is gone";
    case NFS3ERR_REMOTE:
        return "too many levels of remote file systems";
    case NFS3ERR_BADHANDLE:
        return "not a file handle of this server";
    case NFS3ERR_NOT_SYNC:
        return "the object was changed in the meantime";
    case NFS3ERR_BAD_COOKIE:
        return "the directory has changed: the cookie is stale";
    case NFS3ERR_NOTSUPP:
        return "not supported";
    case NFS3ERR_TOOSMALL:
        return "the buffer is too small";
    case NFS3ERR_SERVERFAULT:
        return "server fault";
    case NFS3ERR_BADTYPE:
        return "the server cannot create objects of this type";
    case NFS3ERR_JUKEBOX:
        return "the server is busy: try again later";
    }
    return "a status unknown to RFC 1813";
}

const char *nfs3_proc_str(enum nfs3_proc proc)
{
    static const char *const name[NFS3_PROCS] = {
        "NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",   "WRITE",
        "CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME", "LINK",
        "READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT",   "DIGEST",
    };

    return proc < NFS3_PROCS ? name[proc] : "?";
}
