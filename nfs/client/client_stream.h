/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_stream.h - makes RPCs over a TCP of our own (record marking, RFC 5531 11). The data of a READ are placed in
 * the caller's buffer and those of a WRITE are marked for the server's, if both ends have the TCP RDMA option. It has
 * the form of rpc/requester.h: one thread at a time, all work inside these calls, unanswered calls are sent again over
 * a new connection with the same XID. */
#ifndef RDDP_NFS_CLIENT_STREAM_H
#define RDDP_NFS_CLIENT_STREAM_H

#include <rddp/stream.h>

#include "rpc/requester.h"

struct packet_caller;

struct packet_attr {
    struct rddp_stream_net *net; /* borrowed */
    struct sockaddr_storage own; /* our address behind it */
    uint32_t credits;            /* calls under way at most */
};

/* Connects, waiting at most `timeout_ms`. Returns NULL and sets errno on failure: ECONNREFUSED, ETIMEDOUT, ENOMEM,
 * EINVAL: the addresses differ in family. */
struct packet_caller *caller_open(const struct sockaddr_storage *server, const struct packet_attr *attr,
                                  int timeout_ms);
void caller_close(struct packet_caller *p);
uint32_t caller_xid(struct packet_caller *p);

/* As requester_start() and so on; but with REQUEST_OK q->reply is a message on the heap, which the caller must free. */
void caller_start(struct packet_caller *p, struct request *q);
void caller_cancel(struct packet_caller *p, struct request *q);
int caller_wait(struct packet_caller *p, int timeout_ms);
int caller_fd(const struct packet_caller *p);

/* What was sent and received since caller_open(), over all connections. */
struct packet_stats {
    uint64_t lost;   /* connections that have ended, or could not be made */
    uint64_t placed; /* octets of READs that lay in place on arrival of their packet */
    bool has_option;
};
void caller_stats(const struct packet_caller *p, struct packet_stats *stats);

#endif
