/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_search.c - finds an object by its inode number: where it was seen last, else along the hints of its handle,
 * else in the whole export. Searches are limited, since peers can cause them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "nfs/server/object_in.h"

enum { SEARCH_MS = 1000, SEARCH_ENTRIES = 1 << 20, SEARCH_DEPTH = 64, MISS_MS = 60000 };

struct search {
    struct objects *objects;
    const struct object_place *place;
    const struct handle *h;
    bool guided;
    unsigned left; /* directory entries that may still be visited */
    uint64_t until;
    struct handle way; /* hints of the current directory */
};

uint8_t hint_of(const char *name)
{
    uint32_t v = 0x811c9dc5;

    for (; *name; name++)
        v = (v ^ (uint8_t)*name) * 0x01000193;
    return (uint8_t)(v ^ v >> 8 ^ v >> 16 ^ v >> 24);
}

/* Returns `fd` if it is the object of the handle; else closes it. */
static int verified(const struct object_place *place, const struct handle *h, int fd)
{
    struct stat st;

    if (fd < 0)
        return -ESTALE;
    if (!fstat(fd, &st) && st.st_dev == place->export->dev && st.st_ino == h->inode && birth_of(fd) == h->birth)
        return fd;
    close(fd);
    return -ESTALE;
}

/* Remembers that the object was found as `name` in the directory of s->way, so that the next search is quick. */
static void object_search_remember(struct search *s, uint64_t inode, uint64_t birth, uint64_t parent, const char *name)
{
    struct handle h = s->way;

    h.inode = inode;
    h.birth = birth;
    if (h.count < HANDLE_HINTS_MAX)
        h.hint[h.count++] = hint_of(name);
    /* Clients have this handle already, so the object keeps its hints. */
    if (inode == s->h->inode)
        h = *s->h;
    names_put(s->objects->names, &h, parent, name);
}

static int object_search_walk(struct search *s, int dir, uint64_t inode, unsigned depth);

/* Visits an entry: it is the object itself, or a directory to search. */
static int object_search_visit(struct search *s, int dir, uint64_t inode, unsigned depth, const struct dirent *entry)
{
    uint8_t hint = hint_of(entry->d_name);
    bool known = depth < s->h->count;
    uint8_t count = s->way.count;
    struct stat st;
    int fd = -ESTALE, sub;

    if (s->guided && known && s->h->hint[depth] != hint)
        return -ESTALE;
    if (entry->d_ino == s->h->inode)
        fd = verified(s->place, s->h, open_name(dir, entry->d_name, 0));
    if (fd >= 0) {
        object_search_remember(s, s->h->inode, s->h->birth, inode, entry->d_name);
        return fd;
    }
    if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) || depth + 1 >= SEARCH_DEPTH ||
        (s->guided && depth + 1 >= s->h->count && s->h->count < HANDLE_HINTS_MAX))
        return -ESTALE;
    sub = open_name(dir, entry->d_name, O_DIRECTORY);
    if (sub < 0)
        return -ESTALE;
    if (count < HANDLE_HINTS_MAX)
        s->way.hint[s->way.count++] = hint;
    if (!fstat(sub, &st))
        fd = object_search_walk(s, sub, st.st_ino, depth + 1);
    s->way.count = count;
    if (fd >= 0)
        object_search_remember(s, st.st_ino, birth_of(sub), inode, entry->d_name);
    close(sub);
    return fd;
}

static int object_search_walk(struct search *s, int dir, uint64_t inode, unsigned depth)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = -ESTALE;
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!stream) {
        if (fd >= 0)
            close(fd);
        return -ESTALE;
    }
    while (found < 0 && s->left && (entry = readdir(stream))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        found = object_search_visit(s, fd, inode, depth, entry);
        if (!--s->left || (s->left % 256 == 0 && now_ms() >= s->until))
            s->left = 0;
    }
    closedir(stream);
    return found;
}

/* --- what was looked for in vain --------------------------------------------------------------------------------- */

static bool is_miss(const struct miss *miss, const struct object_place *place, const struct handle *h)
{
    return miss->place == place && miss->inode == h->inode && miss->birth == h->birth;
}

/* The first of the SEARCH_WAYS entries for this handle. */
static struct miss *misses_of(struct objects *objects, const struct handle *h)
{
    uint64_t hash = (h->inode ^ h->birth ^ h->export) * 0x9e3779b97f4a7c15;

    return &objects->miss[(hash >> 32) % SEARCH_MISSES / SEARCH_WAYS * SEARCH_WAYS];
}

static bool missed(struct objects *objects, const struct object_place *place, const struct handle *h)
{
    const struct miss *miss = misses_of(objects, h);
    bool found = false;

    pthread_mutex_lock(&objects->miss_lock);
    for (unsigned i = 0; i < SEARCH_WAYS; i++)
        found = found || (is_miss(&miss[i], place, h) && now_ms() < miss[i].until);
    pthread_mutex_unlock(&objects->miss_lock);
    return found;
}

/* Replaces the entry of this object, or else the oldest one. */
static void note_miss(struct objects *objects, const struct object_place *place, const struct handle *h)
{
    struct miss *miss = misses_of(objects, h), *at = miss;

    pthread_mutex_lock(&objects->miss_lock);
    for (unsigned i = 1; i < SEARCH_WAYS && !is_miss(at, place, h); i++)
        if (is_miss(&miss[i], place, h) || miss[i].until < at->until)
            at = &miss[i];
    *at = (struct miss){place, h->inode, h->birth, now_ms() + MISS_MS};
    pthread_mutex_unlock(&objects->miss_lock);
}

/* --- looking ----------------------------------------------------------------------------------------------------- */

static int walk_all(struct objects *objects, const struct object_place *place, const struct handle *h)
{
    struct search s = {.objects = objects, .place = place, .h = h, .until = now_ms() + SEARCH_MS};
    int fd = -ESTALE;

    s.way = (struct handle){.kind = HANDLE_INODE, .export = h->export};
    for (unsigned turn = h->count ? 0 : 1; turn < 2 && fd < 0; turn++) {
        s.guided = turn == 0;
        s.left = SEARCH_ENTRIES;
        fd = object_search_walk(&s, place->export->root, place->inode, 0);
    }
    return fd;
}

static int known(struct objects *objects, const struct object_place *place, const struct handle *h)
{
    char path[PATH_MAX];

    if (!names_path(objects->names, h->export, place->inode, h->inode, path, sizeof(path)))
        return -ESTALE;
    return verified(place, h, open_name(place->export->root, path, 0));
}

int search_inode(struct objects *objects, struct object_place *place, const struct handle *h, bool *search)
{
    int fd;

    if (h->inode == place->inode)
        return verified(place, h, fcntl(place->export->root, F_DUPFD_CLOEXEC, 0));
    fd = known(objects, place, h);
    if (fd >= 0 || missed(objects, place, h))
        return fd;
    if (search) {
        *search = true;
        return -EAGAIN;
    }
    pthread_mutex_lock(&place->search);
    /* The previous holder of the lock may have searched for the same object. */
    fd = missed(objects, place, h) ? -ESTALE : walk_all(objects, place, h);
    if (fd < 0)
        note_miss(objects, place, h);
    pthread_mutex_unlock(&place->search);
    return fd;
}
