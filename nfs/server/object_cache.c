/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_cache.c - a reference-counted cache of open objects by handle; evicts the object that was idle longest. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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
    return 0;
}

static void destroy(struct kept *k)
{
    view_put(k->view);
    close(k->object.fd);
    if (k->reader >= 0)
        close(k->reader);
    if (k->writer >= 0)
        close(k->writer);
    free(k);
}

/* Destroys a list linked by `next`. Call it without the lock, since close() may block. */
static void destroy_all(struct kept *k)
{
    for (struct kept *next; k; k = next) {
        next = k->next;
        destroy(k);
    }
}

void cache_fini(struct cache *c)
{
    if (!c->table)
        return;
    for (size_t i = 0; i <= c->mask; i++) {
        for (struct kept *k = c->table[i]; k; k = k->next)
            assert(!k->refs);
        destroy_all(c->table[i]);
    }
    free(c->table);
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

static struct kept *object_cache_find(struct cache *c, const struct nfs3_fh *fh)
{
    for (struct kept *k = *slot(c, fh); k; k = k->next) {
        if (k->fh.length == fh->length && !memcmp(k->fh.data, fh->data, fh->length))
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

/* Removes an idle object from the cache and puts it in front of `list`. */
static struct kept *object_cache_evict(struct cache *c, struct kept *k, struct kept *list)
{
    list_remove(c, k);
    table_remove(c, k);
    c->fds -= fds(k);
    k->next = list;
    return k;
}

static struct kept *evict_for_space(struct cache *c)
{
    struct kept *list = NULL;

    while (c->fds > c->fds_max && c->oldest)
        list = object_cache_evict(c, c->oldest, list);
    return list;
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
    struct kept *there, *list = NULL;

    pthread_mutex_lock(&c->lock);
    there = use(c, object_cache_find(c, &k->fh));
    if (!there) {
        k->refs = 1;
        k->next = *slot(c, &k->fh);
        *slot(c, &k->fh) = k;
        c->fds += fds(k);
        list = evict_for_space(c);
    }
    pthread_mutex_unlock(&c->lock);
    destroy_all(list);
    if (!there)
        return k;
    destroy(k);
    return there;
}

void cache_put(struct cache *c, struct kept *k, uint64_t now)
{
    struct kept *list = NULL;

    pthread_mutex_lock(&c->lock);
    assert(k->refs);
    if (!--k->refs) {
        if (k->gone) {
            c->fds -= fds(k);
            k->next = NULL;
            list = k;
        } else {
            k->idle = now;
            list_push(c, k);
            list = evict_for_space(c);
        }
    }
    pthread_mutex_unlock(&c->lock);
    destroy_all(list);
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
    struct kept *list = NULL;
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
        list = evict_for_space(c);
    }
    pthread_mutex_unlock(&c->lock);
    destroy_all(list);
    if (there < 0)
        return fd;
    close(fd);
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

void cache_forget(struct cache *c, unsigned n)
{
    struct kept *list = NULL;
    struct stat st;

    pthread_mutex_lock(&c->lock);
    for (struct kept *k = c->newest, *older; k && n; k = older, n--) {
        older = k->older;
        if (!fstat(k->object.fd, &st) && !st.st_nlink)
            list = object_cache_evict(c, k, list);
    }
    pthread_mutex_unlock(&c->lock);
    destroy_all(list);
}

/* --- idle objects ---------------------------------------------------------------------------------------------- */

/* `since` may be slightly later than `now`, since another thread read the clock. */
static bool object_cache_is_over(uint64_t now, uint64_t since, uint64_t ms)
{
    return now >= since && now - since >= ms;
}

/* Collects what has been idle too long in a part of the table, so that the lock is never held for long. Returns the
 * objects to destroy; `writer` gets the descriptors to close. */
static struct kept *tend_part(struct cache *c, size_t first, uint64_t now, int *writer, unsigned *writers)
{
    struct kept *list = NULL;
    struct stat st;

    for (size_t i = first; i < first + CACHE_PART && i <= c->mask; i++)
        for (struct kept *k = c->table[i], *next; k; k = next) {
            next = k->next;
            if (k->refs)
                continue;
            if (object_cache_is_over(now, k->idle, CACHE_IDLE_MS) || fstat(k->object.fd, &st) || !st.st_nlink) {
                list = object_cache_evict(c, k, list);
            } else if (k->writer >= 0 && object_cache_is_over(now, k->written, CACHE_WRITER_MS) &&
                       *writers < CACHE_PART) {
                writer[(*writers)++] = k->writer;
                k->writer = -1;
                k->writer_reads = false;
                c->fds--;
            }
        }
    return list;
}

/* An open writing descriptor prevents the file from being executed (ETXTBSY), and an open file without a name keeps its
 * disk space. Closing the writer loses no write error: the object keeps the inode in memory, and the inode keeps the
 * error. */
bool cache_tend(struct cache *c, uint64_t now)
{
    bool any;

    for (size_t first = 0; first <= c->mask; first += CACHE_PART) {
        int writer[CACHE_PART];
        unsigned writers = 0;
        struct kept *list;

        pthread_mutex_lock(&c->lock);
        list = tend_part(c, first, now, writer, &writers);
        pthread_mutex_unlock(&c->lock);
        destroy_all(list);
        while (writers)
            close(writer[--writers]);
    }
    pthread_mutex_lock(&c->lock);
    any = c->fds;
    pthread_mutex_unlock(&c->lock);
    return any;
}
