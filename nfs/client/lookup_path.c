/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lookup_path.c - resolves a path to a file handle, one name at a time. NFS servers follow no symbolic links, so they
 * are followed here, and never above the root. Also maps a status to an errno. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/client/nfs_client.h"

enum { LINKS_MAX = 40, DEEP_MAX = 512 };

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

static int step_up(struct way *way)
{
    if (way->deep == 0)
        return -EXDEV;
    way->deep--;
    way->attr_known = false;
    return 0;
}

/* Puts the target of a link in front of the rest of the path. It is relative to the directory of the link. */
static int path_insert(struct way *way, const struct nfs3_text *target, bool slash)
{
    size_t left = strlen(way->left), between = left || slash;

    if (++way->links > LINKS_MAX)
        return -ELOOP;
    if (target->length == 0)
        return -ENOENT;
    if (target->at[0] == '/')
        return -EXDEV;
    if (memchr(target->at, 0, target->length))
        return -EPROTO;
    if (target->length + left > 2 * NFS3_PATH_MAX)
        return -ENAMETOOLONG;
    memmove(way->left + target->length + between, way->left, left + 1);
    memcpy(way->left, target->at, target->length);
    if (between)
        way->left[target->length] = '/';
    return 0;
}

static int path_read_link(struct way *way, const struct nfs3_fh *fh, bool slash)
{
    int error;

    way->op.proc = NFS3_READLINK;
    way->op.args.fh = *fh;
    way->op.buffer = way->target;
    error = nfs_call(way->client, &way->op);
    way->op.buffer = NULL;
    return error ? error : path_insert(way, &way->op.result.target, slash);
}

static int get_attr(struct way *way)
{
    int error;

    if (way->attr_known)
        return 0;
    way->op.proc = NFS3_GETATTR;
    way->op.args.fh = way->fh[way->deep];
    error = nfs_call(way->client, &way->op);
    if (error == 0) {
        way->attr = way->op.result.attr.attr;
        way->attr_known = true;
    }
    return error;
}

static int step_down(struct way *way, const char *name, size_t n)
{
    int error;

    if (n > NFS3_NAME_MAX)
        return -ENAMETOOLONG;
    if (way->deep == DEEP_MAX)
        return -ENAMETOOLONG;
    way->op.proc = NFS3_LOOKUP;
    way->op.args.where.dir = way->fh[way->deep];
    way->op.args.where.name = (struct nfs3_text){name, (uint32_t)n};
    error = nfs_call(way->client, &way->op);
    if (error)
        return error;
    way->fh[++way->deep] = way->op.result.fh;
    way->attr_known = way->op.result.attr.present;
    way->attr = way->op.result.attr.attr;
    return get_attr(way);
}

/* Takes the first name off the rest of the path. A slash after the last name requires a directory. */
static int path_step(struct way *way)
{
    size_t n = strcspn(way->left, "/"), skip = n + strspn(way->left + n, "/");
    bool last = way->left[skip] == 0, slash = skip > n;
    char name[NFS3_NAME_MAX + 1] = "";
    int error = 0;

    if (n > NFS3_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, way->left, n);
    memmove(way->left, way->left + skip, strlen(way->left + skip) + 1);
    if (n == 0 || strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0)
        return step_up(way);
    error = step_down(way, name, n);
    if (error == 0 && way->attr.type == NFS3_LNK && (!last || slash || way->follow)) {
        struct nfs3_fh link = way->fh[way->deep];

        step_up(way);
        error = path_read_link(way, &link, slash);
    } else if (error == 0 && slash && way->attr.type != NFS3_DIR) {
        error = -ENOTDIR;
    }
    return error;
}

int nfs_lookup(struct nfs_client *c, const char *path, bool follow, struct nfs3_fh *fh, struct nfs3_attr *attr)
{
    struct way *way = strlen(path) <= NFS3_PATH_MAX ? calloc(1, sizeof(*way)) : NULL;
    int error = 0;

    if (!way)
        return strlen(path) > NFS3_PATH_MAX ? -ENAMETOOLONG : -ENOMEM;
    way->client = c;
    way->follow = follow;
    way->fh[0] = *nfs_root(c);
    strcpy(way->left, path);
    while (error == 0 && *way->left)
        error = path_step(way);
    if (error == 0)
        error = get_attr(way);
    if (error == 0) {
        *fh = way->fh[way->deep];
        *attr = way->attr;
    }
    nfs_forget(&way->op);
    free(way);
    return error;
}
