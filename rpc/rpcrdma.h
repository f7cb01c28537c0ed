/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcrdma.h - the header of RPC-over-RDMA version 1 (RFC 8166): bytes to a checked structure and back. */
#ifndef RDDP_RPC_RPCRDMA_H
#define RDDP_RPC_RPCRDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RPCRDMA_VERSION = 1,
    RPCRDMA_FIXED = 16,      /* octets of the words that every version has */
    RPCRDMA_HEADER_MIN = 28, /* with three empty lists */
    RPCRDMA_ERR_CHUNK_OCTETS = 20,
    RPCRDMA_ERR_VERS_OCTETS = 28,
    RPCRDMA_SEGMENTS = 64, /* in one header; more are ERR_CHUNK */
    RPCRDMA_CHUNKS = 16,   /* in one Write list */
    RPCRDMA_HEADER_MAX = RPCRDMA_HEADER_MIN + 24 * RPCRDMA_SEGMENTS + 8 * RPCRDMA_CHUNKS + 4,
};

enum rpcrdma_proc { RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR };
enum rpcrdma_error { ERR_VERS = 1, ERR_CHUNK = 2 };

/* What RFC 8166 4.5 orders for a message. The last two are answered by a responder only. */
enum rpcrdma_verdict { RPCRDMA_ACCEPT, RPCRDMA_DISCARD, RPCRDMA_SAY_VERS, RPCRDMA_SAY_CHUNK };

struct rpcrdma_segment {
    uint32_t handle, length;
    uint64_t offset;
};

/* A run of segments of the header: `first` and how many. */
struct rpcrdma_chunk {
    uint32_t first, count;
};

/* A header. Segments stand in the order of the header: the Read list's first, each with its position. */
struct rpcrdma {
    uint32_t xid, version, credit, proc;
    uint32_t error, version_low, version_high; /* of RDMA_ERROR */
    uint32_t reads, writes;
    bool has_reply;
    uint32_t segments;
    struct rpcrdma_chunk reply;
    size_t length; /* octets of the header; the Payload stream of an RDMA_MSG follows */
    struct rpcrdma_segment segment[RPCRDMA_SEGMENTS]; /* from here on only what the counts say is defined */
    uint32_t position[RPCRDMA_SEGMENTS];
    struct rpcrdma_chunk write[RPCRDMA_CHUNKS];
};

/* A header with empty lists, version 1. */
void rpcrdma_init(struct rpcrdma *h, uint32_t xid, uint32_t proc);

/* Reads a message as a responder does, or as a requester does. Whatever the verdict, the fixed words are set if they
 * were there. `p` need not be aligned. */
enum rpcrdma_verdict rpcrdma_decode_call(struct rpcrdma *h, const uint8_t *p, size_t n);
enum rpcrdma_verdict rpcrdma_decode_reply(struct rpcrdma *h, const uint8_t *p, size_t n);

/* Whether the message is a Short Message that carries an RPC Call (or Reply): the only thing that tells the two
 * directions of a connection apart (RFC 8167 5.2). */
enum rpcrdma_direction { RPCRDMA_NEITHER, RPCRDMA_CALL, RPCRDMA_REPLY };
enum rpcrdma_direction rpcrdma_direction(const uint8_t *p, size_t n);

/* Octets that the header takes, and the header itself: its length, or 0 if `capacity` is too small. There is no way to
 * send RDMA_MSGP or RDMA_DONE (RFC 8166 4.6). */
size_t rpcrdma_size(const struct rpcrdma *h);
size_t rpcrdma_encode(const struct rpcrdma *h, uint8_t *to, size_t capacity);

/* Add to a header that is being made; false when it is full. A Write chunk or Reply chunk takes `count` segments. */
bool rpcrdma_add_read(struct rpcrdma *h, uint32_t position, struct rpcrdma_segment segment);
bool rpcrdma_add_write(struct rpcrdma *h, const struct rpcrdma_segment *segment, uint32_t count);
bool rpcrdma_set_reply(struct rpcrdma *h, const struct rpcrdma_segment *segment, uint32_t count);

/* The sum of a chunk's segment lengths. */
uint64_t rpcrdma_chunk_length(const struct rpcrdma *h, struct rpcrdma_chunk chunk);

/* Sets the lengths of a chunk to what `length` octets fill, in the order of its segments (RFC 8166 3.4.6). False, and
 * nothing is changed, if they do not fit. */
bool rpcrdma_fill(struct rpcrdma *h, struct rpcrdma_chunk chunk, uint64_t length);

/* How many new calls may be sent (RFC 8166 3.3.1). A grant of 0 counts as 1. */
uint32_t rpcrdma_allowed(uint32_t requested, uint32_t granted, uint32_t in_flight);

#endif
