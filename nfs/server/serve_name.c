/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_name.c - existing names: serves LOOKUP, REMOVE, RMDIR, RENAME and LINK. The kernel decides what the caller may
 * do. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

enum nfs3_status serve_lookup(struct serve_call *c)
{
    char name[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_of(&c->args->where.name, name);
    struct stat st;
    int error;

    if (status != NFS3_OK)
        return status;
    error = c->request->cached ? object_cached_name(c->objects, c->object, name, &c->result->fh, &st)
                               : object_name(c->objects, c->object, name, &c->result->fh, &st);
    c->later = c->request->cached && error == -EAGAIN;
    if (error == -EXDEV) /* another file system is mounted there; it is not exported */
        return NFS3ERR_ACCES;
    if (error)
        return nfs3_status_of(-error);
    c->result->attr.present = true;
    attr_of(c->object->export, &st, &c->result->attr.attr);
    return NFS3_OK;
}

enum nfs3_status serve_remove(struct serve_call *c)
{
    char name[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_of(&c->args->where.name, name);

    if (status != NFS3_OK)
        return status;
    if (name_is_dots(name))
        return NFS3ERR_ACCES;
    if (unlinkat(c->object->fd, name, 0))
        return nfs3_status_of(errno);
    object_forget(c->objects, c->object);
    return NFS3_OK;
}

/* RFC 1813 3.3.13 has statuses for "." and "..". */
enum nfs3_status serve_rmdir(struct serve_call *c)
{
    char name[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_of(&c->args->where.name, name);

    if (status != NFS3_OK)
        return status;
    if (name_is_dots(name))
        return name[1] ? NFS3ERR_EXIST : NFS3ERR_INVAL;
    if (unlinkat(c->object->fd, name, AT_REMOVEDIR))
        return nfs3_status_of(errno);
    object_forget(c->objects, c->object);
    return NFS3_OK;
}

/* Returns NFS3ERR_NOTEMPTY, _ISDIR or _NOTDIR for a target that cannot be replaced, as Linux does: applications check
 * for these, while NFS3ERR_EXIST (RFC 1813 3.3.14) would tell them nothing. */
enum nfs3_status serve_rename(struct serve_call *c)
{
    char from[NFS3_NAME_MAX + 1], to[NFS3_NAME_MAX + 1];
    enum nfs3_status status = name_of(&c->args->rename.from.name, from);
    struct nfs3_fh fh;
    struct stat st;

    if (status == NFS3_OK)
        status = name_of(&c->args->rename.to.name, to);
    if (status != NFS3_OK)
        return status;
    if (name_is_dots(from) || name_is_dots(to))
        return NFS3ERR_INVAL;
    if (renameat(c->object->fd, from, c->to->fd, to))
        return nfs3_status_of(errno);
    object_forget(c->objects, c->to);
    /* Note the new name of the object. */
    (void)object_name(c->objects, c->to, to, &fh, &st);
    return NFS3_OK;
}

enum nfs3_status serve_link(struct serve_call *c)
{
    char name[NFS3_NAME_MAX + 1], path[SELF_PATH];
    enum nfs3_status status = name_of(&c->args->link.to.name, name);

    if (status != NFS3_OK)
        return status;
    if (name_is_dots(name))
        return NFS3ERR_EXIST;
    if (S_ISDIR(c->object->type))
        return NFS3ERR_INVAL;
    self_path(path, c->object->fd);
    return linkat(AT_FDCWD, path, c->to->fd, name, AT_SYMLINK_FOLLOW) ? nfs3_status_of(errno) : NFS3_OK;
}
