/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_handle.c - makes the handles of names in directories, and of roots. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "nfs/server/object_in.h"

/* Sets the hints of a handle: those of the path to `name` in `dir`, or to the parent of `dir`. Objects that the kernel
 * opens by handle have none. */
static void place_hints(struct objects *objects, const struct kept *dir, const char *name, struct handle *h)
{
    bool up = !strcmp(name, "..");

    if (dir->h.kind == HANDLE_INODE) {
        h->count = dir->h.count;
        memcpy(h->hint, dir->h.hint, h->count);
        if (up && h->count)
            h->hint[--h->count] = 0;
        else if (!up && h->count < HANDLE_HINTS_MAX)
            h->hint[h->count++] = hint_of(name);
    }
    if (up)
        names_recall(objects->names, h);
    else
        names_put(objects->names, h, dir->inode, name);
}

/* Makes the handle of `fd`, which was opened as `name` in `dir`. */
static void make_handle(struct objects *objects, const struct object_place *place, const struct kept *dir,
                        const char *name, int fd, ino_t inode, struct nfs3_fh *fh)
{
    struct handle h;

    if (!kernel_handle(place, fd, &h)) {
        h = (struct handle){.kind = HANDLE_INODE, .export = place->export->id, .inode = inode, .birth = birth_of(fd)};
        if (dir && inode != place->inode)
            place_hints(objects, dir, name, &h);
    }
    handle_put(objects->key, &h, fh);
}

static int object_open_parent(const struct object_place *place, const struct kept *dir, bool wait)
{
    struct identity was;
    struct stat st;
    bool paused, inside, known = true;
    int fd;

    if (dir->inode == place->inode)
        return fcntl(place->export->root, F_DUPFD_CLOEXEC, 0);
    fd = wait ? openat(dir->object.fd, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
              : open_cached_name(dir->object.fd, "..");
    if (fd < 0)
        return wait ? -errno : fd;
    paused = identity_pause(&was);
    inside = !fstat(fd, &st) && (wait ? inside_export(place, fd, &st) : inside_by_path(place, fd, &st, &known));
    if (paused)
        identity_assume(&was);
    if (inside && known)
        return fd;
    close(fd);
    return known ? -ESTALE : -EAGAIN;
}

static int open_to_name(const struct object_place *place, const struct kept *dir, const char *name, bool wait)
{
    if (!strcmp(name, ".."))
        return object_open_parent(place, dir, wait);
    return wait ? open_name(dir->object.fd, name, 0) : open_cached_name(dir->object.fd, name);
}

static int make_name(struct objects *objects, struct object *dir, const char *name, bool wait, struct nfs3_fh *fh,
                     struct stat *st)
{
    const struct object_place *place = place_of(objects, dir->export->id);
    struct kept *k = kept_of(dir);
    int fd;

    if (!name || !strcmp(name, ".")) {
        *fh = k->fh;
        return object_stat(dir, st);
    }
    if (!*name || strchr(name, '/'))
        return -EINVAL;
    fd = open_to_name(place, k, name, wait);
    if (fd < 0)
        return fd;
    if (fstat(fd, st)) {
        close(fd);
        return -EIO;
    }
    if (st->st_dev != place->export->dev) {
        close(fd);
        return -EXDEV;
    }
    make_handle(objects, place, k, name, fd, st->st_ino, fh);
    close(fd);
    return 0;
}

int object_name(struct objects *objects, struct object *dir, const char *name, struct nfs3_fh *fh, struct stat *st)
{
    return make_name(objects, dir, name, true, fh, st);
}

int object_cached_name(struct objects *objects, struct object *dir, const char *name, struct nfs3_fh *fh,
                       struct stat *st)
{
    return make_name(objects, dir, name, false, fh, st);
}

int object_root(struct objects *objects, struct export *export, struct nfs3_fh *fh)
{
    const struct object_place *place = place_of(objects, export->id);

    if (!place)
        return -ENOENT;
    make_handle(objects, place, NULL, "", export->root, place->inode, fh);
    return 0;
}
