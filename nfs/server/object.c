/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.c - the files and directories of the exports, found by file handle. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nfs/server/object_in.h"

enum { OPEN_MAX = 4096, RECHECK_MS = 2000, FORGET = 16 };

void objects_attr_init(struct objects_attr *attr)
{
    *attr = (struct objects_attr){.open_max = OPEN_MAX, .kernel_handles = true};
}

/* Leaves a quarter of the descriptors to connections and to files that are open only during a call. */
static unsigned fds_max(unsigned open_max)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
        limit.rlim_cur = 1 << 20;
    limit.rlim_cur -= limit.rlim_cur / 4;
    if (open_max > limit.rlim_cur)
        open_max = (unsigned)limit.rlim_cur;
    return open_max ? open_max : 1;
}

/* Uses kernel handles for this export if the root's own handle leads back to the root. */
static void probe_kernel(struct objects *objects, struct object_place *place)
{
    struct handle h;
    struct stat st;
    int fd = -1;

    place->mount = openat(place->export->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->mount >= 0 && kernel_handle(place, place->export->root, &h))
        fd = open_handle(objects, place, &h, NULL);
    if (fd >= 0 && !fstat(fd, &st) && st.st_ino == place->inode && st.st_dev == place->export->dev) {
        close(fd);
        return;
    }
    if (fd >= 0)
        close(fd);
    if (place->mount >= 0)
        close(place->mount);
    place->mount = -1;
}

static int object_fail(char *message, int error, const struct export *e, const char *what)
{
    snprintf(message, EXPORT_TEXT, "%.150s: %s", e->path, what);
    return error;
}

static int open_place(struct objects *objects, unsigned i, const struct objects_attr *attr, char *message)
{
    struct object_place *place = &objects->place[i];
    struct export *e = &attr->export[i];
    char link[32], path[2];
    struct stat st;
    int fd;

    *place = (struct object_place){.export = e, .mount = -1};
    for (unsigned j = 0; j < i; j++) {
        if (objects->place[j].export->id == e->id)
            return object_fail(message, -EEXIST, e,
                               "is exported twice, or has the same number in file handles as another export");
    }
    fd = open_name(e->root, ".", 0);
    if (fd < 0)
        return object_fail(message, fd, e, "openat2() fails: Linux 5.8 or later is needed");
    close(fd);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", e->root);
    if (fstat(e->root, &st) || readlink(link, path, sizeof(path)) < 0)
        return object_fail(message, -errno, e, "cannot be read from /proc/self/fd");
    place->inode = st.st_ino;
    if (attr->kernel_handles)
        probe_kernel(objects, place);
    return 0;
}

struct objects *objects_open(const struct objects_attr *attr, char *message)
{
    struct objects *objects = calloc(1, sizeof(*objects));
    int error = -ENOMEM;

    snprintf(message, EXPORT_TEXT, "out of memory");
    if (objects) {
        pthread_mutex_init(&objects->search, NULL);
        pthread_mutex_init(&objects->miss_lock, NULL);
        objects->place = calloc(attr->exports + 1, sizeof(*objects->place));
        objects->names = names_open();
        objects->miss = calloc(SEARCH_MISSES, sizeof(*objects->miss));
        if (objects->place && objects->names && objects->miss)
            error = cache_init(&objects->cache, fds_max(attr->open_max));
        if (!error)
            error = handle_key_open(objects->key, attr->state, message);
        for (; !error && objects->places < attr->exports; objects->places++)
            error = open_place(objects, objects->places, attr, message);
        if (!error)
            return objects;
        objects_close(objects);
    }
    errno = -error;
    return NULL;
}

void objects_close(struct objects *objects)
{
    if (!objects)
        return;
    cache_fini(&objects->cache);
    for (unsigned i = 0; i < objects->places; i++) {
        if (objects->place[i].mount >= 0)
            close(objects->place[i].mount);
    }
    names_close(objects->names);
    pthread_mutex_destroy(&objects->search);
    pthread_mutex_destroy(&objects->miss_lock);
    free(objects->miss);
    free(objects->place);
    free(objects);
}

static const struct object_place *place_of(const struct objects *objects, uint32_t id)
{
    for (unsigned i = 0; i < objects->places; i++) {
        if (objects->place[i].export->id == id)
            return &objects->place[i];
    }
    return NULL;
}

static struct kept *kept_of(struct object *object)
{
    return (struct kept *)(void *)object;
}

static enum nfs3_status object_status_of(int error)
{
    switch (-error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return NFS3ERR_JUKEBOX;
    case EIO:
        return NFS3ERR_IO;
    default:
        return NFS3ERR_STALE;
    }
}

/* Whether the object still has a name and was recently seen inside its export; checks again after RECHECK_MS. */
static bool current(struct objects *objects, struct kept *k)
{
    uint64_t now = now_ms();
    struct identity was;
    struct stat st;
    bool paused, inside;

    if (fstat(k->object.fd, &st) || !st.st_nlink)
        return false;
    if (now - k->seen < RECHECK_MS)
        return true;
    paused = identity_pause(&was);
    inside = inside_export(place_of(objects, k->object.export->id), k->object.fd, &st);
    if (paused)
        identity_assume(&was);
    k->seen = now;
    return inside;
}

/* Adds the object to the cache. Takes over `fd`, also on failure. */
static enum nfs3_status object_keep(struct objects *objects, const struct object_place *place, const struct handle *h,
                                    const struct nfs3_fh *fh, int fd, struct kept **kept)
{
    struct stat st;
    struct kept *k;

    if (fstat(fd, &st) || !inside_export(place, fd, &st)) {
        close(fd);
        return NFS3ERR_STALE;
    }
    k = malloc(sizeof(*k));
    if (!k) {
        close(fd);
        return NFS3ERR_JUKEBOX;
    }
    *k = (struct kept){.object = {.export = place->export, .fd = fd, .type = st.st_mode & S_IFMT},
                       .fh = *fh,
                       .h = *h,
                       .inode = st.st_ino,
                       .reader = -1,
                       .writer = -1};
    k->seen = now_ms();
    *kept = cache_add(&objects->cache, k);
    return NFS3_OK;
}

static enum nfs3_status server_object_find(struct objects *objects, const struct nfs3_fh *fh, bool *search,
                                           struct kept **kept)
{
    const struct object_place *place;
    enum nfs3_status status;
    struct identity was;
    struct handle h;
    bool paused;
    int fd;

    if (!handle_get(objects->key, fh, &h))
        return NFS3ERR_BADHANDLE;
    place = place_of(objects, h.export);
    if (!place)
        return NFS3ERR_STALE;
    paused = identity_pause(&was);
    fd = open_handle(objects, place, &h, search);
    status = fd < 0 ? object_status_of(fd) : object_keep(objects, place, &h, fh, fd, kept);
    if (paused)
        identity_assume(&was);
    return status;
}

enum nfs3_status object_find(struct objects *objects, const struct nfs3_fh *fh, bool *search, struct object **object)
{
    enum nfs3_status status = NFS3_OK;
    struct kept *k;

    *object = NULL;
    if (fh->length > NFS3_FH_MAX)
        return NFS3ERR_BADHANDLE;
    k = cache_get(&objects->cache, fh);
    if (k && !current(objects, k)) {
        cache_drop(&objects->cache, k);
        cache_put(&objects->cache, k, now_ms());
        return NFS3ERR_STALE;
    }
    if (!k)
        status = server_object_find(objects, fh, search, &k);
    if (status == NFS3_OK)
        *object = &k->object;
    return status;
}

enum nfs3_status object_get(struct objects *objects, const struct nfs3_fh *fh, struct object **object)
{
    return object_find(objects, fh, NULL, object);
}

void object_put(struct objects *objects, struct object *object)
{
    if (object)
        cache_put(&objects->cache, kept_of(object), now_ms());
}

/* For writing, a descriptor that cannot read will do. */
static int reopen(const struct object *object, bool write, bool *reads)
{
    const int common = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    char path[32];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", object->fd);
    fd = open(path, (write ? O_RDWR : O_RDONLY) | common);
    *reads = fd >= 0;
    if (fd < 0 && write && errno == EACCES)
        fd = open(path, O_WRONLY | common);
    return fd < 0 ? -errno : fd;
}

int object_file(struct objects *objects, struct object *object, int flags)
{
    bool write = (flags & O_ACCMODE) != O_RDONLY, paused, reads;
    struct kept *k = kept_of(object);
    struct identity was;
    int fd;

    if (!S_ISREG(object->type))
        return S_ISDIR(object->type) ? -EISDIR : -EINVAL;
    fd = cache_file(&objects->cache, k, write);
    if (fd >= 0)
        return fd;
    paused = identity_pause(&was);
    fd = reopen(object, write, &reads);
    if (paused)
        identity_assume(&was);
    return fd < 0 ? fd : cache_set_file(&objects->cache, k, write, reads, fd);
}

/* Runs with the server's rights, since the kernel tells only the file's owner and its writers which pages are in
 * memory. */
struct view *object_view(struct objects *objects, struct object *object, int fd, uint64_t size, uint64_t offset,
                         size_t n)
{
    struct kept *k = kept_of(object);
    struct view *view = cache_view(&objects->cache, k, size);
    struct identity was;
    bool paused, there;

    if (!view) {
        view = view_open(fd, size);
        if (!view)
            return NULL;
        cache_set_view(&objects->cache, k, view);
    }
    paused = identity_pause(&was);
    there = view_is_resident(view, offset, n);
    if (paused)
        identity_assume(&was);
    if (there)
        return view;
    view_put(view);
    return NULL;
}

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

static int object_open_parent(const struct object_place *place, const struct kept *dir)
{
    struct identity was;
    struct stat st;
    bool paused, inside;
    int fd;

    if (dir->inode == place->inode)
        return fcntl(place->export->root, F_DUPFD_CLOEXEC, 0);
    fd = openat(dir->object.fd, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    paused = identity_pause(&was);
    inside = !fstat(fd, &st) && inside_export(place, fd, &st);
    if (paused)
        identity_assume(&was);
    if (inside)
        return fd;
    close(fd);
    return -ESTALE;
}

int object_name(struct objects *objects, struct object *dir, const char *name, struct nfs3_fh *fh, struct stat *st)
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
    fd = !strcmp(name, "..") ? object_open_parent(place, k) : open_name(dir->fd, name, 0);
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

int object_root(struct objects *objects, struct export *export, struct nfs3_fh *fh)
{
    const struct object_place *place = place_of(objects, export->id);

    if (!place)
        return -ENOENT;
    make_handle(objects, place, NULL, "", export->root, place->inode, fh);
    return 0;
}

int object_stat(const struct object *object, struct stat *st)
{
    return fstat(object->fd, st) ? -errno : 0;
}

int object_may(const struct object *object, const struct identity *who, int want)
{
    int error = who ? identity_assume(who) : 0;

    if (error)
        return error;
    return syscall(SYS_faccessat2, object->fd, "", want, AT_EMPTY_PATH | AT_EACCESS) ? -errno : 0;
}

void object_forget(struct objects *objects, struct object *dir, const char *name)
{
    (void)dir;
    (void)name;
    cache_forget(&objects->cache, FORGET);
}

bool objects_tend(struct objects *objects)
{
    return objects && cache_tend(&objects->cache, now_ms());
}
