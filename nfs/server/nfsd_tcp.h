/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_tcp.h - a TCP connection and its calls, for nfsd_tcp.c and nfsd_tcp_call.c. */
#ifndef RDDP_NFS_SERVER_NFSD_TCP_H
#define RDDP_NFS_SERVER_NFSD_TCP_H

#include "nfs/server/nfsd_in.h"

struct nfsd_tcp_call {
    struct nfsd_job job;       /* the first member */
    struct responder_call rpc; /* the call as replay.h has it */
    struct tcp_conn *conn;
    uint8_t *record;
    struct replay_entry *entry;
    struct nfsd_tcp_call *next; /* of the connection's replies */
    size_t sent;                /* octets of the reply, its mark first */
    uint8_t mark[RECORD_MARK];
};

struct tcp_conn {
    struct source source; /* the first member; its fd is -1 once the connection is over */
    struct nfsd *nfsd;
    struct tcp_conn *next, *next_dirty;
    struct sockaddr_storage peer;
    struct owner owner;
    struct record_rx rx;
    uint8_t *carry; /* read and not eaten, because it may not have another call now */
    size_t carried;
    struct nfsd_tcp_call *out, **out_last; /* replies to be sent */
    unsigned outs;                         /* so many */
    uint64_t moved_ms;                     /* when an octet last came or went */
    uint32_t events;                       /* what epoll was asked for */
    bool dirty, blocked;                   /* it has replies that were not tried; the socket takes none */
    bool over;                             /* the peer has no more to say */
    bool is_stranger;                      /* no export allows it */
};

/* May it have another call now? */
bool nfstcp_may_call(const struct tcp_conn *conn);

/* A record came in; it is the call's from here on. False: no memory. */
bool nfstcp_call(struct tcp_conn *conn, uint8_t *record, size_t length);
/* Sends replies until there are none or the socket takes no more. False: the connection is of no use. */
bool nfstcp_send(struct tcp_conn *conn);
/* The connection is over: replies that wait for it, and calls that have not begun, are dropped. */
void nfstcp_abandon(struct tcp_conn *conn);

#endif
