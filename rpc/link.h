/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - one connection as both roles see it: a queue pair with its receives, its send buffers and the room in its
 * send queue. It knows no RPC. What is sent and received again waits for link_flush(), so that many messages cost the
 * system call of one. */
#ifndef RDDP_RPC_LINK_H
#define RDDP_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rddp/rddp.h>

#include "rpc/private.h"

enum { LINK_BATCH = 16 }; /* requests that wait for link_flush() */

struct link_attr {
    uint32_t receives, receive_size; /* how many buffers of which size are posted from the start */
    uint32_t sends, send_size;
    uint32_t queue;     /* requests that may wait in the send queue, Sends and others together */
    struct rddp_cq *cq; /* of the owner, who has room in it for `receives` and `queue` of each link */
    uint32_t tag;       /* says in a completion whose it is */
    void *user;         /* of the queue pair */
};

struct rpc_link {
    struct rddp_pd *pd;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t *buffer; /* receive buffers, then send buffers */
    uint32_t *idle;  /* a stack of send buffers */
    uint32_t idle_count, queue_left;
    struct link_attr attr;
    uint32_t send_max, receive_max; /* inline thresholds: octets that the peer takes, and that it may send */
    bool remote_invalidation;       /* the peer takes Send with Invalidate */
    struct rddp_send_wr send[LINK_BATCH];
    struct rddp_recv_wr receive[LINK_BATCH];
    struct rddp_sge send_sge[LINK_BATCH], receive_sge[LINK_BATCH];
    unsigned sends, receives; /* of them in use */
};

/* What a completion is about. */
enum rpc_link_kind { LINK_RECEIVE, LINK_SEND, LINK_RDMA };

struct link_done {
    enum rpc_link_kind kind;
    struct rddp_wc wc;
    uint32_t tag, index; /* LINK_RECEIVE, LINK_SEND: the link and the buffer */
    const uint8_t *data; /* LINK_RECEIVE: its content */
    size_t length;
    void *cookie; /* LINK_RDMA: as posted */
};

/* A queue pair and its posted receives, not connected. 0, or a negative errno and nothing is left. */
int rpc_link_open(struct rpc_link *link, struct rddp_pd *pd, const struct link_attr *attr);

/* Ends it at once. Completions that were not taken vanish. A link that is all zero may be closed. */
void rpc_link_close(struct rpc_link *link);

/* Whether the wire carries what they say of themselves: RDMA/TCP and immediate mode have no start-up frames. */
bool rpc_link_has_private_data(const struct rddp_wire_attr *wire);

/* What both ends agreed on, from the peer's private data (RFC 8797 4). */
void rpc_link_agree(struct rpc_link *link, const struct private *mine, const void *private_data, size_t length);

/* Reads done->wc: kind, and tag or cookie. They say which link to ask for the rest. */
void rpc_link_identify(struct link_done *done);

/* Takes an identified completion: 0, or -EIO when it was not a success; then the connection is over. */
int rpc_link_take(struct rpc_link *link, struct link_done *done);

/* The receive buffer may be used again, from the next flush on. 0 or a negative errno. */
int rpc_link_repost(struct rpc_link *link, uint32_t index);

/* Whether `requests` and a Send have room now. */
bool rpc_link_has_room(const struct rpc_link *link, uint32_t requests);

/* Sends header and payload, which are copied, with the next flush; `invalidate` is the peer's handle to go with it, or
 * 0 for none. 0 or a negative errno. */
struct link_message {
    const uint8_t *head, *body;
    size_t head_length, body_length;
};
int rpc_link_send(struct rpc_link *link, const struct link_message *message, uint32_t invalidate);

/* The same in two steps, without a copy: where the next message goes (send_max octets), and that it is there. */
uint8_t *rpc_link_message_room(struct rpc_link *link);
int rpc_link_send_here(struct rpc_link *link, size_t length, uint32_t invalidate);

/* An RDMA Read or Write of one local piece, with the next flush. `cookie` is a pointer of any object. */
int rpc_link_rdma(struct rpc_link *link, enum rddp_wr_opcode opcode, const struct rddp_sge *local, uint32_t handle,
                  uint64_t offset, void *cookie);

/* Sends at once an RDMA Write of no octets, which means nothing to the peer. 0 or a negative errno. */
int rpc_link_nudge(struct rpc_link *link);

/* Posts what waits: receives first, since what is sent may let the peer use them. 0 or a negative errno. */
int rpc_link_flush(struct rpc_link *link);

#endif
