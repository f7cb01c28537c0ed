/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester_in.h - a requester from within, for requester.c and intake.c. */
#ifndef RDDP_RPC_REQUESTER_IN_H
#define RDDP_RPC_REQUESTER_IN_H

#include "rpc/link.h"
#include "rpc/request.h"

enum { BACKOFF_MIN_MS = 10, BACKOFF_MAX_MS = 5000, SENDS_SPARE = 4 };

enum requester_state {
    STATE_DOWN, /* until retry_ms */
    STATE_CONNECTING,
    STATE_UP,
};

struct requester {
    struct requester_attr attr;
    struct sockaddr_storage addr;
    socklen_t addr_length;
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_event_channel *events;
    struct rddp_comp_channel *channel;
    int fd; /* epoll: both channels */
    struct link link;
    enum requester_state state;
    int error; /* why the last attempt to connect failed */
    uint64_t retry_ms;
    unsigned backoff_ms;
    struct request *queued, *sent; /* in the order of their start, and of their Sends */
    uint32_t granted;
    uint32_t *ghost; /* XIDs of cancelled calls that may still be answered: they hold their credit */
    uint32_t ghosts, next_xid;
    uint8_t *message;
    int ended;
    struct requester_stats stats;
};

/* Lists of requests: to the end, and out of the middle; false if it is not in there. */
void request_append(struct request **list, struct request *q);
bool request_take_out(struct request **list, struct request *q);

/* The request is its owner's again. */
void requester_end(struct requester *r, struct request *q, enum request_status status);

/* A message came in. False: the connection must be closed, and what was not answered is sent once more. */
bool intake(struct requester *r, const struct link_done *done);

#endif
