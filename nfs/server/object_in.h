/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_in.h - what the files of object.h share: opening an object that is not in the cache. */
#ifndef RDDP_NFS_SERVER_OBJECT_IN_H
#define RDDP_NFS_SERVER_OBJECT_IN_H

#include "nfs/server/object_cache.h"

/* Where objects without kernel handles were seen: object_names.c. */
struct names;

struct object_place { /* one export */
    struct export *export;
    int mount;   /* a readable descriptor of the root, for open_by_handle_at(); -1: no kernel handles */
    ino_t inode; /* of the root */
    struct closing closing;
    pthread_mutex_t search; /* held during a search: one at a time */
};

enum { SEARCH_MISSES = 16384, SEARCH_WAYS = 4, OPEN_TRIES = 16, OPEN_PAUSE_NS = 100000 };

/* An object that was not found, so that a peer cannot make us search for it again and again. */
struct miss {
    const struct object_place *place;
    uint64_t inode, birth, until;
};

struct objects {
    struct cache cache;
    uint8_t key[HANDLE_KEY];
    struct object_place *place;
    unsigned places;
    struct names *names;
    pthread_mutex_t miss_lock; /* guards `miss`; never held for long */
    struct miss *miss;         /* SEARCH_MISSES entries, SEARCH_WAYS for each hash */
};

uint64_t now_ms(void);

static inline struct kept *kept_of(struct object *object)
{
    return (struct kept *)(void *)object;
}

/* In object.c: the export with this number, or NULL. */
struct object_place *place_of(const struct objects *objects, uint32_t id);

/* In object_open.c: opens the object of a handle as O_PATH, with the server's rights. Returns a descriptor or a
 * negative errno. If `search` is not NULL and a search is needed, sets `*search` and returns -EAGAIN. */
int open_handle(struct objects *objects, struct object_place *place, const struct handle *h, bool *search);
/* Opens a path below a directory as O_PATH, without following a link or crossing a mount point. */
int open_name(int dir, const char *name, int flags);
/* The same for a single name or "..", from the kernel's cache of names alone: -EAGAIN if it would have to ask the disk,
 * or cannot tell. */
int open_cached_name(int dir, const char *name);
/* Makes the kernel handle of `fd`. Returns false if there is none, or none that fits. */
bool kernel_handle(const struct object_place *place, int fd, struct handle *h);
uint64_t birth_of(int fd);
/* Whether the path of the object `fd`, as the kernel has it in memory, is below that of its export. Sets `*known` to
 * false if the path alone does not tell. */
bool inside_by_path(const struct object_place *place, int fd, const struct stat *st, bool *known);
/* Whether the object `fd` is inside its export. */
bool inside_export(const struct object_place *place, int fd, const struct stat *st);

/* In object_search.c: finds objects without kernel handles, also with the server's rights. */
int search_inode(struct objects *objects, struct object_place *place, const struct handle *h, bool *search);
/* The hint for a name: one octet in a handle. */
uint8_t hint_of(const char *name);

/* In object_names.c: a bounded map from (inode, birth) to (directory, name). Thread-safe. */
struct names *names_open(void);
void names_close(struct names *names);
/* Notes that `h` was seen as `name` in `parent`. If the object is already known, `h` gets its first hints, so that a
 * handle stays the same when its object is moved. */
void names_put(struct names *names, struct handle *h, uint64_t parent, const char *name);
/* Gives `h` the first hints of its object, if it is known. */
void names_recall(struct names *names, struct handle *h);
/* Writes the path of the object below the root to `path`, which has `size` octets. Returns false if it is not known. */
bool names_path(struct names *names, uint32_t export, uint64_t root, uint64_t inode, char *path, size_t size);

#endif
