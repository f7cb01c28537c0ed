/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dirty.h - data written to one file that are not on the server's disk yet. They are sent as soon as possible, kept
 * until they are committed, and sent again when the server has lost them (RFC 1813 4.8). This file makes no calls. */
#ifndef RDDP_NFS_MOUNT_DIRTY_H
#define RDDP_NFS_MOUNT_DIRTY_H

#include "nfs/nfs3.h"
#include "nfs/rpcmsg.h"

enum chunk_state {
    CHUNK_QUEUED,
    CHUNK_SENT,       /* a WRITE is under way */
    CHUNK_UNSTABLE,   /* the server has it, perhaps only in memory */
    CHUNK_COMMITTING, /* the same, and a COMMIT that covers it is under way */
};

struct chunk {
    enum chunk_state state;
    bool again;   /* the server has restarted since this was sent: send it again, whatever the answer is */
    bool sync;    /* ask for FILE_SYNC */
    uint64_t seq; /* number of the first write in it */
    uint64_t offset;
    uint32_t length, capacity, done; /* octets; `done`: how many of them the server has taken */
    struct rpc_cred cred;
    uint8_t *data;
    struct chunk *next;
};

/* When two chunks overlap, the older one reaches the server before the newer one is sent. */
struct dirty {
    struct chunk *active;      /* queued and sent chunks, ordered by `seq` */
    struct chunk *uncommitted; /* unstable and committing chunks; of two that overlap, the older one comes first */
    struct chunk **active_end, **uncommitted_end;
    uint64_t seq;     /* number of the last write */
    uint64_t end;     /* offset after the last octet, while there are chunks */
    uint64_t octets;  /* memory of all chunks, in octets */
    uint64_t dropped; /* set by the caller: m->clock when chunks were last dropped */
    unsigned actives, sent;
    unsigned losses; /* how often the server has lost data since a COMMIT last succeeded */
    bool committing;
    bool has_verifier;
    uint8_t verifier[NFS3_VERIFIER];
};

void dirty_init(struct dirty *d);
void dirty_fini(struct dirty *d);
bool dirty_is_empty(const struct dirty *d);

/* Adds a write, if possible to the last chunk, which then has at most `length_max` octets. Returns false if there is no
 * memory. */
bool dirty_add(struct dirty *d, uint64_t offset, const void *data, uint32_t length, bool sync,
               const struct rpc_cred *cred, uint32_t length_max);

/* Returns a chunk to send now, from its octet `done` on, and marks it as sent. NULL: none. */
struct chunk *dirty_next(struct dirty *d);
/* The server has taken `count` more octets of a sent chunk, which may be freed by this call. */
void dirty_wrote(struct dirty *d, struct chunk *chunk, uint32_t count, bool stable, const uint8_t *verifier);
/* The server refuses the chunk, which is freed. */
void dirty_failed(struct dirty *d, struct chunk *chunk);

/* Begin and end a COMMIT of the whole file. dirty_commit() returns false if there is nothing to commit or a COMMIT is
 * under way. */
bool dirty_commit(struct dirty *d);
void dirty_committed(struct dirty *d, const uint8_t *verifier);
void dirty_commit_failed(struct dirty *d);

/* Whether part of the writes up to `seq` in this range was not sent yet; whether part of them is not committed yet. */
bool dirty_is_unsent(const struct dirty *d, uint64_t seq, uint64_t start, uint64_t end);
bool dirty_is_uncommitted(const struct dirty *d, uint64_t seq);

/* Puts the data written here over what was read at `offset`: `have` octets of the `size` that were asked for. Returns
 * the new number of octets, including zeros before data that follow. */
uint32_t dirty_overlay(const struct dirty *d, uint64_t offset, uint8_t *to, uint32_t have, uint32_t size);

#endif
