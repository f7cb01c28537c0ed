/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.h - the duplicate-request cache: a retransmitted call gets the reply to the first one, for two minutes. The
 * RPC message is kept without its transport header, since the second call offers different chunks. */
#ifndef RDDP_RPC_REPLAY_H
#define RDDP_RPC_REPLAY_H

#include "rpc/responder.h"

enum { REPLAY_MS = 120000 }; /* how long a reply is kept: no client retransmits for longer, but XIDs come again */

/* Identifies a call. The port is not part of it: a client that reconnects has a different one. */
struct replay_key {
    uint8_t address[16];
    uint32_t xid;
    uint32_t length;
    uint64_t sum; /* of the whole call, with its items in place */
};

enum replay_state { REPLAY_EMPTY, REPLAY_BUSY, REPLAY_KEPT };

struct replay_entry {
    struct replay_key key;
    enum replay_state state;
    struct responder_call *waiter; /* a retransmission of the call that waits for the handler's reply to the first */
    struct reply reply;            /* points into `octets`, which the entry owns */
    uint8_t *octets;
    uint64_t kept_ms;                   /* when it was kept */
    struct replay_entry *next;          /* in the same bucket, or in the list of free entries */
    struct replay_entry *older, *newer; /* neighbours by age, of entries in REPLAY_KEPT */
};

struct replay {
    struct replay_entry *entry, **bucket;
    struct replay_entry *idle, *oldest, *newest;
    uint32_t entries;
};

int replay_init(struct replay *replay, uint32_t entries);
void replay_fini(struct replay *replay);

/* The key is the same whether data of the call are in its payload or in items. */
void replay_key(struct replay_key *key, const struct sockaddr_storage *peer, uint32_t xid,
                const struct responder_call *call);
/* NULL: there is none, or its reply was kept for REPLAY_MS. */
struct replay_entry *replay_find(struct replay *replay, const struct replay_key *key, uint64_t now_ms);

/* Adds a busy entry for this key. If none is free, it replaces the oldest kept reply. NULL if all entries are busy. */
struct replay_entry *replay_add(struct replay *replay, const struct replay_key *key, uint64_t now_ms);

/* Keeps a copy of the reply. Drops the entry instead if the reply is longer than `octets_max` or there is no memory. */
void replay_keep(struct replay *replay, struct replay_entry *entry, const struct reply *reply, uint32_t octets_max,
                 uint64_t now_ms);
void replay_drop(struct replay *replay, struct replay_entry *entry);

#endif
