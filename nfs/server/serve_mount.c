/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_mount.c - serves MNT (RFC 1813 5.2.1): resolves a path to the handle of a directory, one name at a time inside
 * its export. */
#include <errno.h>
#include <string.h>

#include "nfs/server/serve_in.h"

static enum mount3_status mount_status_of(int error)
{
    switch (error) {
    case 0:
        return MNT3_OK;
    case EPERM:
        return MNT3ERR_PERM;
    case ENOENT:
    case ESTALE:
        return MNT3ERR_NOENT;
    case EIO:
        return MNT3ERR_IO;
    case EACCES:
    case EXDEV: /* another file system is mounted there; it is not exported */
        return MNT3ERR_ACCES;
    case ENOTDIR:
    case ELOOP:
        return MNT3ERR_NOTDIR;
    case EINVAL:
        return MNT3ERR_INVAL;
    case ENAMETOOLONG:
        return MNT3ERR_NAMETOOLONG;
    default:
        return MNT3ERR_SERVERFAULT;
    }
}

/* The part of `path` below the export; NULL if the path is not in it. */
static const char *below(const struct export *e, const char *path)
{
    size_t n = strcmp(e->path, "/") ? strlen(e->path) : 0;

    if (strncmp(path, e->path, n) || (path[n] && path[n] != '/'))
        return NULL;
    return path + n;
}

/* Finds the innermost export of a path: it may have other rules than those around it. */
static struct export *find_export(const struct nfs_server *server, const char *path, const char **rest)
{
    struct export *best = NULL;

    for (unsigned i = 0; i < server->exports; i++) {
        const char *left = below(&server->export[i], path);

        if (left && (!best || strlen(left) < strlen(*rest))) {
            best = &server->export[i];
            *rest = left;
        }
    }
    return best;
}

/* Replaces the handle of a directory by that of the directory `name` in it. */
static int serve_mount_step(struct objects *objects, struct nfs3_fh *fh, const char *name)
{
    struct object *dir;
    bool gone = false;
    struct stat st;
    int error;

    if (object_find(objects, fh, &gone, &dir) != NFS3_OK)
        return -ESTALE;
    error = object_name(objects, dir, name, fh, &st);
    object_put(objects, dir);
    return !error && !S_ISDIR(st.st_mode) ? -ENOTDIR : error;
}

static int serve_mount_walk(struct objects *objects, struct nfs3_fh *fh, const char *path)
{
    char name[NFS3_NAME_MAX + 1];
    int error = 0;

    for (path += strspn(path, "/"); *path && !error; path += strspn(path, "/")) {
        struct nfs3_text text = {path, (uint32_t)strcspn(path, "/")};
        enum nfs3_status status = name_of(&text, name);

        if (status != NFS3_OK)
            return status == NFS3ERR_NAMETOOLONG ? -ENAMETOOLONG : -EACCES;
        if (!strcmp(name, ".."))
            return -EACCES;
        error = serve_mount_step(objects, fh, name);
        path += text.length;
    }
    return error;
}

static enum mount3_status mount_path(struct nfs_server *server, const struct sockaddr *peer, const char *path,
                                     struct nfs3_fh *fh)
{
    const char *rest = "";
    struct export *e = find_export(server, path, &rest);
    int error;

    if (!e)
        return MNT3ERR_NOENT;
    if (!export_allows(e, peer))
        return MNT3ERR_ACCES;
    error = object_root(server->objects, e, fh);
    return mount_status_of(-(error ? error : serve_mount_walk(server->objects, fh, rest)));
}

struct export *mount_export_of(const struct nfs_server *server, const struct nfs3_text *path)
{
    char text[MOUNT_PATH_MAX + 1];
    const char *rest = "";

    if (path->length > MOUNT_PATH_MAX || memchr(path->at, 0, path->length))
        return NULL;
    memcpy(text, path->at, path->length);
    text[path->length] = 0;
    return find_export(server, text, &rest);
}

void mount_serve(struct nfs_server *server, const struct sockaddr *peer, const struct rpc_cred *cred,
                 const struct nfs3_text *path, struct mount3_result *result)
{
    static const uint32_t flavor[] = {RPC_AUTH_SYS, RPC_AUTH_NONE};
    char text[MOUNT_PATH_MAX + 1];

    (void)cred; /* the caller's rights are checked when he uses the handle */
    *result = (struct mount3_result){.status = MNT3ERR_NAMETOOLONG};
    if (path->length > MOUNT_PATH_MAX)
        return;
    result->status = MNT3ERR_INVAL;
    if (memchr(path->at, 0, path->length))
        return;
    memcpy(text, path->at, path->length);
    text[path->length] = 0;
    identity_drop();
    result->status = mount_path(server, peer, text, &result->fh);
    if (result->status != MNT3_OK)
        return;
    result->flavors = sizeof(flavor) / sizeof(*flavor);
    memcpy(result->flavor, flavor, sizeof(flavor));
}
