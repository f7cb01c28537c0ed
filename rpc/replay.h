/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.h - the duplicate-request cache: a call that comes a second time gets the first one's reply. The RPC message
 * is kept, not its framing: the chunks of the second call are others. */
#ifndef RDDP_RPC_REPLAY_H
#define RDDP_RPC_REPLAY_H

#include "rpc/responder.h"

/* Who asks what. The port is not in it: a client that comes back has another one. */
struct replay_key {
    uint8_t address[16];
    uint32_t xid;
    uint32_t length;
    uint64_t sum; /* of the beginning of the call */
};

enum replay_state { REPLAY_EMPTY, REPLAY_BUSY, REPLAY_KEPT };

struct replay_entry {
    struct replay_key key;
    enum replay_state state;
    struct responder_call *waiter; /* the same call again, while the first is still at work */
    struct reply reply;            /* points into `octets` */
    uint8_t *octets;
    struct replay_entry *next;          /* of the same bucket, or of those that are empty */
    struct replay_entry *older, *newer; /* among those that are kept */
};

struct replay {
    struct replay_entry *entry, **bucket;
    struct replay_entry *idle, *oldest, *newest;
    uint32_t entries;
};

int replay_init(struct replay *replay, uint32_t entries);
void replay_fini(struct replay *replay);

void replay_key(struct replay_key *key, const struct sockaddr_storage *peer, uint32_t xid,
                const struct responder_call *call);
struct replay_entry *replay_find(struct replay *replay, const struct replay_key *key);

/* A busy entry of this key, in the place of the reply that was kept first if there is no other. NULL if all are busy.
 */
struct replay_entry *replay_add(struct replay *replay, const struct replay_key *key);

/* Keeps a copy of the reply, or drops the entry if that is longer than `octets_max` or there is no memory. */
void replay_keep(struct replay *replay, struct replay_entry *entry, const struct reply *reply, uint32_t octets_max);
void replay_drop(struct replay *replay, struct replay_entry *entry);

#endif
