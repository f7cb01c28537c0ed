/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_call.h - makes one RPC over its own TCP connection, for MOUNT and rpcbind. Each call waits for the reply. */
#ifndef RDDP_NFS_TCP_CALL_H
#define RDDP_NFS_TCP_CALL_H

#include <sys/socket.h>

#include "nfs/record.h"
#include "nfs/rpcmsg.h"

enum { TCP_CALL_ARGS = 2048 }; /* octets of arguments */

struct tcp_call {
    struct sockaddr_storage addr; /* with the port; or the address of a local socket */
    socklen_t length;
    uint32_t program, version, procedure;
    struct rpc_cred cred;
    int timeout_ms;
    bool reserved;       /* use a reserved source port (600 to 1023), if the process may */
    size_t reply_max;    /* the longest reply, in octets */
    const char *trouble; /* what is wrong with the reply; static text; NULL: nothing */
    uint8_t message[RECORD_MARK + RPC_CALL_MAX + TCP_CALL_ARGS];
    struct record_rx rx;
    uint8_t *reply; /* the memory that `results` points into */
};

void tcp_call_port(struct tcp_call *t, uint16_t port);

/* Connects, calls `args` to encode the arguments, sends the call, receives the reply, and leaves `results` after its
 * header. The reply lives until tcp_call_end() or the next call. Returns 0 or a negative errno. */
int tcp_call(struct tcp_call *t, void (*args)(struct coder *c, void *user), void *user, struct coder *results);
void tcp_call_end(struct tcp_call *t);

#endif
