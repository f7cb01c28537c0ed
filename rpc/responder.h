/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.h - the answering end of RPC-over-RDMA version 1: a listener, its connections and their calls. One thread
 * at a time uses a responder; nothing happens but inside its calls. */
#ifndef RDDP_RPC_RESPONDER_H
#define RDDP_RPC_RESPONDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rddp/rddp.h>

#include "rpc/stream.h"

enum { CALL_ITEMS = 16, REPLY_ITEMS = 4 };

struct rpc_conn;

/* A call that arrived whole. It is the handler's until call_reply(), call_refuse() or call_drop(), which may come later
 * and from anywhere in the responder's thread. */
struct responder_call {
    struct responder *responder;
    struct rpc_conn *conn;  /* NULL once its connection is gone; answer it all the same */
    const uint8_t *payload; /* the RPC message without what came in Read chunks */
    size_t length;
    struct stream_item item[CALL_ITEMS]; /* ... and that, in the order of its positions */
    unsigned items;
    struct sockaddr_storage peer;
    void *user;                  /* the handler's */
    struct responder_call *next; /* the handler's, for a list of its own */
};

/* A whole reply, cut into the RPC message and the items that may go into Write chunks: the DDP-eligible ones, and only
 * they. Whatever has no chunk goes inline, at its position. */
struct reply {
    const uint8_t *payload;
    size_t length;
    struct stream_item item[REPLY_ITEMS];
    unsigned items;
    bool may_change; /* others may write the items' memory, or take it away, while it is sent */
    /* Called once when the items' memory is not needed any more. Without it they are copied now. */
    void (*release)(void *user);
    void *user;
};

struct responder_attr {
    uint32_t credits;                 /* granted to each connection, default 64, at least 1 */
    uint32_t send_size, receive_size; /* of our buffers: default 4096, at least 1024 */
    bool private_data;                /* say so (RFC 8797), default yes */
    uint32_t read_max;                /* octets of a call's Read chunks: default 1 MiB + 64 KiB */
    uint32_t connections_max;         /* default 256; for the next one the longest idle one gives way, if any is */
    uint32_t address_max;             /* of one address: default half of them */
    uint32_t rest_ms;                 /* who was idle for less time gives way to nobody: default 1000 */
    uint32_t backward_credits;        /* calls that we may have under way to a peer, default 2 */
    uint32_t replay_entries;          /* calls whose replies are kept for a retransmission: default 1024 */
    uint32_t replay_octets;           /* replies longer than this are not kept, default 8192 */
    uint64_t memory_max; /* octets for pulled chunks and copied replies of all connections: default 512 MiB. A
                          * call that finds too little waits; one connection has an eighth at most (budget.h). */
    uint32_t stall_ms;   /* a peer that answers no RDMA Read, or takes no reply, for so long is cut off; for an eighth
                          * of it, if somebody who has no memory waits for some. Default 30000. */
    uint32_t spin_us;    /* looks so long for the next call before it sleeps: default 20; 0 at once */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level;                                        /* default: as of rddp_context_attr_init() */
    void (*log)(void *user, enum rddp_log_level level, const char *line); /* NULL: standard error */
    void (*handle)(void *user, struct responder_call *call);
    bool (*admit)(void *user, const struct sockaddr_storage *peer); /* false: reject it. NULL: everybody may come */
    void *user;
};

struct responder_stats {
    uint64_t accepted, calls, replayed, refused, discarded, lost;
    uint64_t rejected, displaced, stalled; /* connections: not taken; that gave way; that were cut off */
    uint64_t starved, memory;              /* calls that had to wait for memory, ever; octets that calls hold now */
    uint32_t connections, calls_held;
};

void responder_attr_init(struct responder_attr *attr);

/* Listens. NULL and errno, as of rddp_listen(). */
struct responder *responder_open(const struct sockaddr *addr, socklen_t length, const struct responder_attr *attr);

/* No call may be left with the handler. */
void responder_close(struct responder *r);

/* Does what there is to do, waiting at most `timeout_ms` for some of it (-1: for ever). 0 or a negative errno. */
int responder_run(struct responder *r, int timeout_ms);

/* Readable when responder_run() has something to do. */
int responder_fd(const struct responder *r);
int responder_addr(const struct responder *r, struct sockaddr_storage *addr);
void responder_stats(const struct responder *r, struct responder_stats *stats);

/* While it is the handler's: it may be done once more without harm. No reply of it is kept for a retransmission, so
 * that what is kept are replies that matter. */
void call_is_repeatable(struct responder_call *call);

/* The three ends of a call: a reply; ERR_CHUNK, for what the header must not have; silence. Outside of responder_run()
 * the answer waits for its next turn, for which responder_fd() is readable: many answers then leave together. */
void call_reply(struct responder_call *call, const struct reply *reply);
void call_refuse(struct responder_call *call);
void call_drop(struct responder_call *call);

/* --- calls in the other direction (RFC 8167): no chunks, short in both directions --------------------------------- */

enum backcall_state { BACKCALL_QUEUED, BACKCALL_SENT, BACKCALL_ANSWERED, BACKCALL_FAILED };

struct backcall {
    const uint8_t *call; /* starts with its XID; the two directions' XIDs do not mix */
    size_t length;
    uint8_t *reply;
    size_t capacity, reply_length;
    enum backcall_state state;
    struct backcall *next;
};

/* Calls the peer of `conn`, which must have said by other means that it is prepared (RFC 8167 6). `b` is the
 * responder's until it is answered or has failed. -EMSGSIZE: longer than the peer's receives. */
int responder_call_back(struct rpc_conn *conn, struct backcall *b);

#endif
