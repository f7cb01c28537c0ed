/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dirty.h - what was written to one file and is not on the server's disk yet. It is sent as soon as may be, kept
 * until it is committed, and sent once more when the server has lost it (RFC 1813 4.8). No calls are made here. */
#ifndef TOOLS_MOUNT_DIRTY_H
#define TOOLS_MOUNT_DIRTY_H

#include "nfs/nfs3.h"
#include "nfs/rpcmsg.h"

enum chunk_state {
    CHUNK_QUEUED,
    CHUNK_SENT,       /* a WRITE is under way */
    CHUNK_UNSTABLE,   /* the server has it, in memory perhaps */
    CHUNK_COMMITTING, /* ... and a COMMIT that covers it is under way */
};

struct chunk {
    enum chunk_state state;
    bool again;   /* sent before the server lost what it had: whatever the answer, it goes once more */
    bool sync;    /* ask for FILE_SYNC */
    uint64_t seq; /* of the first write in it */
    uint64_t offset;
    uint32_t length, capacity, done; /* octets; how many of them the server took */
    struct rpc_cred cred;
    uint8_t *data;
    struct chunk *next;
};

/* Of two chunks that overlap, the older one is with the server before the newer one is sent. */
struct dirty {
    struct chunk *active; /* queued and sent, in the order of `seq` */
    struct chunk *held;   /* unstable and committing; of two that overlap, the older one first */
    struct chunk **active_end, **held_end;
    uint64_t seq;     /* of the last write */
    uint64_t end;     /* behind the last octet, while there is a chunk */
    uint64_t octets;  /* of memory, of all chunks */
    uint64_t dropped; /* the caller's: when a chunk was committed for the last time */
    unsigned actives, sent;
    bool committing;
    bool has_verifier;
    uint8_t verifier[NFS3_VERIFIER];
};

void dirty_init(struct dirty *d);
void dirty_fini(struct dirty *d);
bool dirty_is_empty(const struct dirty *d);

/* Adds a write, to the last chunk if that is not sent yet and does not grow above `length_max`. False: no memory. */
bool dirty_add(struct dirty *d, uint64_t offset, const void *data, uint32_t length, bool sync,
               const struct rpc_cred *cred, uint32_t length_max);

/* A chunk that may be sent now, and is: from its octet `done` on. NULL: none. */
struct chunk *dirty_next(struct dirty *d);
/* The server took `count` octets more of a chunk that was sent, which may be gone after this. */
void dirty_wrote(struct dirty *d, struct chunk *chunk, uint32_t count, bool stable, const uint8_t *verifier);
/* It will never take it: the chunk is gone. */
void dirty_failed(struct dirty *d, struct chunk *chunk);

/* A COMMIT of the whole file begins (false: there is nothing to commit, or one is under way), and ends. */
bool dirty_commit(struct dirty *d);
void dirty_committed(struct dirty *d, const uint8_t *verifier);
void dirty_commit_failed(struct dirty *d);

/* Whether there is something of the writes up to `seq` that the server has not got of this range; or that is not
 * committed. */
bool dirty_is_unsent(const struct dirty *d, uint64_t seq, uint64_t start, uint64_t end);
bool dirty_is_uncommitted(const struct dirty *d, uint64_t seq);

/* Puts what is known here over what was read at `offset`: `have` octets of `size` that were asked for. Returns how many
 * there are now: zeros too, where the file goes on behind. */
uint32_t dirty_overlay(const struct dirty *d, uint64_t offset, uint8_t *to, uint32_t have, uint32_t size);

#endif
