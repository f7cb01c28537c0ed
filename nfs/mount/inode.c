/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inode.c - a table of inodes, found by number or by handle. */
#include "nfs/mount/inode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_MIN = 1024 };

static size_t mix(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return (size_t)(x ^ x >> 32);
}

static size_t hash_fh(const struct nfs3_fh *fh)
{
    uint64_t h = fh->length;

    for (uint32_t i = 0; i < fh->length; i++)
        h = (h ^ fh->data[i]) * 0x100000001b3u;
    return mix(h);
}

static bool same_fh(const struct nfs3_fh *a, const struct nfs3_fh *b)
{
    return a->length == b->length && !memcmp(a->data, b->data, a->length);
}

static void inodes_enter(struct inodes *t, struct inode *inode)
{
    struct inode **ino = &t->by_ino[mix(inode->ino) & (t->buckets - 1)];
    struct inode **fh = &t->by_fh[hash_fh(&inode->fh) & (t->buckets - 1)];

    inode->next_ino = *ino;
    *ino = inode;
    inode->next_fh = *fh;
    *fh = inode;
}

static bool make_buckets(struct inodes *t, size_t buckets)
{
    t->by_ino = calloc(buckets, sizeof(*t->by_ino));
    t->by_fh = calloc(buckets, sizeof(*t->by_fh));
    t->buckets = buckets;
    if (t->by_ino && t->by_fh)
        return true;
    free(t->by_ino);
    free(t->by_fh);
    return false;
}

/* Doubles the table. Without memory the chains simply get longer. */
static void inodes_grow(struct inodes *t)
{
    struct inodes old = *t;

    if (!make_buckets(t, old.buckets * 2)) {
        *t = old;
        return;
    }
    for (size_t i = 0; i < old.buckets; i++) {
        for (struct inode *inode = old.by_ino[i], *next; inode; inode = next) {
            next = inode->next_ino;
            inodes_enter(t, inode);
        }
    }
    free(old.by_ino);
    free(old.by_fh);
}

bool inodes_init(struct inodes *t, const struct nfs3_fh *root)
{
    *t = (struct inodes){.last_ino = INODE_ROOT - 1};
    if (!make_buckets(t, BUCKETS_MIN))
        return false;
    if (inodes_get(t, root)) /* its pin is kept */
        return true;
    inodes_fini(t);
    return false;
}

static void inode_release(struct inode *inode)
{
    free(inode->dirty);
    free(inode->silly);
    free(inode);
}

void inodes_fini(struct inodes *t)
{
    for (size_t i = 0; i < t->buckets; i++) {
        for (struct inode *inode = t->by_ino[i], *next; inode; inode = next) {
            next = inode->next_ino;
            inode_release(inode);
        }
    }
    free(t->by_ino);
    free(t->by_fh);
    *t = (struct inodes){0};
}

struct inode *inodes_find(const struct inodes *t, uint64_t ino)
{
    struct inode *inode = t->by_ino[mix(ino) & (t->buckets - 1)];

    while (inode && inode->ino != ino)
        inode = inode->next_ino;
    return inode;
}

struct inode *inodes_seek(const struct inodes *t, const struct nfs3_fh *fh)
{
    struct inode *inode = t->by_fh[hash_fh(fh) & (t->buckets - 1)];

    while (inode && !same_fh(&inode->fh, fh))
        inode = inode->next_fh;
    return inode;
}

struct inode *inodes_get(struct inodes *t, const struct nfs3_fh *fh)
{
    struct inode *inode = inodes_seek(t, fh);

    if (!inode) {
        inode = calloc(1, sizeof(*inode));
        if (!inode)
            return NULL;
        if (t->count >= t->buckets)
            inodes_grow(t);
        inode->ino = ++t->last_ino;
        inode->fh = *fh;
        inodes_enter(t, inode);
        t->count++;
    }
    inode->pins++;
    return inode;
}

static void remove_unused(struct inodes *t, struct inode *inode)
{
    struct inode **at;

    if (inode->lookups || inode->pins)
        return;
    at = &t->by_ino[mix(inode->ino) & (t->buckets - 1)];
    while (*at != inode)
        at = &(*at)->next_ino;
    *at = inode->next_ino;
    at = &t->by_fh[hash_fh(&inode->fh) & (t->buckets - 1)];
    while (*at != inode)
        at = &(*at)->next_fh;
    *at = inode->next_fh;
    t->count--;
    inode_release(inode);
}

void inode_pin(struct inode *inode)
{
    inode->pins++;
}

void inode_unpin(struct inodes *t, struct inode *inode)
{
    assert(inode->pins);
    inode->pins--;
    remove_unused(t, inode);
}

void inode_forget(struct inodes *t, struct inode *inode, uint64_t n)
{
    inode->lookups -= n < inode->lookups ? n : inode->lookups;
    remove_unused(t, inode);
}
