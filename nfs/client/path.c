/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.c - resolves a path to a file handle, one name at a time. NFS servers follow no symbolic links, so they are
 * followed here, and never above the root. Also maps a status to an errno. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/client/client.h"

enum { LINKS_MAX = 40, DEEP_MAX = 512 };

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

/* The state of a resolution: `deep` names below the root. The handles on the way are kept for "..". */
struct way {
    struct nfs_client *client;
    struct nfs_op op;
    unsigned deep, links;
    bool follow;
    struct nfs3_attr attr; /* attributes of the last object, if attr_known */
    bool attr_known;
    struct nfs3_fh fh[DEEP_MAX + 1];
    char left[2 * NFS3_PATH_MAX + 2]; /* the rest of the path */
    char target[NFS3_PATH_MAX];
};

static int step_up(struct way *w)
{
    if (w->deep == 0)
        return -EXDEV;
    w->deep--;
    w->attr_known = false;
    return 0;
}

/* Puts the target of a link in front of the rest of the path. It is relative to the directory of the link. */
static int path_insert(struct way *w, const struct nfs3_text *target, bool slash)
{
    size_t left = strlen(w->left), between = left || slash;

    if (++w->links > LINKS_MAX)
        return -ELOOP;
    if (target->length == 0)
        return -ENOENT;
    if (target->at[0] == '/')
        return -EXDEV;
    if (memchr(target->at, 0, target->length))
        return -EPROTO;
    if (target->length + left > 2 * NFS3_PATH_MAX)
        return -ENAMETOOLONG;
    memmove(w->left + target->length + between, w->left, left + 1);
    memcpy(w->left, target->at, target->length);
    if (between)
        w->left[target->length] = '/';
    return 0;
}

static int path_read_link(struct way *w, const struct nfs3_fh *fh, bool slash)
{
    int error;

    w->op.proc = NFS3_READLINK;
    w->op.args.fh = *fh;
    w->op.buffer = w->target;
    error = nfs_call(w->client, &w->op);
    w->op.buffer = NULL;
    return error ? error : path_insert(w, &w->op.result.target, slash);
}

static int get_attr(struct way *w)
{
    int error;

    if (w->attr_known)
        return 0;
    w->op.proc = NFS3_GETATTR;
    w->op.args.fh = w->fh[w->deep];
    error = nfs_call(w->client, &w->op);
    if (error == 0) {
        w->attr = w->op.result.attr.attr;
        w->attr_known = true;
    }
    return error;
}

static int step_down(struct way *w, const char *name, size_t n)
{
    int error;

    if (n > NFS3_NAME_MAX)
        return -ENAMETOOLONG;
    if (w->deep == DEEP_MAX)
        return -ENAMETOOLONG;
    w->op.proc = NFS3_LOOKUP;
    w->op.args.where.dir = w->fh[w->deep];
    w->op.args.where.name = (struct nfs3_text){name, (uint32_t)n};
    error = nfs_call(w->client, &w->op);
    if (error)
        return error;
    w->fh[++w->deep] = w->op.result.fh;
    w->attr_known = w->op.result.attr.present;
    w->attr = w->op.result.attr.attr;
    return get_attr(w);
}

/* Takes the first name off the rest of the path. A slash after the last name requires a directory. */
static int path_step(struct way *w)
{
    size_t n = strcspn(w->left, "/"), skip = n + strspn(w->left + n, "/");
    bool last = w->left[skip] == 0, slash = skip > n;
    char name[NFS3_NAME_MAX + 1] = "";
    int error = 0;

    if (n > NFS3_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, w->left, n);
    memmove(w->left, w->left + skip, strlen(w->left + skip) + 1);
    if (n == 0 || strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0)
        return step_up(w);
    error = step_down(w, name, n);
    if (error == 0 && w->attr.type == NFS3_LNK && (!last || slash || w->follow)) {
        struct nfs3_fh link = w->fh[w->deep];

        step_up(w);
        error = path_read_link(w, &link, slash);
    } else if (error == 0 && slash && w->attr.type != NFS3_DIR) {
        error = -ENOTDIR;
    }
    return error;
}

int nfs_lookup(struct nfs_client *c, const char *path, bool follow, struct nfs3_fh *fh, struct nfs3_attr *attr)
{
    struct way *w = strlen(path) <= NFS3_PATH_MAX ? calloc(1, sizeof(*w)) : NULL;
    int error = 0;

    if (!w)
        return strlen(path) > NFS3_PATH_MAX ? -ENAMETOOLONG : -ENOMEM;
    w->client = c;
    w->follow = follow;
    w->fh[0] = *nfs_root(c);
    strcpy(w->left, path);
    while (error == 0 && *w->left)
        error = path_step(w);
    if (error == 0)
        error = get_attr(w);
    if (error == 0) {
        *fh = w->fh[w->deep];
        *attr = w->attr;
    }
    nfs_forget(&w->op);
    free(w);
    return error;
}
