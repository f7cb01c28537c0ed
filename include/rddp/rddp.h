/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/rddp.h - remote direct data placement over plain IP, in user space: verbs' objects and words, no device needed.
 *
 * Conventions. A call returns 0 (or a count) or a negative errno; a call that makes an object returns it, or NULL and
 * sets errno. Any thread may make any call at any time, but must not use an object while or after it is destroyed. A
 * destroy call fails with -EBUSY and does nothing while something still uses the object. The library reads structures
 * passed in during the call only. Lengths are in octets, times in milliseconds. No call waits for the network unless it
 * says so.
 *
 * A thread of the context makes progress, so one-sided operations need no call by their target; an application that
 * polls a CQ does the same work itself while it polls. The library never runs application code, neither by signals nor
 * by callbacks, except the log function.
 *
 * pthread_cancel() takes no lock with a thread: posts, and whatever works for a connection, cannot be interrupted by
 * it. rddp_poll_cq() that finds nothing, rddp_get_event() and rddp_get_cq_event() that wait are cancellation points. A
 * thread cancelled in a call that makes or destroys an object may leave that object behind. Asynchronous cancellation
 * is not supported.
 *
 * A child of fork() inherits all objects; neither its parent nor a peer notices what it does with them. Its destroy
 * calls free its memory and its copies of the descriptors. Connections, listeners and devices stay with the parent: in
 * the child a queue pair that was connected is in the error state with its requests flushed, an event reports
 * -ECONNABORTED (DISCONNECTED or CONNECT_ERROR), requests can no longer be accepted, and a listener or device can only
 * be destroyed (-ENODEV). Everything else can be used. The first call in the child that connects, listens, waits, or
 * asks for an event or a descriptor makes descriptors and threads of the child's own; it may fail with -ENOMEM, -EMFILE
 * or -EAGAIN and can then be repeated. Descriptors that the application knows keep their numbers. Objects that another
 * thread was making or destroying at that moment may be left over in the child. fork() waits until running turns are
 * over. After a fork() from the log function, or from a signal handler that interrupted a call, every call of the child
 * that uses the interrupted context fails with -EDEADLK. Do not use a context in a child of vfork(). */
#ifndef RDDP_RDDP_H
#define RDDP_RDDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rddp/wire.h>
#include <rddp/wr.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDDP_API __attribute__((visibility("default")))

struct rddp_context;       /* everything below lives in one */
struct rddp_pd;            /* protection domain: a queue pair reaches only the regions of its own */
struct rddp_mr;            /* registered memory region */
struct rddp_comp_channel;  /* a descriptor that signals completions */
struct rddp_cq;            /* completion queue */
struct rddp_srq;           /* receive queue shared by queue pairs */
struct rddp_qp;            /* queue pair: one endpoint of one connection */
struct rddp_event_channel; /* a descriptor that signals connection events */
struct rddp_listener;      /* a listening address */
struct rddp_device;        /* a TCP of the library's own behind a TUN device */
struct rddp_request;       /* a peer's connection request, to be accepted or rejected */

/* --- context ------------------------------------------------------------------------------------------------- */

enum rddp_log_level { RDDP_LOG_NONE, RDDP_LOG_ERROR, RDDP_LOG_WARN, RDDP_LOG_INFO, RDDP_LOG_DEBUG };

struct rddp_context_attr {
    enum rddp_log_level log_level; /* default RDDP_LOG_WARN, or $RDDP_LOG: none, error, warn, info, debug */
    void (*log)(void *user, enum rddp_log_level level,
                const char *line); /* default: a line on stderr. Must not call rddp. */
    void *log_user;
    /* Event loops, each with a thread, that share the connections: default 1, at most 64; 0: one per processor. Must
     * be 0 or 1 with manual_progress. */
    uint32_t loops;
    bool manual_progress; /* no thread: work is done in rddp_progress() and rddp_poll_cq() only */
};

/* Sets the defaults. Call it before setting members, so that members added later have valid values. */
RDDP_API void rddp_context_attr_init(struct rddp_context_attr *attr);

/* Opens a context, which the caller closes with rddp_close(). `attr` may be NULL. On failure returns NULL with errno
 * EINVAL (`loops` above 64, or above 1 with manual_progress), ENOMEM, EMFILE, or EAGAIN (no thread or random number
 * available). */
RDDP_API struct rddp_context *rddp_open(const struct rddp_context_attr *attr);

/* Frees the context and returns 0. Waits for connections that are still closing, each at most its close_timeout_ms.
 * -EBUSY: a PD, CQ or channel still exists; nothing has changed. */
RDDP_API int rddp_close(struct rddp_context *context);

/* Does the work that is due. If there is none, waits up to `timeout_ms` milliseconds for some (0: does not wait, -1: no
 * limit). A signal ends the wait early. Returns 0. */
RDDP_API int rddp_progress(struct rddp_context *context, int timeout_ms);

/* Returns a descriptor for poll, select or epoll that is readable (level-triggered) while rddp_progress() has work to
 * do: a socket is ready or a time limit has passed. Completions that were not polled do not make it readable. The
 * context owns the descriptor: do nothing else with it. Use it with manual_progress only; otherwise the thread takes
 * the work first. */
RDDP_API int rddp_progress_fd(const struct rddp_context *context);

/* --- memory -------------------------------------------------------------------------------------------------- */

RDDP_API struct rddp_pd *rddp_alloc_pd(struct rddp_context *context); /* NULL: ENOMEM */
RDDP_API int rddp_dealloc_pd(struct rddp_pd *pd);                     /* -EBUSY: a region, SRQ or queue pair uses it */

/* Registers `length` octets at `addr` (`access`: enum rddp_access). The memory stays the caller's, must stay mapped
 * until rddp_dereg_mr(), and may be changed by peers that know the key if `access` says so. Nothing is pinned; of
 * memory that may be written the first and the last page become present. EINVAL: unknown or contradictory access (a
 * remote write or atomic without local write, or with a promise that it is stable; a promise with a warning that it is
 * volatile; RDDP_ACCESS_ONE_SHOT), addr + length wraps, NULL with a length; EFAULT: some of it is not mapped, or its
 * first or last page cannot be written though `access` says so (not asked of volatile memory); ENOMEM. */
RDDP_API struct rddp_mr *rddp_reg_mr(struct rddp_pd *pd, void *addr, size_t length, unsigned access);

/* Registers `length` octets at `addr`, a part of the region `parent`, under a key of its own, as verbs' memory windows
 * (type 2) and libfabric's base_mr do. The part has no right that the parent does not have. Peers and requests use it
 * like any region; it is invalidated and deregistered on its own, and becomes useless when its parent is invalidated.
 * RDDP_ACCESS_ZERO_BASED may differ from the parent's; RDDP_ACCESS_STABLE and _VOLATILE are the parent's. With
 * RDDP_ACCESS_ONE_SHOT the key dies when the Read whose sink it is has completed: what the peer was told then leads
 * nowhere, and never led beyond these octets (RFC 5040 8.1.1). Whether the memory is mapped is not checked. EINVAL: not
 * inside the parent, more rights than it has, unknown access, or the parent is invalid or a part itself; ENOMEM. */
RDDP_API struct rddp_mr *rddp_reg_sub_mr(struct rddp_mr *parent, void *addr, size_t length, unsigned access);

/* Deregisters a region and frees it. Returns 0: the key is invalid and nothing accesses the memory any more. Data
 * already cut into segments are still sent, from a copy made now. -EBUSY: a part of the region is registered; nothing
 * has changed. */
RDDP_API int rddp_dereg_mr(struct rddp_mr *mr);

/* The local and the remote key are the same number: 32 unguessable bits, new for every registration (RFC 5040 8.1). */
RDDP_API uint32_t rddp_mr_key(const struct rddp_mr *mr);

/* Returns the remote address of `local`, a pointer into the region: the address itself, or its distance from the start
 * of a zero-based region. */
RDDP_API uint64_t rddp_mr_offset(const struct rddp_mr *mr, const void *local);

/* Returns false once the region or its parent was invalidated by a peer's Send with Invalidate or by a LOCAL_INV
 * request, or once the one Read of RDDP_ACCESS_ONE_SHOT has completed. The region must still be deregistered. Wait for
 * the completion of that Send or request before using the memory for something else: until then a connection may still
 * be placing data there or answering a Read or an atomic from it. That completion, and those behind it in its queue,
 * are delayed until then. */
RDDP_API bool rddp_mr_is_valid(const struct rddp_mr *mr);

/* --- completion ---------------------------------------------------------------------------------------------- */

/* Makes a completion channel. NULL: ENOMEM, EMFILE. */
RDDP_API struct rddp_comp_channel *rddp_create_comp_channel(struct rddp_context *context);
RDDP_API int rddp_destroy_comp_channel(struct rddp_comp_channel *channel); /* -EBUSY: a CQ uses it */

/* Returns a descriptor that is readable while an event is waiting. Use it with poll, select, epoll and
 * fcntl(O_NONBLOCK) only. */
RDDP_API int rddp_comp_channel_fd(const struct rddp_comp_channel *channel);

/* Takes an event and stores its CQ and, unless `user` is NULL, the CQ's user pointer. Waits for an event unless the
 * descriptor is O_NONBLOCK. Returns 0. -EAGAIN: no event is waiting (O_NONBLOCK); -EINTR: interrupted by a signal. */
RDDP_API int rddp_get_cq_event(struct rddp_comp_channel *channel, struct rddp_cq **cq, void **user);

/* Makes a CQ for up to `cqe` completions (1 to 1048576). A CQ as large as all the queues it serves never overflows,
 * because a request keeps its place in its queue until its completion is polled. `channel` NULL: polling only. NULL:
 * EINVAL (`cqe` out of range, or a channel of another context), ENOMEM. */
RDDP_API struct rddp_cq *rddp_create_cq(struct rddp_context *context, int cqe, void *user,
                                        struct rddp_comp_channel *channel);
RDDP_API int rddp_destroy_cq(struct rddp_cq *cq); /* -EBUSY: a queue pair uses it */

/* Takes up to `n` completions, oldest first, and stores them in `wc`. Returns their number; 0: there are none now.
 * -EINVAL: `n` is negative; -EOVERFLOW: the CQ was full once, completions are lost, and its queue pairs are in the
 * error state. */
RDDP_API int rddp_poll_cq(struct rddp_cq *cq, int n, struct rddp_wc *wc);

/* Arms the CQ: the next completion raises one event. With `solicited_only` it must be that of a solicited Send or one
 * with an error. Completions already in the CQ raise none: poll once more after arming. -EINVAL: the CQ has no
 * channel. */
RDDP_API int rddp_req_notify_cq(struct rddp_cq *cq, bool solicited_only);

RDDP_API const char *rddp_wc_status_str(enum rddp_wc_status status);
RDDP_API const char *rddp_fault_str(uint32_t vendor_err); /* a sentence that cites the document; never NULL */

/* --- queues -------------------------------------------------------------------------------------------------- */

/* Makes a shared receive queue for `max_wr` receives (1 to 16384) of up to `max_sge` entries each (1 to 16). NULL:
 * EINVAL (out of range), ENOMEM. */
RDDP_API struct rddp_srq *rddp_create_srq(struct rddp_pd *pd, uint32_t max_wr, uint32_t max_sge);
RDDP_API int rddp_destroy_srq(struct rddp_srq *srq); /* -EBUSY: a queue pair uses it. Posted receives are dropped. */

struct rddp_qp_attr {
    struct rddp_cq *send_cq, *recv_cq;
    struct rddp_srq *srq;     /* NULL: the queue pair has its own receive queue */
    uint32_t max_send_wr;     /* default 128, at most 16384 */
    uint32_t max_recv_wr;     /* default 128 */
    uint32_t max_send_sge;    /* default 4, at most 16 */
    uint32_t max_recv_sge;    /* default 4 */
    uint32_t max_inline_data; /* default 64, at most 1024 */
    uint32_t max_rd_atomic; /* RDMA Reads and atomics that may be pending in each direction: default 16, at most 128 */
    bool sq_sig_all;        /* every request is signalled */
    /* RDDP_WIRE_RDMATCP: receive Sends before others that were sent earlier, where their sender allows it
     * (RDDP_SEND_ORDER). */
    bool out_of_order_sends;
    /* RDDP_WIRE_RDMATCP: control data of the peer's RDMA Writes and Reads take a receive
     * (RDDP_WC_RECV_RDMA_WITH_IMM, _READ). Otherwise they are dropped and counted. */
    bool rdma_control;
    void *user;
};

RDDP_API void rddp_qp_attr_init(struct rddp_qp_attr *attr);

/* Makes a queue pair that is not connected: receives can be posted, sends cannot. NULL: EINVAL (an attribute is out of
 * range, or a CQ or the SRQ is missing or belongs to another context), ENOMEM. */
RDDP_API struct rddp_qp *rddp_create_qp(struct rddp_pd *pd, const struct rddp_qp_attr *attr);

/* Cuts off the connection, if any, and frees the queue pair and its completions and events that were not taken. Returns
 * 0. */
RDDP_API int rddp_destroy_qp(struct rddp_qp *qp);

/* Puts a queue pair back into the state in which it was created, from any state and with the same number: receives can
 * be posted, and it can be connected or accepted again. Its connection, if any, is cut off and ends in the background.
 * Posted requests vanish without a completion, as do completions and events that were not taken; counters start at 0.
 * As with rddp_destroy_qp(), no other thread may be using the queue pair; its CQs and SRQ may be in use. Verbs do this
 * with ibv_modify_qp() to RESET. Returns 0. */
RDDP_API int rddp_reset_qp(struct rddp_qp *qp);

/* Moves a queue pair to RDDP_QP_ERROR, from any state but RDDP_QP_CLOSED, which stays. All requests, those posted and
 * those to be posted, complete with RDDP_WC_WR_FLUSH_ERR. Its connection ends without a Terminate, since there is no
 * fault of the peer to report (RFC 5040 6.2): segments already cut still leave, then the stream ends. If it was
 * connected or connecting, DISCONNECTED or CONNECT_ERROR follows with -ECONNABORTED. Other threads may be posting and
 * polling. Verbs do this with ibv_modify_qp() to ERR. Returns 0. */
RDDP_API int rddp_fail_qp(struct rddp_qp *qp);
RDDP_API uint32_t rddp_qp_num(const struct rddp_qp *qp);
RDDP_API void *rddp_qp_user(const struct rddp_qp *qp);

/* Posts a list of requests. They stay together: requests that another thread posts to the same queue come before or
 * after all of them. The first may be sent before the last is posted. Returns 0, or an error with *bad_wr the first
 * request that was not posted; those before it were.
 *
 * -ENOMEM: the queue is full.
 * -EOPNOTSUPP: the wire or the adaptation of the connection has no such message: immediate data in a Send with octets,
 * an atomic outside RDDP_WIRE_IWARP, immediate data or a Send with Invalidate over RDDP_WIRE_RDMATCP, or what enum
 * rddp_sctp_adaptation excludes.
 * -EINVAL: the queue pair is not connected; unknown opcode or flags; num_sge negative or above max_send_sge; a message
 * of 4 GiB or more; inline data above max_inline_data; a Read that is inline or has more than one sge; an atomic that
 * is inline or whose sges are not one of eight octets; RDDP_SEND_MASKED without an atomic. RDDP_WIRE_RDMATCP: a
 * control_length above 1020 or not a multiple of 4, remote addresses of 4 GiB or more. Other wires: RDDP_SEND_ORDER or
 * control data. RDDP_WIRE_SCTP without negotiation: a Send that does not fit into one chunk.
 *
 * A bad lkey or bad bounds are reported by the completion. In the error state requests are accepted and complete with
 * RDDP_WC_WR_FLUSH_ERR.
 *
 * The success of a Send or a Write means only that its memory may be reused: over iWARP the peer acknowledges neither.
 * A Write with a bad rkey succeeds, and then the peer's Terminate ends the connection. The success of a Read means that
 * its data have arrived. Only atomics are atomic: a Read of memory that its owner is writing may return old and new
 * octets mixed, and a reader may see part of a Write until it has received a later message of the writer. A request
 * that is not signalled frees its place in the queue once it and all before it have succeeded; no poll is needed for
 * that. */
RDDP_API int rddp_post_send(struct rddp_qp *qp, struct rddp_send_wr *wr, struct rddp_send_wr **bad_wr);

/* Posts a list of receives, also before the queue pair is connected. Receives that another thread posts to the same
 * queue may come between those of the list. A Send that finds no receive, here or in the SRQ, ends its connection: the
 * peer gets a Terminate. Returns 0, or an error with *bad_wr the first receive that was not posted. -ENOMEM: the queue
 * is full; -EINVAL: num_sge negative or above the queue's limit, 4 GiB or more in all, or rddp_post_recv() with an
 * SRQ. */
RDDP_API int rddp_post_recv(struct rddp_qp *qp, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr);
RDDP_API int rddp_post_srq_recv(struct rddp_srq *srq, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr);

/* --- connections --------------------------------------------------------------------------------------------- */

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
    uint32_t window; /* octets of a connection that may wait for their turn: 4096 to 1 GiB, default 1 MiB */
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
 * device); EBUSY (another program uses it); ENOENT (no TUN driver); ENOMEM; EMFILE; EAGAIN (no random number
 * available). */
RDDP_API struct rddp_device *rddp_open_device(struct rddp_context *context, const struct rddp_device_attr *attr);

/* Waits up to two seconds until the peers have acknowledged what was sent, then cuts off connections that are still
 * closing. Returns 0. -EBUSY: a connection or listener uses the device. */
RDDP_API int rddp_close_device(struct rddp_device *device);

struct rddp_conn_attr {
    const void *private_data; /* up to 512 octets, 508 with revision 2; Linux siw accepts 256 in all */
    uint16_t private_data_length;
    /* Incoming and outgoing RDMA Reads at once; default and limit is max_rd_atomic. The ORD is lowered to the peer's
     * IRD. */
    uint16_t ird, ord;
    struct rddp_wire_attr wire; /* ignored by rddp_accept(): the listener's is used */
    /* The peer indicates RDDP_SCTP_DDP: its Writes to stream i go to region sctp_streams[i]; NULL: end the connection.
     * Read during the call only. */
    struct rddp_mr *const *sctp_streams;
    uint32_t sctp_stream_count; /* at most 16 */
};

RDDP_API void rddp_conn_attr_init(struct rddp_conn_attr *attr);
RDDP_API void rddp_wire_attr_init(struct rddp_wire_attr *attr);

enum rddp_event_type {
    RDDP_EVENT_CONNECT_REQUEST, /* a peer asks a listener for a connection: accept or reject `request` */
    RDDP_EVENT_ESTABLISHED,     /* sends may be posted */
    RDDP_EVENT_REJECTED,        /* the peer's application rejected us; private_data is the peer's */
    RDDP_EVENT_UNREACHABLE,     /* no TCP connection, no association */
    RDDP_EVENT_CONNECT_ERROR,   /* the start-up failed */
    /* The connection is over and all requests are flushed. status is -ECONNRESET also if the peer closed in the
     * middle of a message, or with a Read unanswered; -ETIMEDOUT also if the TCP below gave up a peer that acknowledges
     * nothing. A peer that closes its window and answers probes is not given up (RFC 9293 3.8.6.1): disconnect. */
    RDDP_EVENT_DISCONNECTED,
};

/* An event. It and its `private_data` are valid until rddp_ack_event(). A request outlives its event and must be
 * answered. */
struct rddp_event {
    enum rddp_event_type type;
    int status;                     /* 0 or a negative errno: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -EPROTO ... */
    struct rddp_qp *qp;             /* set except for CONNECT_REQUEST */
    struct rddp_listener *listener; /* CONNECT_REQUEST */
    struct rddp_request *request;
    void *user; /* of the queue pair or of the listener */
    const void *private_data;
    uint16_t private_data_length;
    uint16_t ird, ord; /* the peer's, from its frame; 0 if it gave none */
};

RDDP_API struct rddp_event_channel *rddp_create_event_channel(struct rddp_context *context); /* ENOMEM, EMFILE */

/* Frees the channel and drops events that were not taken. Returns 0. -EBUSY: a queue pair or listener uses it. */
RDDP_API int rddp_destroy_event_channel(struct rddp_event_channel *channel);

/* Returns a descriptor that is readable while an event is waiting; use it like rddp_comp_channel_fd(). */
RDDP_API int rddp_event_channel_fd(const struct rddp_event_channel *channel);

/* Takes an event, which the caller returns with rddp_ack_event(). Waits for one unless the descriptor is O_NONBLOCK. No
 * call wakes a thread that waits here: a thread that must be able to end polls this descriptor and another one. Returns
 * 0. -EAGAIN: no event is waiting (O_NONBLOCK); -EINTR: interrupted by a signal. */
RDDP_API int rddp_get_event(struct rddp_event_channel *channel, struct rddp_event **event);
RDDP_API void rddp_ack_event(struct rddp_event *event);
RDDP_API const char *rddp_event_str(enum rddp_event_type type);

/* Listens on `addr` (AF_INET or AF_INET6; port 0 picks a free one). `wire` may be NULL. Events carry `user`. A peer
 * that does not finish its start-up in time is dropped without an event. Over SCTP the port is an SCTP port, and no two
 * listeners may have the same address and sctp_udp_port. NULL: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT, EINVAL,
 * ENOMEM, EMFILE; EPROTONOSUPPORT (RDDP_WIRE_SCTP: sctp_provider is not available; the log says why). */
RDDP_API struct rddp_listener *rddp_listen(struct rddp_event_channel *channel, const struct sockaddr *addr,
                                           socklen_t length, int backlog, const struct rddp_wire_attr *wire,
                                           void *user);

/* Like rddp_listen(), on a TCP socket that is already listening: bound to an interface, of another network namespace,
 * or from socket activation. The library owns the socket and closes it even if the call fails. NULL: also EBADF,
 * ENOTSOCK, EINVAL (not a listening TCP socket), EOPNOTSUPP (RDDP_WIRE_SCTP). */
RDDP_API struct rddp_listener *rddp_listen_fd(struct rddp_event_channel *channel, int fd,
                                              const struct rddp_wire_attr *wire, void *user);

/* Frees the listener and rejects its requests that were not answered. Returns 0. */
RDDP_API int rddp_destroy_listener(struct rddp_listener *listener);

/* Stores the address that the listener is bound to, with the port that was picked. Returns 0. */
RDDP_API int rddp_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr);

/* Starts to connect; an event on `channel` reports the result. `attr` may be NULL. -EINVAL: the queue pair was used or
 * is in error and was not reset since, a channel of another context, private data too long, or bad wire attributes;
 * -ENOMEM; -EMFILE; -EAGAIN (no random number available); -EPROTONOSUPPORT (RDDP_WIRE_SCTP: sctp_provider is not
 * available; the log says why); -ENODEV (the device was removed); or an error that the system returns for the address
 * at once (-ENETUNREACH, -EAFNOSUPPORT). */
RDDP_API int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr,
                          socklen_t length, const struct rddp_conn_attr *attr);

/* Like rddp_connect(), over a TCP socket that is already connected to a peer that expects a start-up. The library owns
 * the socket and closes it even if the call fails. Also -EBADF, -ENOTSOCK, -ENOTCONN, -EINVAL (not a connected TCP
 * socket), -EOPNOTSUPP (RDDP_WIRE_SCTP). */
RDDP_API int rddp_connect_fd(struct rddp_qp *qp, struct rddp_event_channel *channel, int fd,
                             const struct rddp_conn_attr *attr);

/* Accepts a request and frees it, whatever the result. `qp` is then connecting; its events come on the listener's
 * channel. -EINVAL: the queue pair was used or is in error, or the private data are too long; -ECONNABORTED: the peer
 * has given up; -ENOMEM; -EAGAIN (no random number available). After an error the queue pair is unchanged and can be
 * used for another request; the peer is rejected. */
RDDP_API int rddp_accept(struct rddp_request *request, struct rddp_qp *qp, const struct rddp_conn_attr *attr);

/* Rejects a request with up to 512 octets of private data (508 to a request of revision 2) and frees it, whatever the
 * result. Returns 0. -EINVAL: the private data are too long; the connection is then closed without a reply. */
RDDP_API int rddp_reject(struct rddp_request *request, const void *private_data, uint16_t private_data_length);

/* Stores the requester's address. Returns 0. */
RDDP_API int rddp_request_addr(const struct rddp_request *request, struct sockaddr_storage *peer);

/* Stores the local address that the request arrived at. Returns 0. */
RDDP_API int rddp_request_local_addr(const struct rddp_request *request, struct sockaddr_storage *local);

/* Closes gracefully: requests already posted are still sent and Reads received before are answered; then the stream
 * ends and receives are flushed. DISCONNECTED follows, at the latest when no octet was sent for close_timeout_ms, and
 * in any case after 60 times close_timeout_ms. Returns 0. -ENOTCONN: the queue pair is not connected. */
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
    uint32_t fault;     /* why the state is RDDP_QP_ERROR: for rddp_fault_str() */
    uint32_t terminate; /* the peer's Terminate code, 0xLTCC (layer, type, code), or 0 */
    struct sockaddr_storage local, peer;
    enum rddp_sctp_adaptation sctp_own, sctp_peer; /* in force each way; both RDDP_SCTP_NONE if the peer sent none */
};

RDDP_API int rddp_query_qp(struct rddp_qp *qp, struct rddp_qp_info *info); /* returns 0 */

#ifdef __cplusplus
}
#endif
#endif
