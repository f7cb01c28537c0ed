/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* object_names.c - where objects were seen, for handles that the kernel cannot open. It is a cache: a wrong or missing
 * entry costs a search. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nfs/server/object_in.h"

enum { SETS = 1 << 14, WAYS = 4 };

struct seen {
    struct handle h;
    uint64_t parent;
    char name[];
};

struct names {
    pthread_mutex_t lock;
    struct seen *seen[SETS][WAYS];
    uint8_t turn[SETS]; /* the way to replace next */
};

struct names *names_open(void)
{
    struct names *names = calloc(1, sizeof(*names));

    if (names)
        pthread_mutex_init(&names->lock, NULL);
    return names;
}

void names_close(struct names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < SETS; i++) {
        for (size_t w = 0; w < WAYS; w++)
            free(names->seen[i][w]);
    }
    pthread_mutex_destroy(&names->lock);
    free(names);
}

static size_t set_of(uint32_t export, uint64_t inode)
{
    return (size_t)(((inode ^ export) * 0x9e3779b97f4a7c15) >> 50);
}

static struct seen **object_names_find(struct names *names, uint32_t export, uint64_t inode)
{
    size_t set = set_of(export, inode);

    for (size_t w = 0; w < WAYS; w++) {
        struct seen *seen = names->seen[set][w];

        if (seen && seen->h.inode == inode && seen->h.export == export)
            return &names->seen[set][w];
    }
    return NULL;
}

void names_put(struct names *names, struct handle *h, uint64_t parent, const char *name)
{
    size_t size = strlen(name) + 1, set = set_of(h->export, h->inode);
    struct seen *seen = malloc(sizeof(*seen) + size), **at;

    pthread_mutex_lock(&names->lock);
    at = object_names_find(names, h->export, h->inode);
    if (at && (*at)->h.birth == h->birth)
        *h = (*at)->h;
    if (seen) {
        seen->h = *h;
        seen->parent = parent;
        memcpy(seen->name, name, size);
        if (!at)
            at = &names->seen[set][names->turn[set]++ % WAYS];
        free(*at);
        *at = seen;
    }
    pthread_mutex_unlock(&names->lock);
}

void names_recall(struct names *names, struct handle *h)
{
    struct seen **at;

    pthread_mutex_lock(&names->lock);
    at = object_names_find(names, h->export, h->inode);
    if (at && (*at)->h.birth == h->birth)
        *h = (*at)->h;
    pthread_mutex_unlock(&names->lock);
}

bool names_path(struct names *names, uint32_t export, uint64_t root, uint64_t inode, char *path, size_t size)
{
    size_t at = size - 1;
    bool whole;

    path[at] = 0;
    pthread_mutex_lock(&names->lock);
    while (inode != root) {
        struct seen **seen = object_names_find(names, export, inode);
        size_t n = seen ? strlen((*seen)->name) : 0;

        if (!n || at < n + 1)
            break;
        path[--at] = '/';
        at -= n;
        memcpy(path + at, (*seen)->name, n);
        inode = (*seen)->parent;
    }
    pthread_mutex_unlock(&names->lock);
    whole = inode == root && at < size - 1;
    if (whole) {
        memmove(path, path + at, size - at);
        path[size - at - 2] = 0; /* the slash after the last name */
    }
    return whole;
}
