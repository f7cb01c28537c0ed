/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.h - the calling end of RPC-over-RDMA version 1. One thread at a time uses a requester; nothing happens but
 * inside its calls. It connects again by itself and sends what was not answered once more, with the same XID. */
#ifndef RDDP_RPC_REQUESTER_H
#define RDDP_RPC_REQUESTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rddp/rddp.h>

enum {
    REQUEST_ITEMS = 4, /* reduced arguments, and reduced results, of one call */
    REQUEST_MRS = 3 * REQUEST_ITEMS + 2,
};

enum request_status {
    REQUEST_OK,
    REQUEST_TIMED_OUT,
    REQUEST_CANCELLED,
    REQUEST_REFUSED,     /* the responder said ERR_CHUNK */
    REQUEST_BAD_VERSION, /* ... ERR_VERS */
    REQUEST_BAD_REPLY,   /* the reply has chunks that the call did not offer, or is longer than its room */
    REQUEST_NOT_SENT,    /* it could not be built: no memory, or more chunks than a header takes */
    REQUEST_CLOSED,      /* the requester was closed */
};

enum request_state { REQUEST_IDLE, REQUEST_QUEUED, REQUEST_SENT, REQUEST_DONE };

/* A DDP-eligible item. Of an argument: `length` octets at `data` belong at `position` of the whole stream. Of a result:
 * `data` has room for `length`; NULL asks for this one inline (an empty Write chunk). */
struct request_item {
    void *data;
    uint32_t position, length;
    uint32_t used; /* result: octets that the responder wrote */
};

/* One RPC. It and all it points to belong to the requester from requester_start() until the state is REQUEST_DONE. */
struct request {
    const uint8_t *call; /* the RPC message without the arguments below; its first word is the XID */
    size_t call_length;
    struct request_item argument[REQUEST_ITEMS], result[REQUEST_ITEMS];
    unsigned arguments, results;
    uint8_t *reply; /* room for the longest possible reply, without the results above */
    size_t reply_room;
    int timeout_ms; /* -1: none */

    enum request_state state;
    enum request_status status;
    size_t reply_length;

    struct request *next, *before, *same_bucket; /* from here on the requester's */
    uint64_t deadline_ms;
    uint32_t xid;
    struct rddp_mr *mr[REQUEST_MRS];
    unsigned mrs, access;
    uint32_t result_handle[REQUEST_ITEMS], reply_handle;
    uint64_t result_offset[REQUEST_ITEMS], reply_offset;
    bool offers_reply;
};

struct requester_attr {
    uint32_t credits;                 /* asked for, default 32 */
    uint32_t send_size, receive_size; /* of our buffers: default 4096, at least 1024 */
    bool private_data;                /* say so (RFC 8797), default yes */
    uint32_t backward_credits;        /* calls that the responder may have under way to us, default 2 */
    /* Answers a call of the responder (RFC 8167): the length of the reply put into `reply`, 0 for none. */
    size_t (*backward)(void *user, const uint8_t *call, size_t length, uint8_t *reply, size_t capacity);
    void *user;
    /* Without any reply for so long, the calls are sent once more over a new connection: default 60000, as Linux. */
    uint32_t silence_ms;
    uint32_t spin_us; /* requester_wait() looks so long for a reply before it sleeps: default 20; 0 at once */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level; /* of what the connection has to say: as of rddp_context_attr_init() */
    void (*log)(void *user, enum rddp_log_level level, const char *line); /* NULL: standard error */
};

struct requester_stats {
    uint64_t connects, sent, retransmitted, discarded, registered, late, remotely_invalidated, nudges;
    uint32_t in_flight, most_in_flight, granted;
};

void requester_attr_init(struct requester_attr *attr);

/* Connects, waiting at most `timeout_ms`. NULL and errno: ECONNREFUSED, ETIMEDOUT, ENOMEM ... */
struct requester *requester_open(const struct sockaddr *addr, socklen_t length, const struct requester_attr *attr,
                                 int timeout_ms);

/* What is not done yet ends with REQUEST_CLOSED. */
void requester_close(struct requester *r);

/* An XID that none of its calls has. */
uint32_t requester_xid(struct requester *r);

/* Begins a call. The rest happens in requester_wait(); what is begun together leaves together. */
void requester_start(struct requester *r, struct request *q);

/* Ends it now: its memory is out of the responder's reach when this returns, and a late reply is dropped. */
void requester_cancel(struct requester *r, struct request *q);

/* Does what there is to do, waiting at most `timeout_ms` for some of it (-1: for ever). How many requests ended. */
int requester_wait(struct requester *r, int timeout_ms);

/* Starts `q` and waits until it is done. */
enum request_status requester_run(struct requester *r, struct request *q);

/* An fd that is readable when requester_wait() has something to do, but for time-outs. */
int requester_fd(const struct requester *r);
void requester_stats(const struct requester *r, struct requester_stats *stats);
const char *request_status_str(enum request_status status);

#endif
