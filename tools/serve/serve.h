/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.h - what the files of `rddp serve` share: the server, and the sessions that it runs. */
#ifndef TOOLS_SERVE_SERVE_H
#define TOOLS_SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "nfs/server/clients.h"
#include "tools/xfer/copy.h"

enum { SERVE_CLIENTS = 64 }; /* at once */

struct serve {
    struct tool_endpoint endpoint; /* its CQ is not used: each session has its own */
    const char *directory;
    int root;
    bool read_only, quiet, sync, once;
    uint64_t ring, clients; /* octets, and how many at once */
    int wake;               /* eventfd: a session is over */
    struct session *session[SERVE_CLIENTS];
    _Atomic unsigned begun; /* copies, ever */
    _Atomic unsigned running;
    struct rddp_wire_attr wire;
    struct clients allowed;
};

struct session {
    struct serve *serve;
    struct tool_endpoint endpoint; /* context and PD are the server's */
    struct rddp_qp *qp;
    struct xfer_copy copy;
    pthread_t thread;
    char peer[ADDRESS_TEXT];
    char what[XFER_TEXT + 16]; /* it wants */
    bool alone;                /* when its copy began, as number `begun`, and the process had used `cpu_s` */
    unsigned begun;
    double cpu_s;
    _Atomic bool over;
};

/* Accepts the request and starts a thread for it; NULL, and the request is rejected, if something is lacking. */
struct session *session_start(struct serve *serve, struct rddp_request *request);
/* Waits for the thread and frees everything. To be quick, disconnect the queue pair before. */
void session_end(struct session *session);

#endif
