/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object.c - files and directories of the exports by file handle. */
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

/* A quarter of the descriptors is left to connections and to what is open for the length of a call. */
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

/* Kernel handles are in order when one leads back to the root that it was made of. */
static void probe_kernel(struct objects *os, struct place *place)
{
    struct handle h;
    struct stat st;
    int fd = -1;

    place->mount = openat(place->export->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->mount >= 0 && kernel_handle(place, place->export->root, &h))
        fd = open_handle(os, place, &h, NULL);
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

static int fail(char *error, int code, const struct export *e, const char *what)
{
    snprintf(error, EXPORT_TEXT, "%.150s: %s", e->path, what);
    return code;
}

static int open_place(struct objects *os, unsigned i, const struct objects_attr *attr, char *error)
{
    struct place *place = &os->place[i];
    struct export *e = &attr->export[i];
    char link[32], path[2];
    struct stat st;
    int fd;

    *place = (struct place){.export = e, .mount = -1};
    for (unsigned j = 0; j < i; j++) {
        if (os->place[j].export->id == e->id)
            return fail(error, -EEXIST, e,
                        "is exported twice, or its number in file handles is that of another export");
    }
    fd = open_name(e->root, ".", 0);
    if (fd < 0)
        return fail(error, fd, e, "openat2() fails: Linux 5.8 or later is needed");
    close(fd);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", e->root);
    if (fstat(e->root, &st) || readlink(link, path, sizeof(path)) < 0)
        return fail(error, -errno, e, "cannot be seen in /proc/self/fd");
    place->inode = st.st_ino;
    if (attr->kernel_handles)
        probe_kernel(os, place);
    return 0;
}

struct objects *objects_open(const struct objects_attr *attr, char *error)
{
    struct objects *os = calloc(1, sizeof(*os));
    int bad = -ENOMEM;

    snprintf(error, EXPORT_TEXT, "out of memory");
    if (os) {
        pthread_mutex_init(&os->search, NULL);
        pthread_mutex_init(&os->miss_lock, NULL);
        os->place = calloc(attr->exports + 1, sizeof(*os->place));
        os->names = names_open();
        os->miss = calloc(SEARCH_MISSES, sizeof(*os->miss));
        if (os->place && os->names && os->miss)
            bad = cache_init(&os->cache, fds_max(attr->open_max));
        if (!bad)
            bad = handle_key_open(os->key, attr->state, error);
        for (; !bad && os->places < attr->exports; os->places++)
            bad = open_place(os, os->places, attr, error);
        if (!bad)
            return os;
        objects_close(os);
    }
    errno = -bad;
    return NULL;
}

void objects_close(struct objects *os)
{
    if (!os)
        return;
    cache_fini(&os->cache);
    for (unsigned i = 0; i < os->places; i++) {
        if (os->place[i].mount >= 0)
            close(os->place[i].mount);
    }
    names_close(os->names);
    pthread_mutex_destroy(&os->search);
    pthread_mutex_destroy(&os->miss_lock);
    free(os->miss);
    free(os->place);
    free(os);
}

static const struct place *place_of(const struct objects *os, uint32_t id)
{
    for (unsigned i = 0; i < os->places; i++) {
        if (os->place[i].export->id == id)
            return &os->place[i];
    }
    return NULL;
}

static struct kept *kept_of(struct object *object)
{
    return (struct kept *)(void *)object;
}

static enum nfs3_status status_of(int error)
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

/* Not gone, and seen inside of its export not long ago. */
static bool current(struct objects *os, struct kept *k)
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
    inside = inside_export(place_of(os, k->object.export->id), k->object.fd, &st);
    if (paused)
        identity_assume(&was);
    k->seen = now;
    return inside;
}

/* Takes `fd`. */
static enum nfs3_status keep(struct objects *os, const struct place *place, const struct handle *h,
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
    *kept = cache_add(&os->cache, k);
    return NFS3_OK;
}

static enum nfs3_status find(struct objects *os, const struct nfs3_fh *fh, bool *search, struct kept **kept)
{
    const struct place *place;
    enum nfs3_status status;
    struct identity was;
    struct handle h;
    bool paused;
    int fd;

    if (!handle_get(os->key, fh, &h))
        return NFS3ERR_BADHANDLE;
    place = place_of(os, h.export);
    if (!place)
        return NFS3ERR_STALE;
    paused = identity_pause(&was);
    fd = open_handle(os, place, &h, search);
    status = fd < 0 ? status_of(fd) : keep(os, place, &h, fh, fd, kept);
    if (paused)
        identity_assume(&was);
    return status;
}

enum nfs3_status object_find(struct objects *os, const struct nfs3_fh *fh, bool *search, struct object **object)
{
    enum nfs3_status status = NFS3_OK;
    struct kept *k;

    *object = NULL;
    if (fh->length > NFS3_FH_MAX)
        return NFS3ERR_BADHANDLE;
    k = cache_get(&os->cache, fh);
    if (k && !current(os, k)) {
        cache_drop(&os->cache, k);
        cache_put(&os->cache, k, now_ms());
        return NFS3ERR_STALE;
    }
    if (!k)
        status = find(os, fh, search, &k);
    if (status == NFS3_OK)
        *object = &k->object;
    return status;
}

enum nfs3_status object_get(struct objects *os, const struct nfs3_fh *fh, struct object **object)
{
    return object_find(os, fh, NULL, object);
}

void object_put(struct objects *os, struct object *object)
{
    if (object)
        cache_put(&os->cache, kept_of(object), now_ms());
}

/* What may only be written is good enough to write. */
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

int object_file(struct objects *os, struct object *object, int flags)
{
    bool write = (flags & O_ACCMODE) != O_RDONLY, paused, reads;
    struct kept *k = kept_of(object);
    struct identity was;
    int fd;

    if (!S_ISREG(object->type))
        return S_ISDIR(object->type) ? -EISDIR : -EINVAL;
    fd = cache_file(&os->cache, k, write);
    if (fd >= 0)
        return fd;
    paused = identity_pause(&was);
    fd = reopen(object, write, &reads);
    if (paused)
        identity_assume(&was);
    return fd < 0 ? fd : cache_set_file(&os->cache, k, write, reads, fd);
}

/* As the server: what is in memory, the system tells the owner of the file and who may write it. */
struct view *object_view(struct objects *os, struct object *object, int fd, uint64_t size, uint64_t offset, size_t n)
{
    struct kept *k = kept_of(object);
    struct view *view = cache_view(&os->cache, k, size);
    struct identity was;
    bool paused, there;

    if (!view) {
        view = view_open(fd, size);
        if (!view)
            return NULL;
        cache_set_view(&os->cache, k, view);
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

/* The way to `name` in `dir`, or to its parent. Below what the kernel opens there is none. */
static void place_hints(struct objects *os, const struct kept *dir, const char *name, struct handle *h)
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
        names_recall(os->names, h);
    else
        names_put(os->names, h, dir->inode, name);
}

/* The handle of `fd`, seen as `name` in `dir`. */
static void make_handle(struct objects *os, const struct place *place, const struct kept *dir, const char *name, int fd,
                        ino_t inode, struct nfs3_fh *fh)
{
    struct handle h;

    if (!kernel_handle(place, fd, &h)) {
        h = (struct handle){.kind = HANDLE_INODE, .export = place->export->id, .inode = inode, .birth = birth_of(fd)};
        if (dir && inode != place->inode)
            place_hints(os, dir, name, &h);
    }
    handle_put(os->key, &h, fh);
}

static int open_parent(const struct place *place, const struct kept *dir)
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

int object_name(struct objects *os, struct object *dir, const char *name, struct nfs3_fh *fh, struct stat *st)
{
    const struct place *place = place_of(os, dir->export->id);
    struct kept *k = kept_of(dir);
    int fd;

    if (!name || !strcmp(name, ".")) {
        *fh = k->fh;
        return object_stat(dir, st);
    }
    if (!*name || strchr(name, '/'))
        return -EINVAL;
    fd = !strcmp(name, "..") ? open_parent(place, k) : open_name(dir->fd, name, 0);
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
    make_handle(os, place, k, name, fd, st->st_ino, fh);
    close(fd);
    return 0;
}

int object_root(struct objects *os, struct export *export, struct nfs3_fh *fh)
{
    const struct place *place = place_of(os, export->id);

    if (!place)
        return -ENOENT;
    make_handle(os, place, NULL, "", export->root, place->inode, fh);
    return 0;
}

int object_stat(const struct object *object, struct stat *st)
{
    return fstat(object->fd, st) ? -errno : 0;
}

int object_may(const struct object *object, const struct identity *who, int want)
{
    int bad = who ? identity_assume(who) : 0;

    if (bad)
        return bad;
    return syscall(SYS_faccessat2, object->fd, "", want, AT_EMPTY_PATH | AT_EACCESS) ? -errno : 0;
}

void object_forget(struct objects *os, struct object *dir, const char *name)
{
    (void)dir;
    (void)name;
    cache_forget(&os->cache, FORGET);
}

bool objects_tend(struct objects *os)
{
    return os && cache_tend(&os->cache, now_ms());
}
