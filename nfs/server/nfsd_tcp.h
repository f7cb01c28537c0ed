/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_tcp.h - a TCP connection and its calls, for nfsd_tcp.c and nfsd_tcp_call.c. */
#ifndef RDDP_NFS_SERVER_NFSD_TCP_H
#define RDDP_NFS_SERVER_NFSD_TCP_H

#include <sys/uio.h>

#include "nfs/server/nfsd_in.h"

struct nfsd_tcp_call {
    struct nfsd_job job;       /* the first member */
    struct responder_call rpc; /* the call in the form that replay.h uses */
    struct tcp_conn *conn;
    uint8_t *record;
    struct replay_entry *entry;
    struct nfsd_tcp_call *next; /* in the list of the connection's replies */
    size_t sent;                /* octets of the reply that were sent, including its mark */
    uint8_t mark[RECORD_MARK];
    int offer;      /* the buffer of the connection that has the call's data; below 0: none */
    uint64_t end;   /* of the reply in the stream */
    bool announced; /* that a READ has no data */
};

/* What a connection does that is a stream of ours, not a socket. */
struct stream_ops {
    bool (*send)(struct tcp_conn *conn);  /* as nfstcp_send() */
    void (*close)(struct tcp_conn *conn); /* the stream alone */
    void (*free)(struct tcp_conn *conn);  /* no call is left */
    void (*end_call)(struct nfsd_tcp_call *call);
    bool (*is_open)(const struct tcp_conn *conn); /* it has received part of a record */
    bool (*waits)(const struct tcp_conn *conn);   /* replies wait to be acknowledged */
};

struct tcp_conn {
    struct source source; /* the first member; its fd is -1 once the connection is over */
    struct nfsd *nfsd;
    struct tcp_conn *next, *next_dirty;
    struct sockaddr_storage peer;
    struct owner owner;
    struct record_rx rx;
    uint8_t *carry; /* octets that were read but not yet parsed, since the connection may not have another call now */
    size_t carried;
    struct nfsd_tcp_call *out, **out_last; /* replies to be sent */
    unsigned outs;                         /* the length of that list */
    uint64_t moved_ms;                     /* when an octet was last received or sent */
    uint32_t events;                       /* the events that epoll waits for */
    bool dirty, blocked;                   /* it has replies that were not tried; the socket was full */
    bool over;                             /* the peer has shut down its sending side */
    bool is_unadmitted;                    /* no export allows its peer */
    struct nfsd_packet *packet;            /* it is a stream of ours, and source.fd is its net's; NULL: a socket */
    const struct stream_ops *stream;       /* with `packet` */
};

/* Whether the connection may have another call now. */
bool nfstcp_may_call(const struct tcp_conn *conn);

/* Starts a call with a received record, which it owns from then on, and with data that was placed in buffer `offer`
 * (item NULL or of length 0: none). Returns false if there is no memory. */
bool nfstcp_call(struct tcp_conn *conn, uint8_t *record, size_t length, const struct stream_item *item, int offer);
/* Ends a call that is in no list. */
void nfstcp_end_call(struct nfsd_tcp_call *call);
/* Lists the parts of a reply that were not sent yet, in order. Returns their number, at most NFSTCP_PIECES. */
enum { NFSTCP_PIECES = 5 };
int nfstcp_pieces(const struct nfsd_tcp_call *call, struct iovec *iov);
/* Sends replies until none are left or the socket is full. Returns false if the connection has failed. */
bool nfstcp_send(struct tcp_conn *conn);
/* Adds a connection. NULL: its peer has enough of them, or there is no memory. The caller sets source.ready and watches
 * it. */
struct tcp_conn *nfstcp_add(struct nfsd *d, int fd, const struct sockaddr_storage *peer);
/* Closes the connection. The structure lives on while calls of it are in work. */
void nfstcp_close(struct tcp_conn *conn);

/* The connection was closed: drops its unsent replies and its calls that have not begun. */
void nfstcp_abandon(struct tcp_conn *conn);

#endif
