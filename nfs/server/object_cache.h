/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_cache.h - open objects by their handle: counted, the longest idle go first. Threads may use it at once. */
#ifndef RDDP_NFS_SERVER_OBJECT_CACHE_H
#define RDDP_NFS_SERVER_OBJECT_CACHE_H

#include <pthread.h>

#include "nfs/server/handle.h"
#include "nfs/server/object.h"
#include "nfs/server/view.h"

/* An object in the cache. What follows `cache` belongs to the lock of the cache. */
struct kept {
    struct object object; /* first: the two are one pointer */
    struct nfs3_fh fh;
    struct handle h;
    ino_t inode;
    _Atomic uint64_t seen; /* ms: when it was last seen inside of its export */
    struct kept *next;     /* of the same hash */
    struct kept *newer, *older;
    unsigned refs;
    bool gone;          /* not to be found any more: closed when the last one gives it back */
    int reader, writer; /* -1; `writer` may be for writing alone */
    bool writer_reads;
    uint64_t written;  /* ms: when somebody last asked for `writer` */
    struct view *view; /* of the file; NULL: none yet */
    uint64_t idle;     /* ms: since when */
};

struct cache {
    pthread_mutex_t lock;
    struct kept **table;
    size_t mask;
    struct kept *newest, *oldest; /* idle */
    unsigned fds, fds_max;
};

enum { CACHE_IDLE_MS = 30000, CACHE_WRITER_MS = 1000, CACHE_PART = 256 };

int cache_init(struct cache *c, unsigned fds_max);
/* Nothing may be in use. */
void cache_fini(struct cache *c);

/* One more user of what has this handle; NULL. */
struct kept *cache_get(struct cache *c, const struct nfs3_fh *fh);
/* `k`, new and with one user, or what is already there for its handle: then `k` is gone. */
struct kept *cache_add(struct cache *c, struct kept *k);
void cache_put(struct cache *c, struct kept *k, uint64_t now);
/* It is not to be found from now on. The caller is one of its users. */
void cache_drop(struct cache *c, struct kept *k);

/* The descriptor to read or write with, -1 if there is none yet. */
int cache_file(struct cache *c, struct kept *k, bool write);
/* `fd` for it, or what came between: then `fd` is closed. `reads`: `fd` can read. */
int cache_set_file(struct cache *c, struct kept *k, bool write, bool reads, int fd);

/* From time to time, in a thread that may wait: of what nobody uses, closes what was idle for CACHE_IDLE_MS, what has
 * no name any more, and what could be written after CACHE_WRITER_MS. Whether anything is left. */
bool cache_tend(struct cache *c, uint64_t now);

/* Its view, with one more user, if there is one that is good for `size` octets; NULL. */
struct view *cache_view(struct cache *c, struct kept *k, uint64_t size);
/* `view` instead of what there was. The caller's use of it stays. */
void cache_set_view(struct cache *c, struct kept *k, struct view *view);

/* Of the `n` that were idle shortest: whatever has no name any more is closed, and its room on the disk is free. */
void cache_forget(struct cache *c, unsigned n);

#endif
