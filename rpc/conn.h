/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - a responder from within: its connections, and what a call goes through. For responder.c, serve.c,
 * backward.c.
 */
#ifndef RDDP_RPC_CONN_H
#define RDDP_RPC_CONN_H

#include "rpc/link.h"
#include "rpc/replay.h"
#include "rpc/responder.h"
#include "rpc/rpcrdma.h"

enum { FAILURES = 64, CONN_RDMA = 256, CONN_SENDS_SPARE = 4 };

/* A call whose chunk could not be reached, which ended its connection. */
struct failure {
    struct replay_key key; /* address and XID alone */
    uint64_t until_ms;
};

struct responder {
    struct responder_attr attr;
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_comp_channel *channel;
    struct rddp_listener *listener;
    int fd; /* epoll: both channels */
    struct conn *conns;
    struct replay replay;
    struct failure failure[FAILURES];
    uint32_t failures; /* ever; the ring's place is this modulo its size */
    struct responder_stats stats;
};

struct conn {
    struct responder *responder;
    struct conn *next;
    struct rddp_pd *pd; /* its own: a handle of one connection is worth nothing on another (RFC 8166 8.1.1) */
    struct link link;
    struct sockaddr_storage peer;
    bool dead;             /* to be taken down when nobody is inside it */
    struct serve *calls;   /* all of them */
    struct serve *waiting; /* those that wait for room in the send queue, in turn */
    struct backcall *back_queued, *back_sent;
    uint32_t back_granted;
};

enum phase {
    PHASE_PULLING,  /* its Read chunks are coming */
    PHASE_HANDLER,  /* with the handler, or waiting for the handler's work on the same call */
    PHASE_ANSWERED, /* its Writes and its Send are leaving */
};

/* An RDMA Read or Write of a call. */
struct transfer {
    struct rddp_sge local;
    uint32_t handle;
    uint64_t offset;
};

/* A call with all that the handler need not see. */
struct serve {
    struct call call;
    struct serve *next, *next_waiting;
    enum phase phase;
    struct rpcrdma header;
    uint32_t receive;                /* the buffer that holds the message; given back with the answer */
    uint8_t *block[REPLY_ITEMS + 2]; /* memory of what was pulled and of what is pushed */
    unsigned blocks;
    struct rddp_mr *mr[REPLY_ITEMS + 2];
    unsigned mrs;
    struct transfer transfer[RPCRDMA_SEGMENTS];
    unsigned transfers, pending;
    enum rddp_wr_opcode opcode;
    uint8_t *answer;
    size_t answer_length;
    uint32_t invalidate;
    struct replay_entry *replay;
    void (*release)(void *user);
    void *release_user;
    uint8_t payload[]; /* what was inline */
};

/* A message came in: everything up to the handler, or to the answer that the document orders. */
void serve_receive(struct conn *conn, const struct link_done *done);

/* A transfer of `serve` is done. */
void serve_transferred(struct serve *serve);

/* There is room in the send queue again. */
void serve_waiting(struct conn *conn);

/* The link is closed: calls end, or lose their connection if the handler has them. */
void serve_abandon(struct conn *conn);

/* This call's chunk could not be reached: after a reconnect it gets ERR_CHUNK (RFC 8166 4.5.3). */
void serve_failed(struct serve *serve);

/* A Reply, or an error, to a call of ours. True if it was one. */
bool backward_receive(struct conn *conn, const struct link_done *done);
void backward_send(struct conn *conn);
void backward_abandon(struct conn *conn);

#endif
