/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ping.h - what the files of `rddp ping` share: its options, a client's trip, a server's session.
 *
 * Two protocols are spoken. Ours: the client sends a message, the server sends the same octets back. rping's: see
 * doc/rping-protocol.md. In both the client speaks first and has one message outstanding at most. */
#ifndef TOOLS_PING_PING_H
#define TOOLS_PING_PING_H

#include "tools/lib/tool.h"

enum {
    PING_SIZE = 64,          /* of a message, if not said */
    PING_SIZE_MAX = 1 << 20, /* the server has room for two of them a client */
    RPING_PORT = 7174,
    RPING_SIZE_MIN = 23,
    RPING_SIZE_MAX = 65535,
    RPING_MESSAGE = 16,
};

struct ping_options {
    bool server, rping, once, persistent, verify, verbose, quiet, json;
    const char *address;
    uint64_t port, size;
    uint64_t count; /* 0: until stopped */
    double interval_s, timeout_s;
    struct rddp_wire_attr wire;
};

/* --- rping's message (rping.c) ------------------------------------------------------------------------------- */

struct rping_message {
    uint64_t offset;
    uint32_t key, size;
};

void rping_encode(unsigned char out[RPING_MESSAGE], const struct rping_message *message);
struct rping_message rping_decode(const unsigned char in[RPING_MESSAGE]);

/* What a client writes into its source buffer in iteration `iteration` (from 0): text, a run of letters, a zero. */
void rping_fill(unsigned char *out, size_t size, uint64_t iteration);

/* --- client -------------------------------------------------------------------------------------------------- */

struct pinger {
    const struct ping_options *options;
    const struct trip *trip;
    struct tool_endpoint endpoint;
    struct rddp_qp *qp;
    struct region memory; /* laid out by the trip */
    char peer[ADDRESS_TEXT];
    /* Round trips, microseconds. The last SAMPLES of them are kept for the quantiles. */
    double *samples;
    uint64_t done;
    double sum_us, min_us, max_us;
};

/* One protocol's way there and back. Exit codes; PING_INTERRUPTED is not an error and never leaves the program. */
struct trip {
    const char *what; /* between "64 octets" and the peer */
    size_t (*room)(const struct ping_options *options);
    unsigned access; /* of the memory */
    uint16_t reads;  /* IRD and ORD to ask for; 0: what the library likes */
    endpoint_prepare *prepare;
    int (*go)(struct pinger *pinger, uint64_t iteration);
};

enum { PING_INTERRUPTED = -1 };

extern const struct trip echo_trip, rping_trip;

int ping_client(const struct ping_options *options, const struct target *target);

/* The trips' means. Receive into, or send, `length` octets at `offset` of the memory. */
int pinger_receive(struct pinger *pinger, size_t offset, uint32_t length);
int pinger_send(struct pinger *pinger, size_t offset, uint32_t length);
/* Waits for the answer, as long as the options say, and checks its length. */
int pinger_await(struct pinger *pinger, uint32_t length);

/* --- server -------------------------------------------------------------------------------------------------- */

enum { WR_KINDS = 8 }; /* wr_id is a session's address and, in its low bits, which request it is */

/* One client. */
struct ping_session {
    struct ping_session *next;
    struct rddp_qp *qp;
    struct region memory;
    char peer[ADDRESS_TEXT];
    bool established;
    uint64_t done;
    int code;  /* why it is cut: an exit code */
    int phase; /* of the service */
    struct rping_message remote;
};

struct server {
    const struct ping_options *options;
    const struct service *service;
    struct tool_endpoint endpoint;
    struct ping_session *sessions;
    uint64_t ended; /* sessions that were established once */
    int code;       /* of the last that ended */
};

/* One protocol, seen by its server. */
struct service {
    const char *what; /* "messages" */
    size_t (*room)(const struct ping_options *options);
    uint16_t reads;                                                         /* IRD and ORD */
    int (*open)(const struct server *server, struct ping_session *session); /* before it is accepted: posts receives */
    int (*complete)(const struct server *server, struct ping_session *session, unsigned kind, uint32_t length);
    /* Whether a client that closes now has not left in the middle of something. */
    bool (*may_end)(const struct server *server, const struct ping_session *session);
};

extern const struct service echo_service, rping_service;

int ping_server(const struct ping_options *options, const struct target *target);

/* The services' means: 0 or an exit code. `kind` (below WR_KINDS) comes back in complete(). */
int session_receive(struct ping_session *session, unsigned kind, size_t offset, uint32_t length);
int session_post(struct ping_session *session, unsigned kind, enum rddp_wr_opcode opcode, size_t offset,
                 uint32_t length);

#endif
