/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_in.h - the inside of a requester, for requester.c, calls.c, intake.c and silence.c. */
#ifndef RDDP_RPC_REQUESTER_IN_H
#define RDDP_RPC_REQUESTER_IN_H

#include "rpc/rpc_link.h"
#include "rpc/rpc_log.h"
#include "rpc/rpc_request.h"
#include "rpc/poll.h"
#include "rpc/rpc_wait.h"

enum { SILENCE_TELL_MS = 5000 };
enum { BACKOFF_MIN_MS = 10, BACKOFF_MAX_MS = 5000, SENDS_SPARE = 4 };

enum requester_state {
    STATE_DOWN, /* closed until retry_ms */
    STATE_CONNECTING,
    STATE_UP,
};

/* Calls in order, and their number. */
struct request_list {
    struct request *first, *last;
    uint32_t count;
};

/* The sent calls by XID; `buckets` is a power of two. */
struct request_table {
    struct request **bucket;
    uint32_t buckets;
};

/* What silence.c knows of a responder that does not answer. */
struct silence {
    uint64_t quiet_ms; /* when calls began to wait on this connection without a message; 0: none wait, or this was not
                          noticed yet */
    uint64_t nudge_ms; /* when to send the next nudge, if is_nudged() */
    unsigned nudge_gap_ms;
    bool answered;    /* on this connection */
    bool may_be_busy; /* a connection ended since nothing was acknowledged; no message has come soon enough since */
    uint64_t mute_ms; /* when calls began to wait without a message, across connections; 0: none wait */
    bool is_mute;     /* the silence was logged */
};

struct requester {
    struct requester_attr attr;
    struct sockaddr_storage addr;
    socklen_t addr_length;
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_event_channel *events;
    struct rddp_cq *cq;
    struct rpc_wait wait; /* kicked when a call is started outside of requester_wait() */
    bool in_step;
    struct rpc_link link;
    enum requester_state state;
    int error; /* why the last attempt to connect failed */
    uint64_t retry_ms;
    unsigned backoff_ms;
    struct request_list queued, sent; /* in the order of requester_start(); in the order of their Sends */
    struct request_table sent_table;
    uint64_t deadline_ms; /* no call has an earlier deadline */
    struct silence silence;
    uint32_t granted;
    uint32_t *ghost; /* XIDs of cancelled calls that may still be answered and keep their credits until then */
    uint32_t ghosts, next_xid;
    int ended;
    struct requester_stats stats;
    uint64_t secret; /* see struct request_limits */
    struct rpc_poll polling;
    struct rpc_log log;
};

/* In calls.c: add to the end of a list; remove from a list. */
void request_append(struct request_list *list, struct request *q);
void request_take_out(struct request_list *list, struct request *q);

/* Removes and finds a sent call in the table by XID. */
void request_unindex(struct requester *r, struct request *q);
struct request *request_find(const struct requester *r, uint32_t xid);

uint32_t requester_in_flight(const struct requester *r);

/* Registers the memory of queued calls that have a credit and hands their messages to the link. Returns false if the
 * connection must be closed. */
bool requester_send_queued(struct requester *r);

/* Ends a request and returns it to its owner. */
void requester_end(struct requester *r, struct request *q, enum request_status status);

/* Removes a call from its list and fences its memory. Returns false if that failed and the connection must be
 * closed. */
bool requester_take_back(struct requester *r, struct request *q);

/* In silence.c: a connection was established; a message was received on it; nothing was acknowledged after all retries.
 */
void silence_begin(struct requester *r);
void silence_broken(struct requester *r, uint64_t now);
void silence_unacknowledged(struct requester *r);
/* Call after each step of a connection. Returns false if the connection must be closed. */
bool silence_bearable(struct requester *r, uint64_t now);
/* When to call silence_bearable() next, in ms. */
uint64_t silence_until(const struct requester *r);
/* Logs a line when nothing was received for SILENCE_TELL_MS, and another when a message is received again.
 * silence_report_at() says when to call next, in ms. */
void silence_report(struct requester *r, uint64_t now);
uint64_t silence_report_at(const struct requester *r);

/* Handles a received message. Returns false if the connection must be closed; unanswered calls are then sent again. */
bool intake(struct requester *r, const struct link_done *done);

#endif
