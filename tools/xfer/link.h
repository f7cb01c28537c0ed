/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - one end of a copying connection: messages under credits, and a ring of octets that RDMA carries over.
 *
 * The source fills its ring and puts records; the octets and the records about them leave together. In a push they are
 * written into the sink's ring before the message, in a pull the sink reads them after it. Position p of one ring is
 * position p of the other, modulo its size. The sink takes records in order, and says which positions are free again.
 *
 * Nothing here waits but xfer_link_wait(). Once link->state is not LINK_UP, every call does nothing and says so. */
#ifndef TOOLS_XFER_LINK_H
#define TOOLS_XFER_LINK_H

#include "tools/lib/tool.h"
#include "tools/xfer/xfer.h"

enum link_state {
    LINK_UP,
    LINK_LOST,   /* the connection is gone, or the peer silent */
    LINK_BROKEN, /* the peer does not keep to the protocol */
};

/* How the octets of the ring travel, seen from this end. */
enum link_move {
    LINK_STAY,    /* not yet agreed */
    LINK_WRITE,   /* source of a push: I write */
    LINK_WRITTEN, /* sink of a push */
    LINK_READ,    /* sink of a pull: I read */
    LINK_IS_READ, /* source of a pull */
};

enum { LINK_SENDS = XFER_RECEIVES + 4 };

/* A message that came, in order of arrival. */
struct link_in {
    struct xfer_head head;
    unsigned buffer; /* which receive it is in */
    unsigned reads;  /* RDMA Reads of its part of the ring that are not complete */
    bool fetched;    /* its part of the ring is here or on its way */
};

/* A message that goes. */
struct link_out {
    uint64_t from, to;
    uint32_t length;
};

struct xfer_link {
    struct tool_endpoint *endpoint;
    struct rddp_qp *qp;
    struct region messages; /* first the receives, then the sends, XFER_MESSAGE each */
    struct region ring;
    enum link_move move;
    uint32_t peer_key;
    uint64_t peer_ring;
    struct rddp_sge ring_sge[2]; /* for the Writes or Reads being posted */
    enum link_state state;
    char trouble[200]; /* why it is not LINK_UP */

    struct link_in in[XFER_RECEIVES]; /* a queue; counters run free */
    unsigned in_head, in_tail, in_fetched;
    size_t in_at;  /* in the oldest: where the next record begins, 0 if at none yet */
    unsigned owed; /* receives posted again that the peer does not know of */

    struct link_out out[LINK_SENDS];
    unsigned out_fill, out_send, out_done;
    unsigned credits;

    uint64_t filled;   /* source: octets before this position are in the ring */
    uint64_t put;      /* and records tell of those before this one */
    uint64_t queued;   /* and those before this one are in a closed message */
    uint64_t sent;     /* and this end does not need those before this one any more */
    uint64_t released; /* nor does the sink those before this one */
    uint64_t arrived;  /* sink: messages told of positions before this one */
    uint64_t taken;    /* and DATA took those before this one */
    uint64_t told;     /* and the source knows of these */

    uint64_t rx_ns, tx_ns; /* when something last came, and went */
};

/* 0 or an exit code. The endpoint stays the caller's, and its CQ is this link's alone. */
int xfer_link_open(struct xfer_link *link, struct tool_endpoint *endpoint);
/* After the queue pair is destroyed. Safe twice, and on zeros. */
void xfer_link_close(struct xfer_link *link);
/* Posts the receives; an endpoint_prepare() with the link as `user`. */
int xfer_link_prepare(struct rddp_qp *qp, void *user);
void xfer_link_qp_attr(struct rddp_qp_attr *attr);

/* Makes the ring; from now on octets move. 0 or an exit code. */
int xfer_link_ring(struct xfer_link *link, size_t octets, enum link_move move);

/* Takes what completions there are. Was there one? */
bool xfer_link_poll(struct xfer_link *link);
/* Sends what is put and is worth a message, or due. */
void xfer_link_flush(struct xfer_link *link);
/* Flushes, then waits until there may be something to poll, at most `timeout_ms`. Finds out if the peer is silent. */
void xfer_link_wait(struct xfer_link *link, int timeout_ms);

/* The next record whose octets are here too. Good until the next call. */
bool xfer_link_next(struct xfer_link *link, struct xfer_record *record);
/* May a record be put now? */
bool xfer_link_can_put(struct xfer_link *link);
void xfer_link_put(struct xfer_link *link, const struct xfer_record *record);

/* Source: room for the next octets, without a break; *n of them at least wanted, at most given. NULL: none now. */
uint8_t *xfer_link_room(struct xfer_link *link, size_t *n);
/* `n` octets were filled in. */
void xfer_link_fill(struct xfer_link *link, size_t n);
/* Puts a DATA record about what was filled since the last one. */
void xfer_link_put_data(struct xfer_link *link);
/* Forgets what was filled since the last DATA record. */
void xfer_link_unfill(struct xfer_link *link);

/* Sink: the octets of a DATA record in up to two pieces; NULL where there is none. False: the peer lied. */
struct link_piece {
    const uint8_t *at;
    size_t length;
};
bool xfer_link_take(struct xfer_link *link, uint32_t length, struct link_piece piece[2]);

/* The peer broke the protocol: `what` it did. Returns false, so that `return xfer_link_blame(...)` reads well. */
bool xfer_link_blame(struct xfer_link *link, const char *what);

#endif
