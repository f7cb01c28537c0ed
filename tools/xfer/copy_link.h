/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy_link.h - one end of a copying connection: messages under credits, and a ring of octets that RDMA transfers.
 *
 * The source fills its ring and puts records; the octets and the records about them leave together. In a push the
 * source writes the octets into the sink's ring before the message; in a pull the sink reads them after the message.
 * Position p of one ring is position p of the other, modulo the size. The sink takes records in order and reports
 * which positions are free again.
 *
 * Only xfer_link_wait() blocks. Once link->state is not LINK_UP, each call does nothing and returns failure. */
#ifndef TOOLS_XFER_LINK_H
#define TOOLS_XFER_LINK_H

#include "tools/lib/tool.h"
#include "tools/xfer/xfer.h"

enum link_state {
    LINK_UP,
    LINK_LOST,   /* the connection is gone, or the peer is silent */
    LINK_BROKEN, /* the peer violates the protocol */
};

/* How the octets of the ring are transferred, seen from this end. */
enum link_move {
    LINK_STAY,    /* not yet negotiated */
    LINK_WRITE,   /* source of a push: we write */
    LINK_WRITTEN, /* sink of a push */
    LINK_READ,    /* sink of a pull: we read */
    LINK_IS_READ, /* source of a pull */
};

enum { LINK_SENDS = XFER_RECEIVES + 4 };

/* A received message, in order of arrival. */
struct link_in {
    struct xfer_head head;
    unsigned buffer; /* index of its receive buffer */
    unsigned reads;  /* RDMA Reads of its part of the ring that have not completed */
    bool fetched;    /* its part of the ring has arrived or is being read */
};

/* A message to send. */
struct link_out {
    uint64_t from, to;
    uint32_t length;
};

/* A queue; its counters are not reduced modulo its size: the message being filled, the next to send, to complete. */
struct link_outs {
    struct link_out queue[LINK_SENDS];
    unsigned fill, send, done;
};

struct xfer_link {
    struct tool_endpoint *endpoint;
    struct rddp_qp *qp;
    struct region messages; /* receive buffers, then send buffers, of XFER_MESSAGE octets each */
    struct region ring;
    enum link_move move;
    uint32_t peer_key;
    uint64_t peer_ring;
    struct rddp_sge ring_sge[2]; /* for the RDMA requests being posted */
    enum link_state state;
    char trouble[200]; /* why the state is not LINK_UP */

    struct link_in in[XFER_RECEIVES]; /* a queue; its counters are not reduced modulo its size */
    unsigned in_head, in_tail, in_fetched;
    size_t in_at;  /* offset of the next record in the oldest message; 0: at its start */
    unsigned owed; /* reposted receives that the peer does not know of */

    struct link_outs out;
    unsigned credits;

    uint64_t filled;   /* source: octets before this position are in the ring */
    uint64_t put;      /* records describe the octets before this position */
    uint64_t queued;   /* closed messages describe the octets before this position */
    uint64_t sent;     /* this end no longer needs the octets before this position */
    uint64_t released; /* the sink no longer needs the octets before this position */
    uint64_t arrived;  /* sink: messages described the octets before this position */
    uint64_t taken;    /* DATA records took the octets before this position */
    uint64_t reported; /* the source knows that positions before this one are free */

    uint64_t rx_ns, tx_ns; /* when something was last received, and sent */
};

/* Returns 0 or an exit code. The endpoint is borrowed; its CQ must be used by this link only. */
int xfer_link_open(struct xfer_link *link, struct tool_endpoint *endpoint);
/* Call after the queue pair was destroyed. Safe on zeros, and safe to call twice. */
void xfer_link_close(struct xfer_link *link);
/* Posts the receives; an endpoint_prepare() with the link as `user`. */
int xfer_link_prepare(struct rddp_qp *qp, void *user);
void xfer_link_qp_attr(struct rddp_qp_attr *attr);

/* Creates the ring; octets may then be transferred. Returns 0 or an exit code. */
int xfer_link_ring(struct xfer_link *link, size_t octets, enum link_move move);

/* Handles all completions there are. Returns whether there was one. */
bool xfer_link_poll(struct xfer_link *link);
/* Sends the records that were put, if they fill a message or are due. */
void xfer_link_flush(struct xfer_link *link);
/* Flushes, then waits until there may be something to poll, at most `timeout_ms`. Detects a silent peer. */
void xfer_link_wait(struct xfer_link *link, int timeout_ms);

/* Takes the next record whose octets have arrived. It is valid until the next call. */
bool xfer_link_next(struct xfer_link *link, struct xfer_record *record);
/* Whether a record may be put now. */
bool xfer_link_can_put(struct xfer_link *link);
void xfer_link_put(struct xfer_link *link, const struct xfer_record *record);

/* Source: returns contiguous room in the ring for the next octets. *n is the minimum on entry and the length on return.
 * NULL: there is none now. */
uint8_t *xfer_link_space(struct xfer_link *link, size_t *n);
/* Marks `n` octets of that room as filled. */
void xfer_link_fill(struct xfer_link *link, size_t n);
/* Puts a DATA record about the octets filled since the last one. */
void xfer_link_put_data(struct xfer_link *link);
/* Discards the octets filled since the last DATA record. */
void xfer_link_unfill(struct xfer_link *link);

/* Sink: the octets of a DATA record, in up to two pieces; NULL for an unused piece. Returns false if the length is
 * invalid. */
struct link_piece {
    const uint8_t *at;
    size_t length;
};
bool xfer_link_take(struct xfer_link *link, uint32_t length, struct link_piece piece[2]);

/* Ends the link because the peer violated the protocol; `what` names the violation. Returns false, so that `return
 * xfer_link_blame(...)` reads well. */
bool xfer_link_blame(struct xfer_link *link, const char *what);

#endif
