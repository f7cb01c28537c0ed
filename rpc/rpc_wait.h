/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_wait.h - the descriptor of a requester or a responder: readable when its connections have work for it, or when it
 * was kicked. */
#ifndef RDDP_RPC_RPC_WAIT_H
#define RDDP_RPC_RPC_WAIT_H

#include <stdbool.h>

#include <rddp/rddp.h>

struct rpc_wait {
    int fd;   /* epoll: the context, its events, and `kick` */
    int kick; /* an eventfd */
    bool kicked;
};

/* Makes the descriptor of a context without a thread and its event channel, which no longer blocks. Returns 0 or a
 * negative errno. rpc_wait_close() may be called after either, or when both descriptors are -1. */
int rpc_wait_open(struct rpc_wait *wait, struct rddp_context *context, struct rddp_event_channel *events);
void rpc_wait_close(struct rpc_wait *wait);

/* Adds another descriptor, whose owner reads it. Returns 0 or a negative errno. */
int rpc_wait_add(struct rpc_wait *wait, int fd);

/* Makes the descriptor readable, and takes this back. */
void rpc_wait_kick(struct rpc_wait *wait);
void rpc_wait_unkick(struct rpc_wait *wait);

#endif
