/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - a responder from within: its connections, and what a call goes through. For responder.c, round.c, stall.c,
 * serve.c, pull.c, answer.c, backward.c. */
#ifndef RDDP_RPC_CONN_H
#define RDDP_RPC_CONN_H

#include "rpc/link.h"
#include "rpc/log.h"
#include "rpc/budget.h"
#include "rpc/replay.h"
#include "rpc/responder.h"
#include "rpc/rpcrdma.h"
#include "rpc/spin.h"

enum {
    FAILURES = 64,
    CONN_RDMA = 256,
    CONN_SENDS_SPARE = 4,
    COMPLETIONS_MAX = 1 << 20, /* a CQ has no more, and all connections have one */
    SPARES_MAX = 256,          /* calls that are kept for the next ones */
};

/* A call whose chunk could not be reached, which ended its connection. */
struct failure {
    struct replay_key key; /* address and XID alone */
    uint64_t until_ms;
};

struct responder {
    struct responder_attr attr;
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_cq *cq;
    struct rddp_listener *listener;
    int fd;    /* epoll: the context, its events, and `kick` */
    int kick;  /* an eventfd: something was posted outside of a round, and a round must look after it */
    int timer; /* a timerfd: somebody may be stuck */
    uint64_t now_ms, checked_ms; /* of this round; of the last look for peers that are stuck */
    uint64_t timer_ms;           /* when `timer` runs out; 0: it does not run */
    bool kicked, in_round;
    struct rpc_conn **slot; /* attr.connections_max of them; a connection's tag is its place */
    uint32_t *slot_idle;    /* a stack of free ones */
    uint32_t slots_idle;
    struct rpc_conn *dirty;                 /* their links wait for a flush */
    struct rpc_conn *dying;                 /* dead, to be taken down when nobody is inside them */
    struct rpc_conn *hungry, **hungry_last; /* their calls wait for memory, in turn */
    bool freed;                             /* some memory, since they were looked at */
    struct budget budget;
    struct rpc_serve *spare;
    unsigned spares;
    struct replay replay;
    struct failure failure[FAILURES];
    uint32_t failures;         /* ever; the ring's place is this modulo its size */
    uint64_t failure_until_ms; /* of the last: later there is nothing to look for */
    struct responder_stats stats;
    struct rpc_spin spin;
    struct rpc_log log;
};

struct rpc_conn {
    struct responder *responder;
    struct rpc_conn *next_dirty, *next_dying, *next_hungry;
    struct rddp_pd *pd; /* its own: a handle of one connection is worth nothing on another (RFC 8166 8.1.1) */
    struct rpc_link link;
    struct sockaddr_storage peer;
    uint32_t tag;      /* its place among the responder's */
    uint64_t heard_ms; /* when a message came in */
    uint64_t moved_ms; /* when something posted was done, or the first of it was posted */
    bool dead, is_dirty;
    struct rpc_serve *calls;                   /* all of them */
    struct rpc_serve *waiting, **waiting_last; /* those that wait for room in the send queue, in turn */
    struct rpc_serve *starved, **starved_last; /* those that wait for memory, in turn */
    uint64_t held;                             /* of the memory */
    struct backcall *back_queued, *back_sent;
    uint32_t back_granted;
};

enum phase {
    PHASE_STARVED,  /* waits for memory; nothing was pulled */
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

struct block {
    uint8_t *at;
    size_t octets;
};

/* A call with all that the handler need not see. It is used again for others, so what begins with `header` is not
 * cleared. `buffer` has receive_size octets for what was inline, and send_size for the answer. */
struct rpc_serve {
    struct responder_call call;
    struct rpc_serve *next, *before; /* of the connection's calls */
    struct rpc_serve *next_waiting;  /* for room in the send queue or for memory; or the next spare one */
    enum phase phase;
    uint32_t receive;        /* the buffer that holds the message; given back with the answer */
    uint64_t reserved, used; /* of the memory */
    unsigned blocks, mrs, transfers, pending;
    enum rddp_wr_opcode opcode;
    bool has_answer;
    size_t answer_length;
    uint32_t invalidate;
    struct replay_entry *replay;
    void (*release)(void *user);
    void *release_user;
    struct rpcrdma header;
    struct block block[REPLY_ITEMS + 2]; /* memory of what was pulled and of what is pushed */
    struct rddp_mr *mr[REPLY_ITEMS + 2];
    struct transfer transfer[RPCRDMA_SEGMENTS];
    uint8_t buffer[];
};

/* --- round.c: whose turn it is ----------------------------------------------------------------------------------- */

/* It is dead, and taken down in the next round; or now. */
void conn_end(struct rpc_conn *conn);
void responder_reap(struct responder *r);

/* Something waits in its link, for the end of this round or for the next one. */
void conn_touch(struct rpc_conn *conn);

/* There is something to do for the next round, if this is none. */
void responder_kick(struct responder *r);

/* Everything that there is to do now. False: there was nothing. */
bool responder_round(struct responder *r);

/* --- stall.c: peers that do not go on ---------------------------------------------------------------------------- */

/* Ends connections that owe us something and have not moved for too long. */
void stall_check(struct responder *r);

/* The responder's descriptor becomes readable in good time for the next look, as long as calls are under way. */
void stall_arm(struct responder *r);

/* From responder.c: what the event channel has, false if it has nothing; and a connection is taken down. */
bool responder_take_events(struct responder *r);
void conn_take_down(struct rpc_conn *conn);

/* --- serve.c: the way of a call ---------------------------------------------------------------------------------- */

/* A message came in: everything up to the handler, or to the answer that the document orders. */
void serve_receive(struct rpc_conn *conn, const struct link_done *done);

/* A transfer of `serve` is done. */
void serve_transferred(struct rpc_serve *serve);

/* There is room in the send queue again. */
void serve_waiting(struct rpc_conn *conn);

/* The link is closed: calls end, or lose their connection if the handler has them. */
void serve_abandon(struct rpc_conn *conn);

/* Puts the answer or the transfers of a call into the send queue; and ends a call. */
void serve_launch(struct rpc_serve *serve);
void serve_end(struct rpc_serve *serve);

/* It is whole. */
void serve_pulled(struct rpc_serve *serve);

/* What kept calls for the next ones. */
void serve_free_spares(struct responder *r);

/* --- pull.c: Read chunks, and the memory of a call --------------------------------------------------------------- */

/* What there is to pull, before anything is. False: ERR_CHUNK. */
bool pull_measure(struct rpc_serve *serve);

/* Takes the memory that the call may need and pulls, now or when there is some. */
void pull_begin(struct rpc_serve *serve);

/* Starts calls that waited for memory, as far as it goes. */
void pull_starved(struct responder *r);

/* Whether somebody waits for memory who has none. */
bool pull_is_pressed(const struct responder *r);

/* Memory of the call for `octets`. NULL if the machine has none. */
uint8_t *pull_block(struct rpc_serve *serve, size_t octets);

/* All of it back. */
void pull_drop(struct rpc_serve *serve);

/* A connection goes: its place among those that wait. */
void pull_abandon(struct rpc_conn *conn);

/* --- failure.c: chunks that could not be reached ----------------------------------------------------------------- */

/* This call's chunk could not be reached: after a reconnect it gets ERR_CHUNK (RFC 8166 4.5.3). */
void failure_note(struct rpc_serve *serve);
bool failure_is_known(const struct rpc_serve *serve);

/* --- backward.c ----------------------------------------------------------------------------------------------------
 */

/* A Reply, or an error, to a call of ours. True if it was one. */
bool backward_receive(struct rpc_conn *conn, const struct link_done *done);
void backward_send(struct rpc_conn *conn);
void backward_abandon(struct rpc_conn *conn);

#endif
