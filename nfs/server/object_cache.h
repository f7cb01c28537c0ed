/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_cache.h - a reference-counted cache of open objects by handle; evicts the object that was idle longest.
 * Thread-safe. */
#ifndef RDDP_NFS_SERVER_OBJECT_CACHE_H
#define RDDP_NFS_SERVER_OBJECT_CACHE_H

#include <pthread.h>

#include "nfs/server/handle.h"
#include "nfs/server/object.h"
#include "nfs/server/view.h"

/* An object in the cache. The members from `next` on are guarded by the lock of the cache; those before it do not
 * change. */
struct kept {
    struct object object; /* the first member: both have the same address */
    struct nfs3_fh fh;
    struct handle h;
    ino_t inode;
    _Atomic uint64_t seen; /* ms: when it was last seen inside its export */
    struct kept *next;     /* with the same hash */
    struct kept *newer, *older;
    unsigned refs;
    bool gone;          /* not in the table any more; destroyed when its last user returns it */
    int reader, writer; /* descriptors, -1: not open; `writer` may be write-only */
    bool writer_reads;
    uint64_t written;  /* ms: when `writer` was last asked for */
    struct view *view; /* of the file; NULL: none */
    uint64_t idle;     /* ms: when it became idle */
};

struct cache {
    pthread_mutex_t lock;
    struct kept **table;
    size_t mask;
    struct kept *newest, *oldest; /* list of idle objects */
    unsigned fds, fds_max;
};

enum { CACHE_IDLE_MS = 30000, CACHE_WRITER_MS = 1000, CACHE_PART = 256 };

int cache_init(struct cache *c, unsigned fds_max);
/* No object may be in use. */
void cache_fini(struct cache *c);

/* Returns the object of this handle and counts one more user; NULL if it is not in the cache. */
struct kept *cache_get(struct cache *c, const struct nfs3_fh *fh);
/* Adds `k`, which is new and has one user. If the handle is already in the cache, returns that object instead, and `k`
 * is destroyed. */
struct kept *cache_add(struct cache *c, struct kept *k);
void cache_put(struct cache *c, struct kept *k, uint64_t now);
/* Removes the object from the table, so that it is not found again. The caller must be one of its users. */
void cache_drop(struct cache *c, struct kept *k);

/* Returns the descriptor for reading or writing; -1 if there is none yet. */
int cache_file(struct cache *c, struct kept *k, bool write);
/* Makes `fd` that descriptor and returns it. If another thread was faster, closes `fd` and returns the other's.
 * `reads`: `fd` can also read. */
int cache_set_file(struct cache *c, struct kept *k, bool write, bool reads, int fd);

/* Call periodically, in a thread that may block: closes objects without users that were idle for CACHE_IDLE_MS or have
 * no name any more, and descriptors for writing after CACHE_WRITER_MS. Returns whether any object is left. */
bool cache_tend(struct cache *c, uint64_t now);

/* Returns the object's view and counts one more user of it, if it covers `size` octets; else NULL. */
struct view *cache_view(struct cache *c, struct kept *k, uint64_t size);
/* Replaces the object's view by `view`. The caller remains a user of `view`. */
void cache_set_view(struct cache *c, struct kept *k, struct view *view);

/* Destroys those of the `n` most recently idle objects that have no name any more, which frees their disk space. */
void cache_forget(struct cache *c, unsigned n);

#endif
