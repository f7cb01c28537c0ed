/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_inner.h - what the files of `rddp serve` share: the server and its sessions. */
#ifndef TOOLS_SERVE_SERVE_H
#define TOOLS_SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "rpc/clients.h"
#include "tools/xfer/copy.h"

enum {
    SERVE_CLIENTS = 64,    /* limit for clients at once */
    SERVE_LEAVING = 64,    /* limit for those that gave way and are about to end */
    SERVE_STOP_MS = 5000,  /* how long the end waits for sessions that wait for the file system */
    SERVE_REST_MS = 20000, /* a client that moves nothing for this long may have to give way */
};

struct serve {
    struct tool_endpoint endpoint; /* its CQ is not used, since each session has its own */
    const char *directory;
    int root;
    bool read_only, quiet, sync, once;
    uint64_t ring, clients; /* octets of a ring; limit for clients at once */
    int wake;               /* eventfd: readable when a session is over */
    struct session *session[SERVE_CLIENTS + SERVE_LEAVING];
    _Atomic unsigned begun; /* copies begun so far */
    _Atomic unsigned running;
    struct rddp_wire_attr wire;
    struct clients allowed;
};

struct session {
    struct serve *serve;
    struct tool_endpoint endpoint; /* context and PD belong to the server */
    struct rddp_qp *qp;
    struct xfer_copy copy;
    pthread_t thread;
    struct sockaddr_storage address;
    char peer[ADDRESS_TEXT];   /* the same as text */
    char what[XFER_TEXT + 16]; /* what the client wants, for messages */
    bool alone;                /* the copy began while no other was running; `begun` and `cpu_s` are from that time */
    unsigned begun;
    double cpu_s;
    bool leaving; /* it had to give way, and has no place any more */
    _Atomic bool over;
};

/* Accepts the request and starts a thread for it. Returns NULL after rejecting the request if that fails. */
struct session *session_start(struct serve *serve, struct rddp_request *request);
/* Joins the thread and frees the session. Disconnect the queue pair first, so that the thread ends soon. */
void session_end(struct session *session);

#endif
