/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcrdma.h - the header of RPC-over-RDMA version 1 (RFC 8166): decodes octets into a checked structure and encodes
 * them. */
#ifndef RDDP_RPC_RPCRDMA_H
#define RDDP_RPC_RPCRDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RPCRDMA_VERSION = 1,
    RPCRDMA_FIXED = 16,      /* octets of the words that all versions have */
    RPCRDMA_HEADER_MIN = 28, /* octets of a header with three empty lists */
    RPCRDMA_ERR_CHUNK_OCTETS = 20,
    RPCRDMA_ERR_VERS_OCTETS = 28,
    RPCRDMA_SEGMENTS = 64, /* limit in one header; a message with more gets ERR_CHUNK */
    RPCRDMA_CHUNKS = 16,   /* limit in one Write list */
    RPCRDMA_HEADER_MAX = RPCRDMA_HEADER_MIN + 24 * RPCRDMA_SEGMENTS + 8 * RPCRDMA_CHUNKS + 4,
};

enum rpcrdma_proc { RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR };
enum rpcrdma_error { ERR_VERS = 1, ERR_CHUNK = 2 };

/* How RFC 8166 4.5 treats a message. Only a responder gets the last two. */
enum rpcrdma_verdict { RPCRDMA_ACCEPT, RPCRDMA_DISCARD, RPCRDMA_SAY_VERS, RPCRDMA_SAY_CHUNK };

struct rpcrdma_segment {
    uint32_t handle, length;
    uint64_t offset;
};

/* A range of segments in `struct rpcrdma`: index of the first, and their number. */
struct rpcrdma_chunk {
    uint32_t first, count;
};

/* A header. Segments are in the order of the header; those of the Read list come first, each with its position. */
struct rpcrdma {
    uint32_t xid, version, credit, proc;
    uint32_t error, version_low, version_high; /* for RDMA_ERROR */
    uint32_t reads, writes;
    bool has_reply;
    uint32_t segments;
    struct rpcrdma_chunk reply;
    size_t length; /* octets of the header; the Payload stream of an RDMA_MSG follows */
    struct rpcrdma_segment segment[RPCRDMA_SEGMENTS]; /* from here on only the entries within the counts are defined */
    uint32_t position[RPCRDMA_SEGMENTS];
    struct rpcrdma_chunk write[RPCRDMA_CHUNKS];
};

/* Makes a header with empty lists, version 1. */
void rpcrdma_init(struct rpcrdma *h, uint32_t xid, uint32_t proc);

/* Decodes and checks a message as a responder, or as a requester. The fixed words are set whatever the verdict is, if
 * the message is long enough. `p` need not be aligned. */
enum rpcrdma_verdict rpcrdma_decode_call(struct rpcrdma *h, const uint8_t *p, size_t n);
enum rpcrdma_verdict rpcrdma_decode_reply(struct rpcrdma *h, const uint8_t *p, size_t n);

/* Whether the message is a Short Message with an RPC Call or an RPC Reply. Nothing else tells the two directions of a
 * connection apart (RFC 8167 5.2). */
enum rpcrdma_direction { RPCRDMA_NEITHER, RPCRDMA_CALL, RPCRDMA_REPLY };
enum rpcrdma_direction rpcrdma_direction(const uint8_t *p, size_t n);

/* rpcrdma_size() is the length of the header in octets. rpcrdma_encode() writes it and returns its length, or 0 if
 * `capacity` is too small. RDMA_MSGP and RDMA_DONE are never sent (RFC 8166 4.6): for them it returns 0. */
size_t rpcrdma_size(const struct rpcrdma *h);
size_t rpcrdma_encode(const struct rpcrdma *h, uint8_t *to, size_t capacity);

/* Add to a header; return false when it is full. A Write chunk or Reply chunk has `count` segments. Read segments come
 * first, then Write chunks, then the Reply chunk. */
bool rpcrdma_add_read(struct rpcrdma *h, uint32_t position, struct rpcrdma_segment segment);
bool rpcrdma_add_write(struct rpcrdma *h, const struct rpcrdma_segment *segment, uint32_t count);
bool rpcrdma_set_reply(struct rpcrdma *h, const struct rpcrdma_segment *segment, uint32_t count);

/* The sum of a chunk's segment lengths, in octets. */
uint64_t rpcrdma_chunk_length(const struct rpcrdma *h, struct rpcrdma_chunk chunk);

/* Sets the segment lengths of a chunk so that `length` octets fill the segments in order (RFC 8166 3.4.6). Returns
 * false and changes nothing if they do not fit. */
bool rpcrdma_fill(struct rpcrdma *h, struct rpcrdma_chunk chunk, uint64_t length);

/* The number of calls that may be sent now (RFC 8166 3.3.1). A grant of 0 counts as 1. */
uint32_t rpcrdma_allowed(uint32_t requested, uint32_t granted, uint32_t in_flight);

#endif
