/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_in.h - a requester from within, for requester.c, calls.c and intake.c. */
#ifndef RDDP_RPC_REQUESTER_IN_H
#define RDDP_RPC_REQUESTER_IN_H

#include "rpc/link.h"
#include "rpc/log.h"
#include "rpc/request.h"
#include "rpc/spin.h"

enum { SILENCE_TELL_MS = 5000 };
enum { BACKOFF_MIN_MS = 10, BACKOFF_MAX_MS = 5000, SENDS_SPARE = 4 };

enum requester_state {
    STATE_DOWN, /* until retry_ms */
    STATE_CONNECTING,
    STATE_UP,
};

/* Calls in an order, with their number. */
struct request_list {
    struct request *first, *last;
    uint32_t count;
};

struct requester {
    struct requester_attr attr;
    struct sockaddr_storage addr;
    socklen_t addr_length;
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_event_channel *events;
    struct rddp_cq *cq;
    int fd;   /* epoll: the context, its events, and `kick` */
    int kick; /* an eventfd: something was begun outside of requester_wait() */
    bool kicked, in_step;
    struct rpc_link link;
    enum requester_state state;
    int error; /* why the last attempt to connect failed */
    uint64_t retry_ms;
    unsigned backoff_ms;
    struct request_list queued, sent; /* in the order of their start, and of their Sends */
    struct request **bucket;          /* of what was sent, by XID: `buckets` of them, a power of two */
    uint32_t buckets;
    uint64_t deadline_ms; /* no call has an earlier one */
    uint64_t quiet_ms;    /* since when calls wait and nothing comes; 0: not so, or not noticed yet */
    uint64_t nudge_ms;    /* when to nudge, if this connection has not `answered` yet */
    unsigned nudge_gap_ms;
    bool answered;
    uint32_t granted;
    uint32_t *ghost; /* XIDs of cancelled calls that may still be answered: they hold their credit */
    uint32_t ghosts, next_xid;
    int ended;
    struct requester_stats stats;
    struct rpc_spin spin;
    uint64_t mute_ms; /* since when calls wait and nothing was heard, whatever became of the connection; 0: not so */
    bool is_mute;     /* that was told */
    struct rpc_log log;
};

/* calls.c. To the end of a list, and out of it. */
void request_append(struct request_list *list, struct request *q);
void request_take_out(struct request_list *list, struct request *q);

/* What was sent is found by its XID. */
void request_index(struct requester *r, struct request *q);
void request_unindex(struct requester *r, struct request *q);
struct request *request_find(const struct requester *r, uint32_t xid);

uint32_t requester_in_flight(const struct requester *r);

/* Registers what waits and has a credit, and puts it into the link. False: the connection must be closed. */
bool requester_send_queued(struct requester *r);

/* The request is its owner's again. */
void requester_end(struct requester *r, struct request *q, enum request_status status);

/* Takes a call back. False: its memory is still within reach, and the connection must be closed. */
bool requester_take_back(struct requester *r, struct request *q);

/* silence.c. A connection begins, and something was received on it. */
void silence_begin(struct requester *r);
void silence_broken(struct requester *r);
/* To be asked after each turn of a connection. False: it must be closed. */
bool silence_bearable(struct requester *r, uint64_t now);
/* When to ask next. */
uint64_t silence_until(const struct requester *r);
/* The same for people: there is a line when nothing is heard for SILENCE_TELL_MS, and when something is again. */
void silence_tell(struct requester *r, uint64_t now);
uint64_t silence_tell_at(const struct requester *r);

/* A message came in. False: the connection must be closed, and what was not answered is sent once more. */
bool intake(struct requester *r, const struct link_done *done);

#endif
