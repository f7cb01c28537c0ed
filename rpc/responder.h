/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.h - the answering end of RPC-over-RDMA version 1: a listener, its connections and their calls. One thread
 * at a time may use a responder, and all work is done inside these calls. */
#ifndef RDDP_RPC_RESPONDER_H
#define RDDP_RPC_RESPONDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rddp/rddp.h>

#include "rpc/payload.h"

enum { CALL_ITEMS = 16, REPLY_ITEMS = 4 };

struct rpc_conn;

/* A call that has arrived whole. It belongs to the handler until call_reply(), call_refuse() or call_drop(), which may
 * be called later and from any place in the responder's thread. */
struct responder_call {
    struct responder *responder;
    struct rpc_conn *conn;  /* NULL once the connection is gone; the call must still be ended */
    const uint8_t *payload; /* the RPC message without the Read chunks */
    size_t length;
    struct stream_item item[CALL_ITEMS]; /* the Read chunks, in the order of their positions */
    unsigned items;
    struct sockaddr_storage peer;
    void *user;                  /* for the handler */
    struct responder_call *next; /* for a list of the handler */
};

/* A whole reply, split into the RPC message and the items that may go into Write chunks: all DDP-eligible items and no
 * others. An item for which there is no chunk goes inline at its position. */
struct reply {
    const uint8_t *payload;
    size_t length;
    struct stream_item item[REPLY_ITEMS];
    unsigned items;
    bool may_change; /* others may write the items' memory, or unmap it, while it is sent */
    /* Called once when the items' memory is no longer needed. Without it the items are copied by call_reply(). */
    void (*release)(void *user);
    void *user;
};

struct responder_attr {
    uint32_t credits;                 /* granted to each connection; default 64, at least 1 */
    uint32_t send_size, receive_size; /* size of our buffers in octets: default 4096, at least 1024 */
    bool private_data;                /* send RFC 8797 private data, if the wire carries it; default true */
    uint32_t read_max;                /* octets in the Read chunks of one call: default 1 MiB + 64 KiB */
    uint32_t connections_max;         /* default 256; to accept one more, one is closed: see eviction.h */
    uint32_t address_max;             /* connections from one address; default: half of connections_max */
    uint32_t rest_ms;          /* one that is idle for less time is closed only to share the places: default 1000 */
    uint32_t backward_credits; /* calls that we may send to a peer before it has answered; default 2 */
    uint32_t replay_entries;   /* replies kept for retransmitted calls: default 1024 */
    uint32_t replay_octets;    /* longer replies are not kept: default 8192 */
    /* Octets for pulled chunks and copied replies of all connections: default 512 MiB. A call that finds too little
     * waits. Beyond its first call one connection has at most an eighth (budget.h). */
    uint64_t memory_max;
    /* Time after which a peer that answers no RDMA Read, or takes no reply, is disconnected; an eighth of it while a
     * connection that holds no memory waits for some. Default 30000. */
    uint32_t stall_ms;
    uint32_t spin_us; /* how long responder_run() polls for a call before it sleeps: default 20; 0: not at all */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level; /* default: as set by rddp_context_attr_init() */
    void (*log)(void *user, enum rddp_log_level level, const char *line); /* NULL: standard error */
    void (*handle)(void *user, struct responder_call *call);
    bool (*admit)(void *user, const struct sockaddr_storage *peer); /* false: reject the connection. NULL: accept all */
    void *user;
};

struct responder_stats {
    uint64_t accepted, calls, replayed, refused, discarded, lost;
    uint64_t rejected, displaced, stalled; /* connections refused, closed to make room, closed because they stalled */
    uint64_t starved, memory;              /* calls that had to wait for memory, total; octets reserved by calls now */
    uint32_t connections, calls_held;
};

void responder_attr_init(struct responder_attr *attr);

/* Opens a listener. Returns NULL and sets errno as rddp_listen() does. `attr` is copied. */
struct responder *responder_open(const struct sockaddr *addr, socklen_t length, const struct responder_attr *attr);

/* All calls must have been ended by the handler. */
void responder_close(struct responder *r);

/* Works until something was done or `timeout_ms` have passed (-1: no limit). Returns 0 or a negative errno. */
int responder_run(struct responder *r, int timeout_ms);

/* A descriptor that is readable when responder_run() has something to do. */
int responder_fd(const struct responder *r);
int responder_addr(const struct responder *r, struct sockaddr_storage *addr);
void responder_stats(const struct responder *r, struct responder_stats *stats);

/* For the handler: the call may be executed twice without harm. Its reply is then not kept, which leaves room for
 * replies that must not be lost. */
void call_is_repeatable(struct responder_call *call);

/* The three ways to end a call: with a reply; with ERR_CHUNK, for a header that the call must not have; without an
 * answer. Answers given outside of responder_run() wait for its next round, so that many leave together; responder_fd()
 * is readable until then. */
void call_reply(struct responder_call *call, const struct reply *reply);
void call_refuse(struct responder_call *call);
void call_drop(struct responder_call *call);

/* --- calls from the responder to its peer (RFC 8167): Short Messages without chunks ---------------------------- */

enum backcall_state { BACKCALL_QUEUED, BACKCALL_SENT, BACKCALL_ANSWERED, BACKCALL_FAILED };

struct backcall {
    const uint8_t *call; /* starts with its XID; XIDs of the two directions are independent */
    size_t length;
    uint8_t *reply;
    size_t capacity, reply_length;
    enum backcall_state state;
    struct backcall *next;
};

/* Calls the peer of `conn`, which must have said by other means that it accepts calls (RFC 8167 6). `b` belongs to the
 * responder until its state is BACKCALL_ANSWERED or BACKCALL_FAILED. Returns 0; -EMSGSIZE if the call is longer than
 * the peer's receives or shorter than an XID; -ENOTCONN if the connection is dead. */
int responder_call_back(struct rpc_conn *conn, struct backcall *b);

#endif
