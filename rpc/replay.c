/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - the duplicate-request cache: finds entries by XID and evicts the oldest reply first. */
#include "rpc/replay.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* Hash only the beginning of a call: a client does not use an XID again so soon with the same first octets. */
enum { SUM_OCTETS = 512 };

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
    key->sum = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < call->length && i < SUM_OCTETS; i++)
        key->sum = (key->sum ^ call->payload[i]) * 0x100000001b3;
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

struct replay_entry *replay_find(struct replay *replay, const struct replay_key *key)
{
    struct replay_entry *entry = *replay_bucket_of(replay, key);

    while (entry && !same(&entry->key, key))
        entry = entry->next;
    return entry;
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

struct replay_entry *replay_add(struct replay *replay, const struct replay_key *key)
{
    struct replay_entry **bucket = replay_bucket_of(replay, key), *entry;

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

void replay_keep(struct replay *replay, struct replay_entry *entry, const struct reply *reply, uint32_t octets_max)
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
    entry->older = replay->newest;
    *(replay->newest ? &replay->newest->newer : &replay->oldest) = entry;
    replay->newest = entry;
}
