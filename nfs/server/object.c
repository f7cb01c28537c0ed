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
    pthread_mutex_init(&place->search, NULL);
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
    for (unsigned i = 0; i < objects->places; i++)
        cache_close(&objects->cache, &objects->place[i].closing);
    cache_fini(&objects->cache);
    for (unsigned i = 0; i < objects->places; i++) {
        if (objects->place[i].mount >= 0)
            close(objects->place[i].mount);
    }
    names_close(objects->names);
    pthread_mutex_destroy(&objects->miss_lock);
    free(objects->miss);
    free(objects->place);
    free(objects);
}

struct object_place *place_of(const struct objects *objects, uint32_t id)
{
    for (unsigned i = 0; i < objects->places; i++) {
        if (objects->place[i].export->id == id)
            return &objects->place[i];
    }
    return NULL;
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

/* Whether the object still has a name and was recently seen inside its export; checks again after RECHECK_MS. Returns
 * NFS3ERR_JUKEBOX if that needs more than the kernel has in memory, and the caller may not `wait`. */
static enum nfs3_status current(struct objects *objects, struct kept *k, bool wait)
{
    const struct object_place *place = place_of(objects, k->object.export->id);
    uint64_t now = now_ms();
    bool paused, inside, known = true;
    struct identity was;
    struct stat st;

    if (fstat(k->object.fd, &st) || !st.st_nlink)
        return NFS3ERR_STALE;
    if (now - k->seen < RECHECK_MS)
        return NFS3_OK;
    paused = identity_pause(&was);
    inside = wait ? inside_export(place, k->object.fd, &st) : inside_by_path(place, k->object.fd, &st, &known);
    if (paused)
        identity_assume(&was);
    if (!known)
        return NFS3ERR_JUKEBOX;
    k->seen = now;
    return inside ? NFS3_OK : NFS3ERR_STALE;
}

/* Adds the object to the cache. Takes over `fd`, also on failure. */
static enum nfs3_status object_keep(struct objects *objects, struct object_place *place, const struct handle *h,
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
                       .closing = &place->closing,
                       .reader = -1,
                       .writer = -1};
    k->seen = now_ms();
    *kept = cache_add(&objects->cache, k);
    cache_close(&objects->cache, &place->closing);
    return NFS3_OK;
}

static enum nfs3_status table_find(struct objects *objects, const struct nfs3_fh *fh, bool *search, struct kept **kept)
{
    struct object_place *place;
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

/* Gets the object from the cache: NFS3_OK with `*kept` NULL if it is not there. */
static enum nfs3_status object_from_cache(struct objects *objects, const struct nfs3_fh *fh, bool wait,
                                          struct kept **kept)
{
    enum nfs3_status status;
    struct kept *k;

    *kept = NULL;
    if (fh->length > NFS3_FH_MAX)
        return NFS3ERR_BADHANDLE;
    k = cache_get(&objects->cache, fh);
    if (!k)
        return NFS3_OK;
    status = current(objects, k, wait);
    if (status == NFS3_OK) {
        *kept = k;
        return NFS3_OK;
    }
    if (status == NFS3ERR_STALE)
        cache_drop(&objects->cache, k);
    cache_put(&objects->cache, k, now_ms());
    return status;
}

enum nfs3_status object_find(struct objects *objects, const struct nfs3_fh *fh, bool *search, struct object **object)
{
    struct kept *k;
    enum nfs3_status status = object_from_cache(objects, fh, true, &k);

    if (status == NFS3_OK && !k)
        status = table_find(objects, fh, search, &k);
    *object = status == NFS3_OK ? &k->object : NULL;
    return status;
}

enum nfs3_status object_cached(struct objects *objects, const struct nfs3_fh *fh, struct object **object)
{
    struct kept *k;
    enum nfs3_status status = object_from_cache(objects, fh, false, &k);

    *object = k ? &k->object : NULL;
    return status == NFS3_OK && !k ? NFS3ERR_JUKEBOX : status;
}

bool object_is_ours(const struct objects *objects, const struct nfs3_fh *fh)
{
    struct handle h;

    return handle_get(objects->key, fh, &h);
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

int object_open_file(struct objects *objects, struct object *object, int flags)
{
    int fd;

    if (!S_ISREG(object->type))
        return S_ISDIR(object->type) ? -EISDIR : -EINVAL;
    fd = cache_file(&objects->cache, kept_of(object), (flags & O_ACCMODE) != O_RDONLY);
    return fd < 0 ? -EAGAIN : fd;
}

int object_file(struct objects *objects, struct object *object, int flags)
{
    bool write = (flags & O_ACCMODE) != O_RDONLY, paused, reads;
    int fd = object_open_file(objects, object, flags);
    struct kept *k = kept_of(object);
    struct identity was;

    if (fd != -EAGAIN)
        return fd;
    paused = identity_pause(&was);
    fd = reopen(object, write, &reads);
    if (paused)
        identity_assume(&was);
    if (fd < 0)
        return fd;
    fd = cache_set_file(&objects->cache, k, write, reads, fd);
    cache_close(&objects->cache, k->closing);
    return fd;
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

int object_stat(const struct object *object, struct stat *st)
{
    return fstat(object->fd, st) ? -errno : 0;
}

int object_may(struct object *object, const struct identity *who, int want)
{
    int error = who ? identity_assume(who) : 0;

    if (error)
        return error;
    error = syscall(SYS_faccessat2, object->fd, "", want, AT_EMPTY_PATH | AT_EACCESS) ? -errno : 0;
    kept_of(object)->rights_read = true;
    return error;
}

bool object_rights_are_read(const struct object *object)
{
    return kept_of((struct object *)(uintptr_t)object)->rights_read;
}

void object_forget(struct objects *objects, struct object *dir)
{
    cache_forget(&objects->cache, kept_of(dir)->closing, FORGET);
}

void objects_tend(struct objects *objects, const struct export *e)
{
    cache_tend(&objects->cache, &place_of(objects, e->id)->closing, now_ms());
}

void object_settle(struct objects *objects, struct object *object)
{
    cache_settle(&objects->cache, kept_of(object));
}

void objects_settle(struct objects *objects, const struct export *e)
{
    cache_close(&objects->cache, &place_of(objects, e->id)->closing);
}

bool objects_are_unsettled(const struct objects *objects, const struct export *e)
{
    return atomic_load(&objects->cache.closings) && atomic_load(&place_of(objects, e->id)->closing.objects);
}

bool objects_are_open(const struct objects *objects)
{
    return objects && (atomic_load(&objects->cache.fds) || atomic_load(&objects->cache.closings));
}
