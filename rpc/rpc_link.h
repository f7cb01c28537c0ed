/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_link.h - one connection for both roles: a queue pair, its receives, its send buffers and the room in its send
 * queue. It knows nothing of RPC. Sends and reposted receives wait for rpc_link_flush(), so that many messages cost one
 * system call. Not thread-safe: its owner's thread alone uses it. */
#ifndef RDDP_RPC_RPC_LINK_H
#define RDDP_RPC_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rddp/rddp.h>

#include "rpc/private.h"

enum { LINK_BATCH = 16 }; /* requests of each kind that may wait for rpc_link_flush() */

struct link_attr {
    uint32_t receives, receive_size; /* number and size of the receive buffers; all are posted by rpc_link_open() */
    uint32_t sends, send_size;
    uint32_t queue;     /* size of the send queue, Sends and RDMA requests together */
    struct rddp_cq *cq; /* of the owner, with room for `receives` + `queue` completions of each link */
    uint32_t tag;       /* identifies the link in a completion */
    void *user;         /* user pointer of the queue pair */
};

struct rpc_link {
    struct rddp_pd *pd;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t *buffer; /* receive buffers, then send buffers */
    uint32_t *idle;  /* a stack of free send buffers */
    uint32_t idle_count, queue_left;
    struct link_attr attr;
    uint32_t send_max, receive_max; /* inline thresholds in octets: what the peer receives, and what it sends */
    bool remote_invalidation;       /* the peer accepts Send with Invalidate */
    struct rddp_send_wr send[LINK_BATCH];
    struct rddp_recv_wr receive[LINK_BATCH];
    struct rddp_sge send_sge[LINK_BATCH], receive_sge[LINK_BATCH];
    unsigned sends, receives; /* how many of the requests above wait for a flush */
};

/* What a completion is about. */
enum rpc_link_kind { LINK_RECEIVE, LINK_SEND, LINK_RDMA };

struct link_done {
    enum rpc_link_kind kind;
    struct rddp_wc wc;
    uint32_t tag, index; /* LINK_RECEIVE, LINK_SEND: the link's tag and the buffer's index */
    const uint8_t *data; /* LINK_RECEIVE: the message; valid until the buffer is reposted */
    size_t length;
    void *cookie; /* LINK_RDMA: the pointer given to rpc_link_rdma() */
};

/* Creates a queue pair, not connected, and posts its receives. Returns 0, or a negative errno and leaves nothing
 * behind. */
int rpc_link_open(struct rpc_link *link, struct rddp_pd *pd, const struct link_attr *attr);

/* Closes the link at once and drops completions that were not taken. A link that is all zero may be closed. */
void rpc_link_close(struct rpc_link *link);

/* Whether the wire carries private data: RDMA/TCP and immediate mode have no frames for them. */
bool rpc_link_has_private_data(const struct rddp_wire_attr *wire);

/* Sets the inline thresholds from our and the peer's private data (RFC 8797 4). */
void rpc_link_agree(struct rpc_link *link, const struct private *mine, const void *private_data, size_t length);

/* Reads done->wc and sets `kind` and `tag`, `index` or `cookie`: enough to find the link for rpc_link_take(). */
void rpc_link_identify(struct link_done *done);

/* Takes an identified completion. Returns 0, or -EIO if the request failed; the connection is then over. */
int rpc_link_take(struct rpc_link *link, struct link_done *done);

/* Posts the receive buffer again with the next flush. Returns 0 or a negative errno. */
int rpc_link_repost(struct rpc_link *link, uint32_t index);

/* Whether there is room now for `requests` and one Send. */
bool rpc_link_has_space(const struct rpc_link *link, uint32_t requests);

/* Sends a header and a payload with the next flush; both are copied. `invalidate` is the peer's handle to invalidate,
 * or 0 for none. Returns 0 or a negative errno. */
struct link_message {
    const uint8_t *head, *body;
    size_t head_length, body_length;
};
int rpc_link_send(struct rpc_link *link, const struct link_message *message, uint32_t invalidate);

/* The same without a copy: write the message (at most send_max octets) to rpc_link_message(), then call
 * rpc_link_send_here(). */
uint8_t *rpc_link_message(struct rpc_link *link);
int rpc_link_send_here(struct rpc_link *link, size_t length, uint32_t invalidate);

/* Posts an RDMA Read or Write of one local piece with the next flush. The completion returns `cookie`, a pointer to any
 * object aligned to 4 octets. Returns 0 or a negative errno. */
int rpc_link_rdma(struct rpc_link *link, enum rddp_wr_opcode opcode, const struct rddp_sge *local, uint32_t handle,
                  uint64_t offset, void *cookie);

/* Sends an RDMA Write of no octets at once; it has no effect at the peer. Returns 0 or a negative errno. */
int rpc_link_nudge(struct rpc_link *link);

/* Posts all waiting requests. Receives go first, since a Send may permit the peer to use them. Returns 0 or a negative
 * errno. */
int rpc_link_flush(struct rpc_link *link);

#endif
