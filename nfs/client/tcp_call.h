/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_call.h - one RPC over a TCP connection of its own: what MOUNT needs. */
#ifndef RDDP_NFS_CLIENT_TCP_CALL_H
#define RDDP_NFS_CLIENT_TCP_CALL_H

#include <sys/socket.h>

#include "nfs/record.h"
#include "nfs/rpcmsg.h"

enum { TCP_CALL_ARGS = 2048, TCP_CALL_MAX = 1 << 20 }; /* octets of arguments, of a reply */

struct tcp_call {
    struct sockaddr_storage addr; /* with its port */
    socklen_t length;
    uint32_t program, version, procedure;
    struct rpc_cred cred;
    int timeout_ms;
    const char *trouble; /* what went wrong, in words; static */
    uint8_t message[RECORD_MARK + RPC_CALL_MAX + TCP_CALL_ARGS];
    struct record_rx rx;
    uint8_t *reply; /* what `results` points into */
};

void tcp_call_port(struct tcp_call *t, uint16_t port);

/* Connects (from a reserved port, if it may), lets `args` write the arguments, sends them, and stands with `results`
 * behind the header of the reply, which lives until tcp_call_end() or the next call. 0 or a negative errno. */
int tcp_call(struct tcp_call *t, void (*args)(struct coder *c, void *user), void *user, struct coder *results);
void tcp_call_end(struct tcp_call *t);

#endif
