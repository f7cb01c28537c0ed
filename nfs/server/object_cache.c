/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_cache.c - a reference-counted cache of open objects by handle; evicts the object that was idle longest.
 * Nothing here waits for a disk under the lock. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs/server/object_in.h"

int cache_init(struct cache *c, unsigned fds_max)
{
    size_t n = 64;

    while (n < fds_max)
        n *= 2;
    *c = (struct cache){.fds_max = fds_max, .mask = n - 1, .table = calloc(n, sizeof(struct kept *))};
    if (!c->table)
        return -ENOMEM;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->closed, NULL);
    return 0;
}

static void kept_close(const struct kept *k)
{
    view_put(k->view);
    close(k->object.fd);
    if (k->reader >= 0)
        export_close_file(k->object.export, k->reader);
    if (k->writer >= 0)
        export_close_file(k->object.export, k->writer);
}

static void destroy(struct kept *k)
{
    kept_close(k);
    free(k);
}

void cache_fini(struct cache *c)
{
    if (!c->table)
        return;
    for (size_t i = 0; i <= c->mask; i++) {
        for (struct kept *k = c->table[i], *next; k; k = next) {
            next = k->next;
            assert(!k->refs);
            destroy(k);
        }
    }
    free(c->table);
    pthread_cond_destroy(&c->closed);
    pthread_mutex_destroy(&c->lock);
}

/* The MAC at the end of a handle serves as its hash: all handles in the table have a genuine one. */
static struct kept **slot(struct cache *c, const struct nfs3_fh *fh)
{
    uint64_t hash = 0;

    if (fh->length >= sizeof(hash) && fh->length <= NFS3_FH_MAX)
        memcpy(&hash, fh->data + fh->length - sizeof(hash), sizeof(hash));
    return &c->table[hash & c->mask];
}

static bool has_handle(const struct kept *k, const struct nfs3_fh *fh)
{
    return k->fh.length == fh->length && !memcmp(k->fh.data, fh->data, fh->length);
}

static struct kept *object_cache_find(struct cache *c, const struct nfs3_fh *fh)
{
    for (struct kept *k = *slot(c, fh); k; k = k->next) {
        if (has_handle(k, fh))
            return k;
    }
    return NULL;
}

static void list_push(struct cache *c, struct kept *k)
{
    k->older = c->newest;
    k->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = k;
    c->newest = k;
}

static void list_remove(struct cache *c, struct kept *k)
{
    *(k->newer ? &k->newer->older : &c->newest) = k->older;
    *(k->older ? &k->older->newer : &c->oldest) = k->newer;
}

static void table_remove(struct cache *c, struct kept *k)
{
    struct kept **at = slot(c, &k->fh);

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    k->gone = true;
}

static unsigned fds(const struct kept *k)
{
    return 1u + (k->reader >= 0) + (k->writer >= 0);
}

/* The object is in no list any more: its descriptors are closed later. */
static void close_later(struct cache *c, struct kept *k)
{
    c->fds -= fds(k);
    k->closing->fds += fds(k);
    k->next = k->closing->first;
    k->closing->first = k;
    k->closing->objects++;
    c->closings++;
}

static struct kept *closing_begin(struct cache *c, struct closing *closing)
{
    struct kept *k;

    pthread_mutex_lock(&c->lock);
    k = closing->first;
    if (k) {
        closing->first = k->next;
        k->next = closing->now;
        closing->now = k;
        closing->objects--;
        c->closings--;
    }
    pthread_mutex_unlock(&c->lock);
    return k;
}

static void closing_end(struct cache *c, struct closing *closing, struct kept *k)
{
    struct kept **at;

    pthread_mutex_lock(&c->lock);
    for (at = &closing->now; *at != k;)
        at = &(*at)->next;
    *at = k->next;
    closing->fds -= fds(k);
    pthread_cond_broadcast(&c->closed);
    pthread_mutex_unlock(&c->lock);
    free(k);
}

void cache_close(struct cache *c, struct closing *closing)
{
    for (struct kept *k; (k = closing_begin(c, closing));) {
        kept_close(k);
        closing_end(c, closing, k);
    }
}

static bool is_being_closed(const struct closing *closing, const struct nfs3_fh *fh)
{
    const struct kept *k = closing->now;

    while (k && !has_handle(k, fh))
        k = k->next;
    return k;
}

void cache_settle(struct cache *c, const struct kept *k)
{
    cache_close(c, k->closing);
    pthread_mutex_lock(&c->lock);
    while (is_being_closed(k->closing, &k->fh))
        pthread_cond_wait(&c->closed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* Removes an idle object from the cache. */
static void object_cache_evict(struct cache *c, struct kept *k)
{
    list_remove(c, k);
    table_remove(c, k);
    close_later(c, k);
}

static void evict_for_space(struct cache *c)
{
    for (struct kept *k = c->oldest, *newer; k && c->fds > c->fds_max; k = newer) {
        newer = k->newer;
        if (k->closing->fds < CACHE_CLOSING_MAX)
            object_cache_evict(c, k);
    }
}

/* Whether the object has a name, as far as the kernel knows without asking a disk or a server. */
static bool has_name(const struct kept *k)
{
    struct statx sx;

    return !statx(k->object.fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &sx) && sx.stx_nlink;
}

static struct kept *use(struct cache *c, struct kept *k)
{
    if (k && !k->refs++)
        list_remove(c, k);
    return k;
}

struct kept *cache_get(struct cache *c, const struct nfs3_fh *fh)
{
    struct kept *k;

    pthread_mutex_lock(&c->lock);
    k = use(c, object_cache_find(c, fh));
    pthread_mutex_unlock(&c->lock);
    return k;
}

struct kept *cache_add(struct cache *c, struct kept *k)
{
    struct kept *there;

    pthread_mutex_lock(&c->lock);
    there = use(c, object_cache_find(c, &k->fh));
    if (!there) {
        k->refs = 1;
        k->next = *slot(c, &k->fh);
        *slot(c, &k->fh) = k;
        c->fds += fds(k);
        evict_for_space(c);
    }
    pthread_mutex_unlock(&c->lock);
    if (!there)
        return k;
    destroy(k);
    return there;
}

void cache_put(struct cache *c, struct kept *k, uint64_t now)
{
    pthread_mutex_lock(&c->lock);
    assert(k->refs);
    if (!--k->refs) {
        if (k->gone) {
            close_later(c, k);
        } else {
            k->idle = now;
            list_push(c, k);
            evict_for_space(c);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

void cache_drop(struct cache *c, struct kept *k)
{
    pthread_mutex_lock(&c->lock);
    assert(k->refs);
    if (!k->gone)
        table_remove(c, k);
    pthread_mutex_unlock(&c->lock);
}

static int object_cache_file_of(const struct kept *k, bool write)
{
    return write || (k->reader < 0 && k->writer_reads) ? k->writer : k->reader;
}

int cache_file(struct cache *c, struct kept *k, bool write)
{
    int fd;

    pthread_mutex_lock(&c->lock);
    if (write)
        k->written = now_ms();
    fd = object_cache_file_of(k, write);
    pthread_mutex_unlock(&c->lock);
    return fd;
}

int cache_set_file(struct cache *c, struct kept *k, bool write, bool reads, int fd)
{
    int there;

    pthread_mutex_lock(&c->lock);
    there = object_cache_file_of(k, write);
    if (there < 0) {
        *(write ? &k->writer : &k->reader) = fd;
        if (write) {
            k->writer_reads = reads;
            k->written = now_ms();
        }
        c->fds++;
        evict_for_space(c);
    }
    pthread_mutex_unlock(&c->lock);
    if (there < 0)
        return fd;
    export_close_file(k->object.export, fd);
    return there;
}

struct view *cache_view(struct cache *c, struct kept *k, uint64_t size)
{
    struct view *view;

    pthread_mutex_lock(&c->lock);
    view = k->view && view_is_good(k->view, size) ? view_get(k->view) : NULL;
    pthread_mutex_unlock(&c->lock);
    return view;
}

void cache_set_view(struct cache *c, struct kept *k, struct view *view)
{
    struct view *there;

    pthread_mutex_lock(&c->lock);
    there = k->view;
    k->view = view_get(view);
    pthread_mutex_unlock(&c->lock);
    view_put(there);
}

void cache_forget(struct cache *c, struct closing *closing, unsigned n)
{
    pthread_mutex_lock(&c->lock);
    for (struct kept *k = c->newest, *older; k && n; k = older, n--) {
        older = k->older;
        if (k->closing == closing && !has_name(k))
            object_cache_evict(c, k);
    }
    pthread_mutex_unlock(&c->lock);
    cache_close(c, closing);
}

/* --- idle objects ---------------------------------------------------------------------------------------------- */

/* `since` may be slightly later than `now`, since another thread read the clock. */
static bool object_cache_is_over(uint64_t now, uint64_t since, uint64_t ms)
{
    return now >= since && now - since >= ms;
}

/* A descriptor for writing that was not used for a while. Until it is closed no sync of its object begins. */
struct unused_writer {
    struct export *export;
    pthread_mutex_t *sync;
    int fd;
};

static bool take_writer(struct cache *c, struct kept *k, struct unused_writer *unused)
{
    pthread_mutex_t *sync = export_sync(k->object.export, &k->object);

    if (pthread_mutex_trylock(sync)) /* the next time will do */
        return false;
    *unused = (struct unused_writer){k->object.export, sync, k->writer};
    k->writer = -1;
    k->writer_reads = false;
    c->fds--;
    return true;
}

/* Evicts what has been idle too long in a part of the table, so that the lock is never held for long. Returns whether
 * it has found a writer to close. */
static bool tend_part(struct cache *c, const struct closing *closing, size_t first, uint64_t now,
                      struct unused_writer *unused)
{
    for (size_t i = first; i < first + CACHE_PART && i <= c->mask; i++)
        for (struct kept *k = c->table[i], *next; k; k = next) {
            next = k->next;
            if (k->refs || k->closing != closing)
                continue;
            if (object_cache_is_over(now, k->idle, CACHE_IDLE_MS) || !has_name(k))
                object_cache_evict(c, k);
            else if (k->writer >= 0 && object_cache_is_over(now, k->written, CACHE_WRITER_MS) &&
                     take_writer(c, k, unused))
                return true;
        }
    return false;
}

/* An open writing descriptor prevents the file from being executed (ETXTBSY), and an open file without a name keeps its
 * disk space. What closing the writer does not tell of is not lost: the object keeps the inode in memory, and the inode
 * keeps the error. */
void cache_tend(struct cache *c, struct closing *closing, uint64_t now)
{
    for (size_t first = 0; first <= c->mask; first += CACHE_PART) {
        struct unused_writer unused;
        bool found;

        do {
            pthread_mutex_lock(&c->lock);
            found = tend_part(c, closing, first, now, &unused);
            pthread_mutex_unlock(&c->lock);
            if (found) {
                export_close_file(unused.export, unused.fd);
                pthread_mutex_unlock(unused.sync);
            }
            cache_close(c, closing);
        } while (found);
    }
}
