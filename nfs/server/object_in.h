/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_in.h - what the files of object.h share: how an object is found that is not open. */
#ifndef RDDP_NFS_SERVER_OBJECT_IN_H
#define RDDP_NFS_SERVER_OBJECT_IN_H

#include "nfs/server/object_cache.h"

/* What was seen of objects without kernel handles: object_names.c. */
struct names;

struct object_place { /* one export */
    struct export *export;
    int mount;   /* readable: open_by_handle_at() wants one; -1: no kernel handles */
    ino_t inode; /* of the root */
};

enum { SEARCH_MISSES = 16384, SEARCH_WAYS = 4, OPEN_TRIES = 16 };

/* An object that was looked for in vain, so that a peer cannot keep us looking. */
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
    pthread_mutex_t search;    /* one at a time */
    pthread_mutex_t miss_lock; /* guards `miss`, for a moment */
    struct miss *miss;         /* SEARCH_MISSES of them, SEARCH_WAYS for each hash */
};

uint64_t now_ms(void);

/* object_open.c: an O_PATH descriptor of what the handle names, or a negative errno. As the server. With `search` not
 * NULL there is no search: -EAGAIN if one is needed, which is noted there. */
int open_handle(struct objects *objects, const struct object_place *place, const struct handle *h, bool *search);
/* A single name in a directory, no link followed, no mount crossed: O_PATH. */
int open_name(int dir, const char *name, int flags);
/* The handle of what `fd` is: the kernel's. False: it has none that fits. */
bool kernel_handle(const struct object_place *place, int fd, struct handle *h);
uint64_t birth_of(int fd);
/* Is it inside of its export? */
bool inside_export(const struct object_place *place, int fd, const struct stat *st);

/* object_search.c: for objects without kernel handles. As the server, too. */
int search_inode(struct objects *objects, const struct object_place *place, const struct handle *h, bool *search);
/* The octet that a name leaves in a handle. */
uint8_t hint_of(const char *name);

/* object_names.c: a bounded memory of (inode, birth) -> (directory, name). Threads may use it at once. */
struct names *names_open(void);
void names_close(struct names *names);
/* `h` was seen as `name` in `parent`. If it is known, its hints become those of the first time: a handle stays the
 * same when its object moves. */
void names_put(struct names *names, struct handle *h, uint64_t parent, const char *name);
/* The hints of the first time, if there was one. */
void names_recall(struct names *names, struct handle *h);
/* The path from the root, `size` octets; false: not known. */
bool names_path(struct names *names, uint32_t export, uint64_t root, uint64_t inode, char *path, size_t size);

#endif
