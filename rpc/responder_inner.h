/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder_inner.h - the inside of a responder: its connections and the state of a call, for the files of the
 * responder. Only the responder's thread uses it; there is no lock. */
#ifndef RDDP_RPC_RESPONDER_INNER_H
#define RDDP_RPC_RESPONDER_INNER_H

#include "rpc/rpc_link.h"
#include "rpc/rpc_log.h"
#include "rpc/budget.h"
#include "rpc/replay.h"
#include "rpc/responder.h"
#include "rpc/rpcrdma.h"
#include "rpc/poll.h"
#include "rpc/rpc_wait.h"

enum {
    FAILURES = 64,
    CONN_RDMA = 256,
    CONN_SENDS_SPARE = 4,
    COMPLETIONS_MAX = 1 << 20, /* the size limit of a CQ; all connections share one */
    SPARES_MAX = 256,          /* at most this many ended calls are kept for reuse */
};

/* A call whose chunk was not accessible, which ended its connection. */
struct failure {
    struct replay_key key; /* only its address and XID are used */
    uint64_t until_ms;
};

struct failures {
    struct failure entry[FAILURES];
    uint32_t count;    /* total so far; the next entry is this modulo FAILURES */
    uint64_t until_ms; /* when the newest entry expires; later the table need not be searched */
};

struct responder {
    struct responder_attr attr;
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_cq *cq;
    struct rddp_listener *listener;
    struct rpc_wait wait;        /* kicked when something is posted outside of a round, so that a round follows */
    int timer;                   /* a timerfd: wakes the responder to look for stalled peers */
    uint64_t now_ms, checked_ms; /* start of this round; time of the last look for stalled peers */
    uint64_t timer_ms;           /* when `timer` expires; 0: it is not set */
    bool in_round;
    struct rpc_conn **slot; /* attr.connections_max of them; a connection's tag is its index here */
    uint32_t *slot_idle;    /* a stack of free slots */
    uint32_t slots_idle;
    struct rpc_conn *dirty; /* connections whose link waits for a flush */
    struct rpc_conn *dying; /* dead connections, taken down at the end of a round, when no code uses them */
    struct rpc_conn *hungry, **hungry_last; /* connections with calls that wait for memory, first come first */
    bool freed;                             /* memory was returned since the hungry connections were last tried */
    struct budget budget;
    struct rpc_serve *spare;
    unsigned spares;
    struct replay replay;
    struct failures failures;
    struct responder_stats stats;
    struct rpc_poll polling;
    struct rpc_log log;
};

struct rpc_conn {
    struct responder *responder;
    struct rpc_conn *next_dirty, *next_dying, *next_hungry;
    struct rddp_pd *pd; /* its own, so that its handles are not valid on other connections (RFC 8166 8.1.1) */
    struct rpc_link link;
    struct sockaddr_storage peer;
    uint32_t tag;         /* its index in the responder's slots */
    uint64_t received_ms; /* when the last message arrived */
    uint64_t moved_ms;    /* when a posted request last completed, or was posted to an idle send queue */
    bool dead, is_dirty;
    struct rpc_serve *calls;                   /* all calls of the connection */
    struct rpc_serve *waiting, **waiting_last; /* calls that wait for room in the send queue, first come first */
    struct rpc_serve *starved, **starved_last; /* calls that wait for memory, first come first */
    uint64_t held;                             /* octets of the budget that its calls have reserved */
    struct backcall *back_queued, *back_sent;
    uint32_t back_granted;
};

enum phase {
    PHASE_STARVED,  /* waits for memory; nothing was pulled yet */
    PHASE_PULLING,  /* RDMA Reads of its Read chunks are under way */
    PHASE_HANDLER,  /* the handler has it, or it waits for the handler's answer to the same call received earlier */
    PHASE_ANSWERED, /* its RDMA Writes and its Send are queued or under way */
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

/* A call with the state that the handler does not see. Structures are reused without clearing `header` and what follows
 * it. `buffer` has receive_size octets for the inline part of the call, then send_size octets for the answer. */
struct rpc_serve {
    struct responder_call call;
    struct rpc_serve *next, *before; /* list of the connection's calls */
    struct rpc_serve *next_waiting;  /* for room in the send queue or for memory, or the next spare structure */
    enum phase phase;
    uint32_t receive;        /* the index of the buffer that holds the message; reposted with the answer */
    uint64_t reserved, used; /* octets of the budget */
    unsigned blocks, mrs, transfers, pending;
    enum rddp_wr_opcode opcode;
    bool has_answer;
    size_t answer_length;
    uint32_t invalidate;
    struct replay_entry *replay;
    void (*release)(void *user);
    void *release_user;
    struct rpcrdma header;
    struct block block[REPLY_ITEMS + 2]; /* memory of pulled chunks and of copied results */
    struct rddp_mr *mr[REPLY_ITEMS + 2];
    struct transfer transfer[RPCRDMA_SEGMENTS];
    uint8_t buffer[];
};

/* --- schedule.c: what the next round has to do ----------------------------------------------------------------- */

/* Marks the connection as dead; the next round takes it down. responder_reap() takes down all dead connections now. */
void conn_end(struct rpc_conn *conn);

/* Notes that requests wait in the connection's link: the end of this round, or the next round, flushes them. */
void conn_touch(struct rpc_conn *conn);

/* Makes the responder's fd readable, unless a round is running. */
void responder_kick(struct responder *r);

/* --- completion.c: completions, and the end of connections ------------------------------------------------------- */

/* Takes one batch of completions and does what follows from them. Returns their number. */
int responder_take_completions(struct responder *r);

/* Flushes the dirty links. Returns false if there were none. */
bool responder_flush(struct responder *r);

/* Takes down the dead connections. Their remaining completions are taken first: they refer to their calls. */
void responder_reap(struct responder *r);

/* Closes a connection, ends its calls and frees it. */
void conn_take_down(struct rpc_conn *conn);

/* --- accept.c: connection requests ----------------------------------------------------------------------------- */

/* Handles the events of the event channel. Returns false if there were none. */
bool responder_take_events(struct responder *r);

/* --- stall.c: peers that make no progress ---------------------------------------------------------------------- */

/* Ends connections whose requests have not moved for the stall time. */
void stall_check(struct responder *r);

/* Sets the timer for the next stall check while calls are under way. */
void stall_arm(struct responder *r);

/* --- serve_call.c: the states of a call ------------------------------------------------------------------------ */

/* Processes a received message, up to the handler or to the error answer that RFC 8166 requires. */
void serve_receive(struct rpc_conn *conn, const struct link_done *done);

/* One RDMA Read or Write of `serve` has completed. */
void serve_transferred(struct rpc_serve *serve);

/* Starts calls that waited for memory, as far as there is some. */
void serve_starved(struct responder *r);

/* --- serve_post.c: the calls of a connection, and its send queue ----------------------------------------------- */

/* Gets a structure, of which only `header` is to be written before serve_begin(), and gives it back. NULL: there is no
 * memory. serve_free_spares() frees the structures that are kept for reuse. */
struct rpc_serve *serve_get(struct responder *r);
void serve_put(struct responder *r, struct rpc_serve *serve);
void serve_free_spares(struct responder *r);

/* Adds a call to its connection. serve->header is decoded already. The inline part is copied, since the handler may
 * keep the call for longer than the connection exists. */
void serve_begin(struct rpc_serve *serve, struct rpc_conn *conn, const struct link_done *done);

/* Frees a call. */
void serve_end(struct rpc_serve *serve);

/* Posts the transfers and the answer of a call, or queues them until the send queue has room. */
void serve_launch(struct rpc_serve *serve);

/* Posts waiting calls, as far as the send queue has room. */
void serve_waiting(struct rpc_conn *conn);

/* Posts a receive again. */
void conn_repost(struct rpc_conn *conn, uint32_t receive);

/* The link is closed: ends the connection's calls. Those that the handler has lose their connection and stay with
 * it. */
void serve_abandon(struct rpc_conn *conn);

/* --- serve_memory.c: the memory of a call ---------------------------------------------------------------------- */

/* Allocates `octets` for the call; they live until serve_drop_memory(). NULL if malloc fails. */
uint8_t *serve_block(struct rpc_serve *serve, size_t octets);

/* Frees all memory and regions of the call. */
void serve_drop_memory(struct rpc_serve *serve);

/* --- read_chunks.c: Read chunks, and calls that wait for memory --------------------------------------------------- */

/* Adds up the Read chunks before anything is pulled. Returns false if the answer must be ERR_CHUNK. */
bool pull_measure(struct rpc_serve *serve);

/* Reserves the memory that the call may need. Returns false if it must wait for it; pull_next() returns it later. */
bool pull_reserve(struct rpc_serve *serve);

/* Pulls the chunks of a call whose memory is reserved. */
void pull_go(struct rpc_serve *serve);

/* Reserves memory for the next call that waits, or returns NULL. `*at` starts as &r->hungry. Each connection's first
 * call is tried once, and a connection of which a call was returned goes to the end of the list; one whose call finds
 * too little memory does not hold up the others. */
struct rpc_serve *pull_next(struct responder *r, struct rpc_conn ***at);

/* Whether a connection that holds no memory waits for some. */
bool pull_is_pressed(const struct responder *r);

/* Removes a connection that goes away from the list of those that wait for memory. */
void pull_abandon(struct rpc_conn *conn);

/* --- failure.c: chunks that were not accessible ---------------------------------------------------------------- */

/* Notes that a chunk of this call was not accessible, so that the same call gets ERR_CHUNK after a reconnect (RFC 8166
 * 4.5.3). */
void failure_note(struct rpc_serve *serve);
bool failure_is_known(const struct rpc_serve *serve);

/* --- backward.c: calls from the responder to its peer ---------------------------------------------------------- */

/* Handles a Reply or an error for one of our calls. Returns false if the message is neither. */
bool backward_receive(struct rpc_conn *conn, const struct link_done *done);
void backward_send(struct rpc_conn *conn);
void backward_abandon(struct rpc_conn *conn);

#endif
