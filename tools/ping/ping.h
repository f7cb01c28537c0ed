/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ping.h - what the files of `rddp ping` share: the options, the client's round trip and the server's session.
 *
 * There are two protocols. Ours: the client sends a message, and the server sends the same octets back. rping's: see
 * doc/rping-protocol.md. In both of them the client speaks first and has at most one message outstanding. */
#ifndef TOOLS_PING_PING_H
#define TOOLS_PING_PING_H

#include "tools/lib/tool.h"

enum {
    PING_SIZE = 64,          /* default size of a message in octets */
    PING_SIZE_MAX = 1 << 20, /* the server has buffers for two of them for each client */
    RPING_PORT = 7174,
    RPING_SIZE_MIN = 23,
    RPING_SIZE_MAX = 65535,
    RPING_MESSAGE = 16,
};

struct ping_options {
    bool server, rping, once, persistent, verify, verbose, quiet, json;
    const char *address;
    uint64_t port, size;
    uint64_t count; /* 0: until stopped by a signal */
    double interval_s, timeout_s;
    struct rddp_wire_attr wire;
};

/* --- rping's message (rping.c) ------------------------------------------------------------------------------- */

struct rping_message {
    uint64_t offset;
    uint32_t key, size;
};

/* --- client -------------------------------------------------------------------------------------------------- */

struct pinger {
    const struct ping_options *options;
    const struct trip *trip;
    struct tool_endpoint endpoint;
    struct rddp_qp *qp;
    struct region memory; /* laid out by the trip */
    char peer[ADDRESS_TEXT];
    /* Round-trip times in microseconds; the last SAMPLES of them are kept for the quantiles. */
    double *samples;
    uint64_t done;
    double sum_us, min_us, max_us;
};

/* A protocol's round trip. Functions return exit codes; PING_INTERRUPTED is not an error and is never the exit code of
 * the program. */
struct trip {
    const char *what; /* printed between "64 octets" and the peer */
    size_t (*size)(const struct ping_options *options);
    unsigned access; /* access rights of the memory */
    uint16_t reads;  /* IRD and ORD to ask for; 0: the library's default */
    endpoint_prepare *prepare;
    int (*go)(struct pinger *pinger, uint64_t iteration);
};

enum { PING_INTERRUPTED = -1 };

extern const struct trip echo_trip, rping_trip;

int ping_client(const struct ping_options *options, const struct trip *trip, const struct target *target);

/* For trips: receive into, or send, `length` octets at `offset` of the memory. */
int pinger_receive(struct pinger *pinger, size_t offset, uint32_t length);
int pinger_send(struct pinger *pinger, size_t offset, uint32_t length);
/* Waits for the answer for the time in the options, and checks its length. */
int pinger_await(struct pinger *pinger, uint32_t length);

/* --- server -------------------------------------------------------------------------------------------------- */

enum { WR_KINDS = 8 }; /* wr_id is the session's address with the kind of the request in its low bits */

/* One client. */
struct ping_session {
    struct ping_session *next;
    struct rddp_qp *qp;
    struct region memory;
    struct sockaddr_storage address;
    char peer[ADDRESS_TEXT]; /* the same as text */
    bool established;
    uint64_t done, moved_ns; /* moved_ns: when its last request completed */
    int code;                /* exit code of the failure that ended it */
    int phase;               /* state of the service */
    struct rping_message remote;
};

struct server {
    const struct ping_options *options;
    const struct service *service;
    struct tool_endpoint endpoint;
    struct ping_session *sessions;
    uint64_t ended; /* sessions that were established and have ended */
    int code;       /* exit code of the last session that ended */
};

/* The server side of a protocol. */
struct service {
    const char *what; /* for output: "messages" */
    size_t (*size)(const struct ping_options *options);
    uint16_t reads; /* IRD and ORD */
    /* Posts receives before the connection is accepted */
    int (*open)(const struct server *server, struct ping_session *session);
    int (*complete)(const struct server *server, struct ping_session *session, unsigned kind, uint32_t length);
    /* Whether a client may close now, because nothing is under way. */
    bool (*may_end)(const struct server *server, const struct ping_session *session);
};

extern const struct service echo_service, rping_service;

int ping_server(const struct ping_options *options, const struct service *service, const struct target *target);

/* For services: return 0 or an exit code. `kind` (below WR_KINDS) is passed to complete(). */
int session_receive(struct ping_session *session, unsigned kind, size_t offset, uint32_t length);
int session_post(struct ping_session *session, unsigned kind, enum rddp_wr_opcode opcode, size_t offset,
                 uint32_t length);

#endif
