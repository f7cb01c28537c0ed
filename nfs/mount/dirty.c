/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dirty.c - uncommitted data: queues chunks, marks them as sent, keeps them until they are committed, and queues them
 * again if the server has lost them. */
#include "nfs/mount/dirty.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE_MIN = 4096 };

void dirty_init(struct dirty *d)
{
    *d = (struct dirty){0};
    d->active_end = &d->active;
    d->uncommitted_end = &d->uncommitted;
}

bool dirty_is_empty(const struct dirty *d)
{
    return !d->active && !d->uncommitted;
}

static uint64_t cost(const struct chunk *c)
{
    return c->capacity + sizeof(*c);
}

static void dirty_drop(struct dirty *d, struct chunk *c)
{
    d->octets -= cost(c);
    free(c->data);
    free(c);
    if (dirty_is_empty(d))
        d->end = 0;
}

void dirty_fini(struct dirty *d)
{
    while (d->active) {
        struct chunk *c = d->active;
        d->active = c->next;
        dirty_drop(d, c);
    }
    while (d->uncommitted) {
        struct chunk *c = d->uncommitted;
        d->uncommitted = c->next;
        dirty_drop(d, c);
    }
    dirty_init(d);
}

static bool touches(const struct chunk *c, uint64_t start, uint64_t end)
{
    return c->offset < end && start < c->offset + c->length;
}

static void activate(struct dirty *d, struct chunk *c)
{
    c->next = NULL;
    *d->active_end = c;
    d->active_end = &c->next;
    d->actives++;
}

static void deactivate(struct dirty *d, struct chunk *c)
{
    struct chunk **at = &d->active;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (!*at)
        d->active_end = at;
    d->actives--;
}

static void dirty_keep(struct dirty *d, struct chunk *c)
{
    c->state = CHUNK_UNSTABLE;
    c->next = NULL;
    *d->uncommitted_end = c;
    d->uncommitted_end = &c->next;
}

/* --- writes come in -------------------------------------------------------------------------------------------- */

static bool dirty_make_space(struct dirty *d, struct chunk *c, uint32_t capacity)
{
    uint8_t *data = realloc(c->data, capacity);

    if (!data)
        return false;
    d->octets += capacity - c->capacity;
    c->data = data;
    c->capacity = capacity;
    return true;
}

static bool same_cred(const struct rpc_cred *a, const struct rpc_cred *b)
{
    return a->flavor == b->flavor && a->uid == b->uid && a->gid == b->gid && a->groups == b->groups &&
           !memcmp(a->group, b->group, a->groups * sizeof(a->group[0]));
}

/* Appends a write to the last queued chunk if it continues it, so that small writes share a WRITE while the connection
 * is busy. */
static bool dirty_gather(struct dirty *d, uint64_t offset, const void *data, uint32_t length, bool sync,
                         const struct rpc_cred *cred, uint32_t length_max)
{
    struct chunk *c = d->actives ? (struct chunk *)((char *)d->active_end - offsetof(struct chunk, next)) : NULL;

    if (!c || c->state != CHUNK_QUEUED || c->done || c->sync != sync || c->offset + c->length != offset ||
        c->length > length_max || length > length_max - c->length || !same_cred(&c->cred, cred))
        return false;
    if (c->capacity - c->length < length) {
        uint32_t space = c->capacity;
        while (space - c->length < length)
            space = space > length_max / 2 ? length_max : space * 2;
        if (!dirty_make_space(d, c, space))
            return false;
    }
    memcpy(c->data + c->length, data, length);
    c->length += length;
    return true;
}

bool dirty_add(struct dirty *d, uint64_t offset, const void *data, uint32_t length, bool sync,
               const struct rpc_cred *cred, uint32_t length_max)
{
    d->seq++;
    if (!dirty_gather(d, offset, data, length, sync, cred, length_max)) {
        struct chunk *c = calloc(1, sizeof(*c));

        if (!c)
            return false;
        *c = (struct chunk){.seq = d->seq, .sync = sync, .offset = offset, .length = length, .cred = *cred};
        if (!dirty_make_space(d, c, length < SPACE_MIN ? SPACE_MIN : length)) {
            free(c);
            return false;
        }
        d->octets += sizeof(*c);
        memcpy(c->data, data, length);
        activate(d, c);
    }
    if (offset + length > d->end)
        d->end = offset + length;
    return true;
}

/* --- and go out ------------------------------------------------------------------------------------------------ */

static bool is_behind_another(const struct dirty *d, const struct chunk *c)
{
    for (const struct chunk *older = d->active; older != c; older = older->next) {
        if (touches(older, c->offset, c->offset + c->length))
            return true;
    }
    return false;
}

struct chunk *dirty_next(struct dirty *d)
{
    for (struct chunk *c = d->active; c; c = c->next) {
        if (c->state == CHUNK_QUEUED && !is_behind_another(d, c)) {
            c->state = CHUNK_SENT;
            d->sent++;
            return c;
        }
    }
    return NULL;
}

/* Merges two lists, ordered by `seq`. */
static struct chunk *merge(struct chunk *a, struct chunk *b)
{
    struct chunk *list = NULL, **end = &list;

    while (a || b) {
        struct chunk **from = !b || (a && a->seq < b->seq) ? &a : &b;

        *end = *from;
        *from = (*from)->next;
        end = &(*end)->next;
    }
    *end = NULL;
    return list;
}

static struct chunk *sort(struct chunk *list)
{
    struct chunk *half[2] = {NULL, NULL};

    if (!list || !list->next)
        return list;
    for (int i = 0; list; i ^= 1) {
        struct chunk *c = list;

        list = c->next;
        c->next = half[i];
        half[i] = c;
    }
    return merge(sort(half[0]), sort(half[1]));
}

/* The server has lost its uncommitted data. All chunks are sent again in their order, so that no older one overwrites a
 * newer one. */
static void send_again(struct dirty *d, const uint8_t *verifier)
{
    for (struct chunk *c = d->active; c; c = c->next) {
        c->again = c->state == CHUNK_SENT;
        c->done = c->again ? c->done : 0;
    }
    for (struct chunk *c = d->uncommitted; c; c = c->next) {
        c->state = CHUNK_QUEUED;
        c->done = 0;
        d->actives++;
    }
    d->active = merge(sort(d->active), sort(d->uncommitted));
    d->active_end = &d->active;
    while (*d->active_end)
        d->active_end = &(*d->active_end)->next;
    d->uncommitted = NULL;
    d->uncommitted_end = &d->uncommitted;
    memcpy(d->verifier, verifier, NFS3_VERIFIER);
    d->losses++;
}

static bool has_changed(const struct dirty *d, const uint8_t *verifier)
{
    return d->has_verifier && memcmp(d->verifier, verifier, NFS3_VERIFIER);
}

static bool is_over_uncommitted(const struct dirty *d, const struct chunk *c)
{
    for (const struct chunk *older = d->uncommitted; older; older = older->next) {
        if (touches(older, c->offset, c->offset + c->length))
            return true;
    }
    return false;
}

void dirty_wrote(struct dirty *d, struct chunk *c, uint32_t count, bool stable, const uint8_t *verifier)
{
    assert(c->state == CHUNK_SENT && count <= c->length - c->done);
    d->sent--;
    c->state = CHUNK_QUEUED;
    if (!c->again && has_changed(d, verifier)) {
        send_again(d, verifier);
        c->again = true;
    }
    if (c->again) {
        c->again = false;
        c->done = 0;
        return;
    }
    if (!d->has_verifier) {
        memcpy(d->verifier, verifier, NFS3_VERIFIER);
        d->has_verifier = true;
    }
    c->done += count;
    if (c->done < c->length)
        return;
    deactivate(d, c);
    /* A stable chunk is kept as long as it covers an older one that may have to be sent again. */
    if (stable && !is_over_uncommitted(d, c))
        dirty_drop(d, c);
    else
        dirty_keep(d, c);
}

void dirty_failed(struct dirty *d, struct chunk *c)
{
    assert(c->state == CHUNK_SENT);
    d->sent--;
    deactivate(d, c);
    dirty_drop(d, c);
}

/* --- COMMIT ---------------------------------------------------------------------------------------------------- */

bool dirty_commit(struct dirty *d)
{
    if (d->committing || !d->uncommitted)
        return false;
    for (struct chunk *c = d->uncommitted; c; c = c->next)
        c->state = CHUNK_COMMITTING;
    return d->committing = true;
}

/* Ends the COMMIT. Returns false if all its chunks have been queued again meanwhile. */
static bool end_commit(struct dirty *d)
{
    d->committing = false;
    for (const struct chunk *c = d->uncommitted; c; c = c->next) {
        if (c->state == CHUNK_COMMITTING)
            return true;
    }
    return false;
}

static void drop_committing(struct dirty *d)
{
    struct chunk **at = &d->uncommitted, *c;

    while ((c = *at)) {
        if (c->state != CHUNK_COMMITTING) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        dirty_drop(d, c);
    }
    d->uncommitted_end = at;
}

void dirty_committed(struct dirty *d, const uint8_t *verifier)
{
    if (!end_commit(d))
        return;
    if (has_changed(d, verifier)) {
        send_again(d, verifier);
    } else {
        drop_committing(d);
        d->losses = 0;
    }
}

void dirty_commit_failed(struct dirty *d)
{
    if (end_commit(d))
        drop_committing(d);
}

/* --- questions ------------------------------------------------------------------------------------------------- */

bool dirty_is_unsent(const struct dirty *d, uint64_t seq, uint64_t start, uint64_t end)
{
    for (const struct chunk *c = d->active; c && c->seq <= seq; c = c->next) {
        if (touches(c, start, end))
            return true;
    }
    return false;
}

bool dirty_is_uncommitted(const struct dirty *d, uint64_t seq)
{
    if (d->active && d->active->seq <= seq)
        return true;
    for (const struct chunk *c = d->uncommitted; c; c = c->next) {
        if (c->seq <= seq)
            return true;
    }
    return false;
}

static uint32_t overlay_list(const struct chunk *c, uint64_t offset, uint8_t *to, uint32_t have, uint32_t size)
{
    for (; c; c = c->next) {
        uint64_t start = c->offset > offset ? c->offset : offset, end = c->offset + c->length;

        if (!touches(c, offset, offset + size))
            continue;
        if (end > offset + size)
            end = offset + size;
        /* The server does not know these data yet, nor the hole before them. */
        if (start - offset > have)
            memset(to + have, 0, start - offset - have);
        memcpy(to + (start - offset), c->data + (start - c->offset), end - start);
        if (end - offset > have)
            have = (uint32_t)(end - offset);
    }
    return have;
}

uint32_t dirty_overlay(const struct dirty *d, uint64_t offset, uint8_t *to, uint32_t have, uint32_t size)
{
    have = overlay_list(d->uncommitted, offset, to, have, size);
    have = overlay_list(d->active, offset, to, have, size);
    /* Fill a hole before data that follow. */
    if (have < size && d->end > offset + have) {
        uint32_t more = d->end - offset < size ? (uint32_t)(d->end - offset) : size;
        memset(to + have, 0, more - have);
        have = more;
    }
    return have;
}
