/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_cache.h - a reference-counted cache of open objects by handle; evicts the object that was idle longest.
 * Thread-safe. */
#ifndef RDDP_NFS_SERVER_OBJECT_CACHE_H
#define RDDP_NFS_SERVER_OBJECT_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "nfs/server/handle.h"
#include "nfs/server/object.h"
#include "nfs/server/view.h"

/* The objects of an export that have left the cache and are still open, since closing them may wait for the disk.
 * Guarded by the lock of the cache. */
struct closing {
    struct kept *first;
    struct kept *now; /* those that threads are closing */
    unsigned fds;
    _Atomic unsigned objects;
};

/* An object in the cache. The members from `next` on are guarded by the lock of the cache; those before it do not
 * change. */
struct kept {
    struct object object; /* the first member: both have the same address */
    struct nfs3_fh fh;
    struct handle h;
    ino_t inode;
    struct closing *closing; /* of its export */
    _Atomic uint64_t seen;   /* ms: when it was last seen inside its export */
    atomic_bool rights_read; /* the kernel has its ACL in memory */
    struct kept *next;       /* with the same hash */
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
    pthread_cond_t closed; /* one is in no list `now` any more */
    struct kept **table;
    size_t mask;
    struct kept *newest, *oldest; /* list of idle objects */
    _Atomic unsigned fds;
    unsigned fds_max;
    _Atomic unsigned closings; /* objects in lists of `closing` */
};

/* An export of which CACHE_CLOSING_MAX descriptors wait to be closed gives none up for others. */
enum { CACHE_IDLE_MS = 30000, CACHE_WRITER_MS = 1000, CACHE_PART = 256, CACHE_CLOSING_MAX = 256 };

int cache_init(struct cache *c, unsigned fds_max);
/* No object may be in use. Those of lists of `closing` are closed before by their owner. */
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

/* Closes what waits in the list. It may wait for the disk, as may cache_settle(); none of the other calls does. */
void cache_close(struct cache *c, struct closing *closing);
/* Closes what waits in the list of the export of `k`, and waits until no thread is closing an earlier object of this
 * handle: what that one has lost is known then. The caller must be a user of `k`. */
void cache_settle(struct cache *c, const struct kept *k);
/* Makes `fd` that descriptor and returns it. If another thread was faster, closes `fd` and returns the other's.
 * `reads`: `fd` can also read. */
int cache_set_file(struct cache *c, struct kept *k, bool write, bool reads, int fd);

/* Call periodically, in a thread that may block: closes objects of one export without users that were idle for
 * CACHE_IDLE_MS or have no name any more, and descriptors for writing after CACHE_WRITER_MS. */
void cache_tend(struct cache *c, struct closing *closing, uint64_t now);

/* Returns the object's view and counts one more user of it, if it covers `size` octets; else NULL. */
struct view *cache_view(struct cache *c, struct kept *k, uint64_t size);
/* Replaces the object's view by `view`. The caller remains a user of `view`. */
void cache_set_view(struct cache *c, struct kept *k, struct view *view);

/* Destroys those of the `n` most recently idle objects that are of this export and have no name any more, which frees
 * their disk space. */
void cache_forget(struct cache *c, struct closing *closing, unsigned n);

#endif
