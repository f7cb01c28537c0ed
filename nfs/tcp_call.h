/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_call.h - one RPC over a TCP connection of its own: what MOUNT and rpcbind need. Each call waits. */
#ifndef RDDP_NFS_TCP_CALL_H
#define RDDP_NFS_TCP_CALL_H

#include <sys/socket.h>

#include "nfs/record.h"
#include "nfs/rpcmsg.h"

enum { TCP_CALL_ARGS = 2048 }; /* octets of arguments */

struct tcp_call {
    struct sockaddr_storage addr; /* with its port; or a local socket */
    socklen_t length;
    uint32_t program, version, procedure;
    struct rpc_cred cred;
    int timeout_ms;
    bool reserved;       /* from a port that only root has, if it may */
    size_t reply_max;    /* octets */
    const char *trouble; /* what is wrong with the reply, in words; static. NULL: there was none */
    uint8_t message[RECORD_MARK + RPC_CALL_MAX + TCP_CALL_ARGS];
    struct record_rx rx;
    uint8_t *reply; /* what `results` points into */
};

void tcp_call_port(struct tcp_call *t, uint16_t port);

/* Connects, lets `args` write the arguments, sends them, and stands with `results` behind the header of the reply,
 * which lives until tcp_call_end() or the next call. 0 or a negative errno. */
int tcp_call(struct tcp_call *t, void (*args)(struct coder *c, void *user), void *user, struct coder *results);
void tcp_call_end(struct tcp_call *t);

#endif
