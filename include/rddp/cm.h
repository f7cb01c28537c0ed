/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/cm.h - how connections begin and end: devices, events, listeners, requests; rddp.h includes it, and its
 * conventions hold here. */
#ifndef RDDP_CM_H
#define RDDP_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rddp/ib.h>
#include <rddp/wire.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDDP_API __attribute__((visibility("default")))

struct rddp_context;
struct rddp_device;
struct rddp_event_channel;
struct rddp_listener;
struct rddp_mr;
struct rddp_qp;
struct rddp_request;
struct rddp_resolution;

/* The library's own TCP: data that arrive behind a lost segment are placed at once, and each FPDU is one segment
 * (RFC 5044 5.1). One device serves all connections of a context.
 *
 * Usually it has an address of its own, behind a TUN device. It needs the right to make one: CAP_NET_ADMIN, which
 * everybody has inside `unshare -Urn`.
 *
 * With `hand_off` it has no address. The kernel connects and accepts, with the host's own addresses, and the device
 * takes the connections over when their start-up is over, as network cards for iWARP do. The kernel keeps the port and
 * ignores the packets. A connection that cannot be taken over stays with the kernel's TCP, and a warning is logged. It
 * needs CAP_NET_ADMIN and CAP_NET_RAW, a path that does not fragment, and no address translation and no IPsec on this
 * host. If the process is killed, the kernel answers the next packet of the peer with a reset. */
struct rddp_device_attr {
    const struct sockaddr *address; /* the address from which connections are made: IPv4 or IPv6; its port is ignored */
    const char *name;               /* the TUN device's name; NULL: the kernel chooses */
    const struct sockaddr *neighbor; /* the kernel's own address on the device; NULL: it is configured already */
    uint32_t prefix;                 /* bits of `neighbor` that all addresses behind the device share */
    uint32_t mtu;                    /* octets, 1280 to 65535, default 1500 */
    uint32_t window;     /* octets of a connection that may wait for their turn: 4096 to 1 GiB, default 1 MiB */
    uint32_t window_max; /* the window grows up to here with what is taken in a round trip; default 16 MiB; 0: never */
    /* Connections at once, closing ones included; default 1024. If there are as many, a new one takes the place of one
     * that is closing, or else of one whose peer has not begun the start-up. */
    uint32_t connections;
    bool checksums; /* compute and verify them here; otherwise the device does */
    /* For tests: lose this many of 100,000 packets each way, the same ones for the same seed. */
    uint32_t lose, lose_seed;
    /* Take over connections of the kernel's TCP. Do not set address, name, neighbor, prefix and checksums then; the MTU
     * is that of the path. */
    bool hand_off;
};

RDDP_API void rddp_device_attr_init(struct rddp_device_attr *attr);

/* Opens a device of this context, for rddp_wire_attr.device. NULL: EINVAL; EPERM, EACCES (no permission to make a TUN
 * device); EBUSY (another program uses it); EADDRINUSE (`address` is the host's own, or behind another device, or
 * the host refuses packets to it); ENOENT (no TUN driver); ENOMEM; EMFILE; EAGAIN (no random number available). */
RDDP_API struct rddp_device *rddp_open_device(struct rddp_context *context, const struct rddp_device_attr *attr);

/* Waits up to two seconds until the peers have acknowledged what was sent, then cuts off connections that are still
 * closing. Returns 0. -EBUSY: a connection or listener uses the device. */
RDDP_API int rddp_close_device(struct rddp_device *device);

struct rddp_conn_attr {
    /* Up to 512 octets, 508 with revision 2; Linux siw accepts 256 in all. RDDP_WIRE_ROCE: 56, and 196 to accept. */
    const void *private_data;
    uint16_t private_data_length;
    /* Incoming and outgoing RDMA Reads at once; default and limit is max_rd_atomic. The ORD is lowered to the peer's
     * IRD. */
    uint16_t ird, ord;
    struct rddp_wire_attr wire; /* ignored by rddp_accept(): the listener's is used */
    /* rddp_accept(): where the events of the queue pair go; NULL: where those of the listener go, or went last. Ignored
     * by rddp_connect(), which names it. */
    struct rddp_event_channel *channel;
    /* The peer indicates RDDP_SCTP_DDP: its Writes to stream i go to region sctp_streams[i]; NULL: end the connection.
     * Read during the call only. */
    struct rddp_mr *const *sctp_streams;
    uint32_t sctp_stream_count; /* at most 16 */
    /* rddp_connect(): the address to connect from, of the peer's family. The wildcard address and port 0 leave the
     * choice to the system, as NULL, the default, leaves both. Read during the call only. */
    const struct sockaddr *local;
    /* rddp_connect() over the kernel's TCP, and RoCE: if the peer refuses, try again for this long, within
     * startup_timeout_ms; default 0: the first refusal is UNREACHABLE. For a peer that closes its listener before it
     * opens the next one. */
    uint32_t retry_refused_ms;
    /* RoCE, as in rddp_ib_attr; both default to 7, and more counts as 7. retry_count: both ends of a connection use
     * that of rddp_connect(). rnr_retry_count: how often the peer may try again when it finds no receive here. */
    uint8_t retry_count, rnr_retry_count;
    /* RoCE: how long this end waits for an acknowledgement, as `timeout` of rddp_ib_attr; default 17, 0.5 s. */
    uint8_t ack_timeout;
};

RDDP_API void rddp_conn_attr_init(struct rddp_conn_attr *attr);
RDDP_API void rddp_wire_attr_init(struct rddp_wire_attr *attr);

enum rddp_event_type {
    RDDP_EVENT_CONNECT_REQUEST, /* a peer asks a listener for a connection: accept or reject `request` */
    RDDP_EVENT_ESTABLISHED,     /* requests are sent from here on */
    RDDP_EVENT_REJECTED,        /* the peer's application rejected us; private_data is the peer's */
    RDDP_EVENT_UNREACHABLE,     /* no TCP connection, no association; over RoCE no one listens, or no answer came */
    /* The start-up failed; status is never 0. If the peer closes regularly before its first message, ESTABLISHED and
     * then DISCONNECTED come instead. */
    RDDP_EVENT_CONNECT_ERROR,
    /* The connection is over and all requests are flushed. status is -ECONNRESET also if the peer closed in the
     * middle of a message, or with a Read unanswered; -ETIMEDOUT also if the TCP below gave up a peer that acknowledges
     * nothing. A peer that closes its window and answers probes is not given up (RFC 9293 3.8.6.1): disconnect. */
    RDDP_EVENT_DISCONNECTED,
    RDDP_EVENT_RESOLVED,    /* rddp_resolve() has found its service: `qpn` and `qkey` */
    RDDP_EVENT_USER = 1024, /* this and all greater values are the program's own: see rddp_post_event() */
};

/* An event. It and its `private_data` are valid until rddp_ack_event(). A request outlives its event and must be
 * answered. Messages of RDDP_WIRE_ROCE do not say how long private data are: there are 56 octets in a request, 196 in
 * an acceptance and 148 in a rejection, 180 in a request for datagrams and 136 in its answer, zero behind what the
 * peer gave. */
struct rddp_event {
    enum rddp_event_type type;
    int status;                     /* 0 or a negative errno: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -EPROTO ... */
    struct rddp_qp *qp;             /* set except for CONNECT_REQUEST, and of rddp_resolve() */
    struct rddp_listener *listener; /* CONNECT_REQUEST: perhaps destroyed since */
    struct rddp_request *request;
    void *user; /* of the queue pair, the listener or the resolution */
    const void *private_data;
    uint16_t private_data_length;
    uint16_t ird, ord;                  /* the peer's, from its frame; 0 if it gave none */
    struct rddp_resolution *resolution; /* what rddp_resolve() returned: then the event is of it */
    uint32_t qpn, qkey;                 /* RESOLVED: where datagrams of the service go */
};

RDDP_API struct rddp_event_channel *rddp_create_event_channel(struct rddp_context *context); /* ENOMEM, EMFILE */

/* Frees the channel and drops events that were not taken. Returns 0. -EBUSY: a queue pair or listener uses it, or a
 * request that was not answered and whose listener, now gone, used it. */
RDDP_API int rddp_destroy_event_channel(struct rddp_event_channel *channel);

/* Returns a descriptor that is readable while an event is waiting; use it like rddp_comp_channel_fd(). */
RDDP_API int rddp_event_channel_fd(const struct rddp_event_channel *channel);

/* Takes an event, which the caller returns with rddp_ack_event(). Waits for one unless the descriptor is O_NONBLOCK. No
 * call wakes a thread that waits here: a thread that must be able to end polls this descriptor and another one. Returns
 * 0. -EAGAIN: no event is waiting (O_NONBLOCK); -EINTR: by a signal without SA_RESTART. */
RDDP_API int rddp_get_event(struct rddp_event_channel *channel, struct rddp_event **event);
RDDP_API void rddp_ack_event(struct rddp_event *event);
RDDP_API const char *rddp_event_str(enum rddp_event_type type);

/* Move the events of a queue pair, or of a listener, to another channel: those that wait, in their order, and all that
 * follow. None is lost or comes twice, and after the call none comes on the previous channel. Events that were taken
 * stay taken. Verbs do this with rdma_migrate_id(). Return 0. -EINVAL: a channel of another context, or the queue pair
 * has no channel, because it was not connected or accepted since it was created or reset. */
RDDP_API int rddp_migrate_qp(struct rddp_qp *qp, struct rddp_event_channel *channel);
RDDP_API int rddp_migrate_listener(struct rddp_listener *listener, struct rddp_event_channel *channel);

/* Queues a copy of an event of the program's own, with a copy of its private_data, behind those that wait, so that one
 * thread can take all events from one descriptor. Its type is RDDP_EVENT_USER or above; the other members mean what the
 * program wants. It stays until it is taken or withdrawn, or its channel is destroyed. Returns 0. -EINVAL: another
 * type; -ENOMEM. Not for signal handlers. */
RDDP_API int rddp_post_event(struct rddp_event_channel *channel, const struct rddp_event *event);

/* The same event, but it comes after `delay_ms`, behind those that wait then. Returns 0. -EINVAL: another type;
 * -ENOMEM; or, in a child of fork() that has not used its context yet, what rddp_connect() returns. */
RDDP_API int rddp_post_event_later(struct rddp_event_channel *channel, const struct rddp_event *event,
                                   uint32_t delay_ms);

/* Of the program's own events with this `user`, withdraw those that wait or come later, or move them to another
 * channel, those that wait to its end. Return how many there were. -EINVAL: channels of two contexts. */
RDDP_API int rddp_withdraw_events(struct rddp_event_channel *channel, const void *user);
RDDP_API int rddp_migrate_events(struct rddp_event_channel *from, struct rddp_event_channel *to, const void *user);

/* Listens on `addr` (AF_INET or AF_INET6; port 0 picks a free one). `wire` may be NULL. Events carry `user`. A peer
 * that does not finish its start-up in time is dropped without an event. Over SCTP the port is an SCTP port, and no two
 * listeners may have the same address and sctp_udp_port. Over RoCE it is a port of rdma_cm's TCP port space, which has
 * nothing to do with ports of TCP and UDP; a request from this host or the network finds the process that listens, and
 * one at the wildcard address only if no other does. NULL: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT, EINVAL,
 * ENOMEM, EMFILE; EPROTONOSUPPORT (this build has no such wire, or sctp_provider is not there; the log says why). */
RDDP_API struct rddp_listener *rddp_listen(struct rddp_event_channel *channel, const struct sockaddr *addr,
                                           socklen_t length, int backlog, const struct rddp_wire_attr *wire,
                                           void *user);

/* Like rddp_listen(), on a TCP socket that is already listening: bound to an interface, of another network namespace,
 * or from socket activation. The library owns the socket and closes it even if the call fails. NULL: also EBADF,
 * ENOTSOCK, EINVAL (not a listening TCP socket), EOPNOTSUPP (RDDP_WIRE_SCTP, RDDP_WIRE_ROCE). */
RDDP_API struct rddp_listener *rddp_listen_fd(struct rddp_event_channel *channel, int fd,
                                              const struct rddp_wire_attr *wire, void *user);

/* Frees the listener and withdraws its events that were not taken: their requests are rejected. Requests whose event
 * was taken outlive it and must still be answered. Returns 0. */
RDDP_API int rddp_destroy_listener(struct rddp_listener *listener);

/* Stores the address that the listener is bound to, with the port that was picked. Returns 0. */
RDDP_API int rddp_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr);

/* Starts to connect; an event on `channel` reports the result. `attr` may be NULL. -EINVAL: the queue pair was used or
 * is in error and was not reset since, a channel of another context, private data too long, or bad wire attributes;
 * -ENOMEM; -EMFILE; -EAGAIN (no random number available); -EPROTONOSUPPORT (this build has no such wire, or
 * sctp_provider is not there; the log says why); -ENODEV (the device was removed); or an error that the system returns
 * for an address at once (-ENETUNREACH, -EAFNOSUPPORT). With attr->local also, as bind(2) and connect(2) have it:
 * -EADDRNOTAVAIL (not an address of this host or of the device, or there is such a connection already), -EADDRINUSE (a
 * listener has that port), -EACCES (a privileged port). The queue pair is unchanged then. One of type RDDP_QPT_RC is in
 * RESET or INIT, and the wire is RDDP_WIRE_ROCE: -EINVAL otherwise, and -ENODEV if its sockets belong to the parent of
 * this process. It cannot be connected to the same host again for 10 s: that refuses the number as stale. */
RDDP_API int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr,
                          socklen_t length, const struct rddp_conn_attr *attr);

/* Like rddp_connect(), over a TCP socket that is already connected to a peer that expects a start-up. The library owns
 * the socket and closes it even if the call fails. Also -EBADF, -ENOTSOCK, -ENOTCONN, -EINVAL (not a connected TCP
 * socket), -EOPNOTSUPP (RDDP_WIRE_SCTP, RDDP_WIRE_ROCE). */
RDDP_API int rddp_connect_fd(struct rddp_qp *qp, struct rddp_event_channel *channel, int fd,
                             const struct rddp_conn_attr *attr);

/* Accepts a request and frees it, whatever the result. `qp` is then connecting; its events come on attr->channel or the
 * listener's. -EINVAL: the queue pair was used or is in error, a channel of another context, the private data are too
 * long, or it is a request for datagrams; -ECONNABORTED: the peer has given up; -ENOMEM; -EAGAIN (no random number
 * available). A queue pair of type RDDP_QPT_RC as in rddp_connect(); -EXDEV: in a context with several loops it has
 * another one than the listener. After an error the queue pair is unchanged and can be used for another request; the
 * peer is rejected. */
RDDP_API int rddp_accept(struct rddp_request *request, struct rddp_qp *qp, const struct rddp_conn_attr *attr);

/* Rejects a request with up to 512 octets of private data (508 to a request of revision 2, 148 over RoCE, 136 of one
 * for datagrams) and frees it, whatever the result. Returns 0. -EINVAL: the private data are too long; the connection
 * is then closed without a reply. */
RDDP_API int rddp_reject(struct rddp_request *request, const void *private_data, uint16_t private_data_length);

/* Stores the requester's address. Returns 0. */
RDDP_API int rddp_request_addr(const struct rddp_request *request, struct sockaddr_storage *peer);

/* Stores the local address that the request arrived at. Returns 0. */
RDDP_API int rddp_request_local_addr(const struct rddp_request *request, struct sockaddr_storage *local);

/* Closes gracefully: requests already posted are still sent and Reads received before are answered; then the stream
 * ends and receives are flushed. DISCONNECTED follows, at the latest when no octet was sent for close_timeout_ms, and
 * in any case after 60 times close_timeout_ms. Returns 0, also if the connection is ending or over already: the peer
 * may have been faster. -ENOTCONN: no connection of the queue pair was established since it was created or reset. */
RDDP_API int rddp_disconnect(struct rddp_qp *qp);

/* In RDDP_QP_CLOSED and RDDP_QP_ERROR every request that is posted is flushed. rddp_reset_qp() returns to
 * RDDP_QP_IDLE. */
enum rddp_qp_state {
    RDDP_QP_IDLE,
    RDDP_QP_CONNECTING,
    RDDP_QP_CONNECTED,
    RDDP_QP_CLOSING, /* after rddp_disconnect(): posted requests are still sent */
    RDDP_QP_CLOSED,  /* the connection ended regularly: one side closed it */
    RDDP_QP_ERROR,   /* the connection failed or was never established: see `fault` */
};

/* The state of a queue pair, and what its connection agreed on. */
struct rddp_qp_info {
    enum rddp_qp_state state;
    enum rddp_wire wire;
    uint8_t mpa_revision;
    bool crc, tx_markers, rx_markers;
    bool own_tcp; /* the TCP is the library's own: the connection is behind a device, or was handed off to one */
    uint16_t ird, ord;
    uint32_t emss;                 /* octets: the link's current segment size, which limits the largest FPDU */
    uint64_t tx_octets, rx_octets; /* payload */
    /* Octets placed before something in front of them had arrived; this and the next two are 0 over the kernel's TCP.
     */
    uint64_t placed_early;
    uint64_t kept_max;   /* the most octets that ever waited for their turn */
    uint64_t sent_again; /* segments that were retransmitted */
    /* Octets of control data of the peer's RDMA Writes and Reads that were dropped: see rdma_control. */
    uint64_t control_dropped;
    bool waits_for_receive; /* a message of the peer waits until a receive is posted: see wait_for_receive_ms */
    uint32_t fault;         /* why the state is RDDP_QP_ERROR: for rddp_fault_str() */
    uint32_t terminate;     /* the peer's Terminate code, 0xLTCC (layer, type, code), or 0 */
    struct sockaddr_storage local, peer;
    struct rddp_ib_counters ib;                    /* RDDP_WIRE_ROCE */
    enum rddp_sctp_adaptation sctp_own, sctp_peer; /* in force each way; both RDDP_SCTP_NONE if the peer sent none */
};

RDDP_API int rddp_query_qp(struct rddp_qp *qp, struct rddp_qp_info *info); /* returns 0 */

#ifdef __cplusplus
}
#endif
#endif
