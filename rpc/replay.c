/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - the duplicate-request cache: finds entries by XID and evicts the oldest reply first. */
#include "rpc/replay.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/xdrbytes.h"

enum { SUM_LANES = 4, SUM_BLOCK = SUM_LANES * sizeof(uint64_t), SUM_TURN = 29, PRUNES = 4 };

/* A sum of octets that come in pieces. Each lane takes a word of a block: this is quick, and notices what a client
 * changes, but it is no defence against one that wants the replies to its own calls confused. */
struct sum {
    uint64_t lane[SUM_LANES];
    uint8_t block[SUM_BLOCK];
    size_t fill;
};

int replay_init(struct replay *replay, uint32_t entries)
{
    *replay = (struct replay){.entries = entries};
    replay->entry = calloc(entries, sizeof(*replay->entry));
    replay->bucket = calloc(entries, sizeof(*replay->bucket));
    if (!replay->entry || !replay->bucket) {
        replay_fini(replay);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < entries; i++) {
        replay->entry[i].next = replay->idle;
        replay->idle = &replay->entry[i];
    }
    return 0;
}

void replay_fini(struct replay *replay)
{
    for (uint32_t i = 0; replay->entry && i < replay->entries; i++)
        free(replay->entry[i].octets);
    free(replay->entry);
    free(replay->bucket);
    *replay = (struct replay){0};
}

static void sum_block(struct sum *sum, const uint8_t *p)
{
    for (unsigned i = 0; i < SUM_LANES; i++) {
        uint64_t v;

        memcpy(&v, p + i * sizeof(v), sizeof(v));
        v ^= sum->lane[i];
        sum->lane[i] = (v << SUM_TURN | v >> (64 - SUM_TURN)) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

static void sum_add(struct sum *sum, const uint8_t *p, size_t n)
{
    size_t part = SUM_BLOCK - sum->fill < n ? SUM_BLOCK - sum->fill : n;

    if (sum->fill && n) {
        memcpy(sum->block + sum->fill, p, part);
        sum->fill += part;
        p += part;
        n -= part;
        if (sum->fill == SUM_BLOCK) {
            sum_block(sum, sum->block);
            sum->fill = 0;
        }
    }
    for (; n >= SUM_BLOCK; n -= SUM_BLOCK, p += SUM_BLOCK)
        sum_block(sum, p);
    if (n) {
        memcpy(sum->block, p, n);
        sum->fill = n;
    }
}

static uint64_t sum_end(struct sum *sum)
{
    static const uint8_t zeros[SUM_BLOCK];
    uint64_t all = 0;

    if (sum->fill)
        sum_add(sum, zeros, SUM_BLOCK - sum->fill);
    for (unsigned i = 0; i < SUM_LANES; i++)
        all = (all ^ sum->lane[i]) * UINT64_C(0x100000001b3);
    return all ^ all >> 32;
}

static uint64_t sum_call(const struct responder_call *call)
{
    static const uint8_t zeros[4];
    struct sum sum = {.lane = {1, 2, 3, 4}};
    size_t in = 0, out = 0;

    for (unsigned i = 0; i < call->items; i++) {
        const struct stream_item *item = &call->item[i];
        size_t lead = item->position - out;

        sum_add(&sum, call->payload + in, lead);
        sum_add(&sum, item->data, item->length);
        sum_add(&sum, zeros, xdr_roundup(item->length));
        in += lead;
        out += lead + item->length + xdr_roundup(item->length);
    }
    if (call->length > in)
        sum_add(&sum, call->payload + in, call->length - in);
    return sum_end(&sum);
}

void replay_key(struct replay_key *key, const struct sockaddr_storage *peer, uint32_t xid,
                const struct responder_call *call)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    memset(key, 0, sizeof(*key));
    if (peer->ss_family == AF_INET6) {
        memcpy(&v6, peer, sizeof(v6));
        memcpy(key->address, &v6.sin6_addr, 16);
    } else {
        memcpy(&v4, peer, sizeof(v4));
        memset(key->address + 10, 0xff, 2);
        memcpy(key->address + 12, &v4.sin_addr, 4);
    }
    key->xid = xid;
    key->length = (uint32_t)stream_length(call->length, call->item, call->items);
    key->sum = sum_call(call);
}

static bool same(const struct replay_key *a, const struct replay_key *b)
{
    return a->xid == b->xid && a->length == b->length && a->sum == b->sum &&
           memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static struct replay_entry **replay_bucket_of(struct replay *replay, const struct replay_key *key)
{
    return &replay->bucket[key->xid * 2654435761U % replay->entries];
}

static void replay_take_out(struct replay *replay, struct replay_entry *entry)
{
    *(entry->older ? &entry->older->newer : &replay->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &replay->newest) = entry->older;
}

void replay_drop(struct replay *replay, struct replay_entry *entry)
{
    struct replay_entry **at = replay_bucket_of(replay, &entry->key);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    if (entry->state == REPLAY_KEPT)
        replay_take_out(replay, entry);
    free(entry->octets);
    *entry = (struct replay_entry){.next = replay->idle};
    replay->idle = entry;
}

static bool is_old(const struct replay_entry *entry, uint64_t now_ms)
{
    return entry->state == REPLAY_KEPT && now_ms - entry->kept_ms >= REPLAY_MS;
}

struct replay_entry *replay_find(struct replay *replay, const struct replay_key *key, uint64_t now_ms)
{
    struct replay_entry *entry = *replay_bucket_of(replay, key);

    while (entry && !same(&entry->key, key))
        entry = entry->next;
    if (!entry || !is_old(entry, now_ms))
        return entry;
    replay_drop(replay, entry);
    return NULL;
}

/* Drops a few entries that are too old, so that their memory does not stay until their places are needed. */
static void prune(struct replay *replay, uint64_t now_ms)
{
    for (unsigned i = 0; i < PRUNES && replay->oldest && is_old(replay->oldest, now_ms); i++)
        replay_drop(replay, replay->oldest);
}

struct replay_entry *replay_add(struct replay *replay, const struct replay_key *key, uint64_t now_ms)
{
    struct replay_entry **bucket = replay_bucket_of(replay, key), *entry;

    prune(replay, now_ms);
    if (!replay->idle && replay->oldest)
        replay_drop(replay, replay->oldest);
    entry = replay->idle;
    if (!entry)
        return NULL;
    replay->idle = entry->next;
    *entry = (struct replay_entry){.key = *key, .state = REPLAY_BUSY, .next = *bucket};
    *bucket = entry;
    return entry;
}

void replay_keep(struct replay *replay, struct replay_entry *entry, const struct reply *reply, uint32_t octets_max,
                 uint64_t now_ms)
{
    size_t n = reply->length, at = reply->length;

    for (unsigned i = 0; i < reply->items; i++)
        n += reply->item[i].length;
    entry->octets = n <= octets_max ? malloc(n ? n : 1) : NULL;
    if (!entry->octets) {
        replay_drop(replay, entry);
        return;
    }
    entry->reply = *reply;
    entry->reply.release = NULL;
    entry->reply.payload = entry->octets;
    memcpy(entry->octets, reply->payload, reply->length);
    for (unsigned i = 0; i < reply->items; i++) {
        if (reply->item[i].length)
            memcpy(entry->octets + at, reply->item[i].data, reply->item[i].length);
        entry->reply.item[i].data = entry->octets + at;
        at += reply->item[i].length;
    }
    entry->state = REPLAY_KEPT;
    entry->kept_ms = now_ms;
    entry->older = replay->newest;
    *(replay->newest ? &replay->newest->newer : &replay->oldest) = entry;
    replay->newest = entry;
}
