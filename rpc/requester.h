/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.h - the calling end of RPC-over-RDMA version 1. One thread at a time may use a requester, and all work is
 * done inside these calls. When the connection is lost, the requester reconnects and sends unanswered calls again with
 * the same XID. */
#ifndef RDDP_RPC_REQUESTER_H
#define RDDP_RPC_REQUESTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rddp/rddp.h>

enum {
    REQUEST_ITEMS = 4, /* at most this many reduced arguments, and as many reduced results, in one call */
    REQUEST_MRS = 3 * REQUEST_ITEMS + 2,
};

enum request_status {
    REQUEST_OK,
    REQUEST_TIMED_OUT,
    REQUEST_CANCELLED,
    REQUEST_REFUSED,     /* the responder answered with ERR_CHUNK */
    REQUEST_BAD_VERSION, /* the responder answered with ERR_VERS */
    /* The reply uses chunks that the call did not offer, claims octets that were never written, or is longer than its
     * buffer. */
    REQUEST_BAD_REPLY,
    REQUEST_NOT_SENT, /* it could not be built: no memory, or more chunks than a header holds */
    REQUEST_CLOSED,   /* requester_close() ended it */
};

enum request_state { REQUEST_IDLE, REQUEST_QUEUED, REQUEST_SENT, REQUEST_DONE };

/* A DDP-eligible item. An argument has `length` octets at `data`, which belong at `position` of the whole stream. A
 * result has a buffer of `length` octets at `data`, all of which may change; if that is NULL, the result is asked for
 * inline (an empty Write chunk). */
struct request_item {
    void *data;
    uint32_t position, length;
    uint32_t used; /* result: octets that the responder wrote */
};

/* One RPC. The request and all memory that it points to belong to the requester from requester_start() until its state
 * is REQUEST_DONE. */
struct request {
    const uint8_t *call; /* the RPC message without the reduced arguments; its first word is the XID */
    size_t call_length;
    struct request_item argument[REQUEST_ITEMS], result[REQUEST_ITEMS];
    unsigned arguments, results;
    uint8_t *reply; /* a buffer for the longest possible reply without the reduced results */
    size_t reply_size;
    int timeout_ms; /* -1: no time limit */

    enum request_state state;
    enum request_status status;
    size_t reply_length;

    struct request *next, *before, *same_bucket; /* from here on private to the requester */
    uint64_t deadline_ms;
    uint32_t xid;
    struct rddp_mr *mr[REQUEST_MRS];
    unsigned mrs, access;
    uint64_t secret;
    uint32_t result_handle[REQUEST_ITEMS], reply_handle;
    uint64_t result_offset[REQUEST_ITEMS], reply_offset;
    bool offers_reply;
};

struct requester_attr {
    uint32_t credits;                 /* requested from the responder; default 32 */
    uint32_t send_size, receive_size; /* size of our buffers in octets: default 4096, at least 1024 */
    bool private_data;                /* send RFC 8797 private data, if the wire carries it; default true */
    uint32_t backward_credits;        /* calls that the responder may send us before we have answered; default 2 */
    /* Answers a call from the responder (RFC 8167): writes the reply and returns its length, or 0 for no reply. */
    size_t (*backward)(void *user, const uint8_t *call, size_t length, uint8_t *reply, size_t capacity);
    void *user;
    /* After this time without any reply, calls are sent again over a new connection: default 60000, like Linux. */
    uint32_t silence_ms;
    uint32_t spin_us; /* how long requester_wait() polls for a reply before it sleeps: default 20; 0: not at all */
    struct rddp_wire_attr wire;
    enum rddp_log_level log_level; /* default: as set by rddp_context_attr_init() */
    void (*log)(void *user, enum rddp_log_level level, const char *line); /* NULL: standard error */
};

struct requester_stats {
    uint64_t connects, lost; /* connections that were established; those of them that ended */
    uint64_t sent, retransmitted, discarded, registered, late, remotely_invalidated, nudges;
    uint32_t in_flight, most_in_flight, granted;
};

void requester_attr_init(struct requester_attr *attr);

/* Connects, waiting at most `timeout_ms`. Returns NULL and sets errno (ECONNREFUSED, ETIMEDOUT, ENOMEM, ...) on
 * failure. `attr` and `addr` are copied. */
struct requester *requester_open(const struct sockaddr *addr, socklen_t length, const struct requester_attr *attr,
                                 int timeout_ms);

/* Closes the connection and ends all open requests with REQUEST_CLOSED. */
void requester_close(struct requester *r);

/* Returns the next XID for a call. */
uint32_t requester_xid(struct requester *r);

/* Starts a call; requester_wait() does the rest. Calls started together are sent together. */
void requester_start(struct requester *r, struct request *q);

/* The calls started between these two are sent together by the second one, as far as the credits go; others wait for
 * requester_wait(). */
void requester_gather(struct requester *r);
void requester_send(struct requester *r);

/* Ends a call now. When this returns, the responder cannot reach its memory, and a late reply is dropped. */
void requester_cancel(struct requester *r, struct request *q);

/* Works until something was done or `timeout_ms` have passed (-1: no limit). Returns the number of requests that
 * ended. */
int requester_wait(struct requester *r, int timeout_ms);

/* Starts `q` and waits until it has ended. */
enum request_status requester_run(struct requester *r, struct request *q);

/* A descriptor that is readable when requester_wait() has something to do, except for time-outs. */
int requester_fd(const struct requester *r);
void requester_stats(const struct requester *r, struct requester_stats *stats);
const char *request_status_str(enum request_status status);

#endif
