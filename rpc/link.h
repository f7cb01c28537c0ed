/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - one connection as both roles see it: a queue pair with its receives, its send buffers and the room in its
 * send queue. It knows no RPC. */
#ifndef RDDP_RPC_LINK_H
#define RDDP_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rddp/rddp.h>

#include "rpc/private.h"

struct link_attr {
    uint32_t receives, receive_size; /* how many buffers of which size are posted from the start */
    uint32_t sends, send_size;
    uint32_t queue; /* requests that may wait in the send queue, Sends and others together */
    void *user;     /* of the queue pair and of the CQ */
};

struct link {
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t *room;  /* receive buffers, then send buffers */
    uint32_t *idle; /* a stack of send buffers */
    uint32_t idle_count, queue_left;
    struct link_attr attr;
    uint32_t send_max, receive_max; /* inline thresholds: octets that the peer takes, and that it may send */
    bool remote_invalidation;       /* the peer takes Send with Invalidate */
};

/* What a completion is about. */
enum link_kind { LINK_RECEIVE, LINK_SEND, LINK_RDMA };

struct link_done {
    enum link_kind kind;
    struct rddp_wc wc;
    uint32_t index;      /* LINK_RECEIVE: the buffer */
    const uint8_t *data; /* its content */
    size_t length;
    void *cookie; /* LINK_RDMA: as posted */
};

/* A queue pair and its posted receives, not connected. 0, or a negative errno and nothing is left. */
int link_open(struct link *link, struct rddp_context *context, struct rddp_pd *pd, struct rddp_comp_channel *channel,
              const struct link_attr *attr);

/* Ends it at once. Completions that were not taken vanish. A link that is all zero may be closed. */
void link_close(struct link *link);

/* What both ends agreed on, from the peer's private data (RFC 8797 4). */
void link_agree(struct link *link, const struct private *mine, const void *private_data, size_t length);

/* Takes a completion: 1, 0 if there is none, or -EIO when it was not a success; then the connection is over. */
int link_poll(struct link *link, struct link_done *done);

/* The receive buffer may be used again. 0 or a negative errno. */
int link_repost(struct link *link, uint32_t index);

/* Whether `requests` and a Send have room now. */
bool link_has_room(const struct link *link, uint32_t requests);

/* Sends header and payload, which are copied; `invalidate` is the peer's handle to go with it, or 0 for none. */
struct link_message {
    const uint8_t *head, *body;
    size_t head_length, body_length;
};
int link_send(struct link *link, const struct link_message *message, uint32_t invalidate);

/* Posts an RDMA Read or Write of one local piece. `cookie` is a pointer of any object. */
int link_rdma(struct link *link, enum rddp_wr_opcode opcode, struct rddp_sge *local, uint32_t handle, uint64_t offset,
              void *cookie);

#endif
