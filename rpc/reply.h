/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reply.h - builds and sends the answer to a call. For serve_call.c. */
#ifndef RDDP_RPC_REPLY_H
#define RDDP_RPC_REPLY_H

#include "rpc/responder_inner.h"

/* Both calls end `serve`: now, or when its transfers are done. */
void answer_reply(struct rpc_serve *serve, const struct reply *reply);
void answer_error(struct rpc_serve *serve, enum rpcrdma_error error);

#endif
