/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/rddp.h - remote direct data placement over plain IP, in user space: the objects and names of verbs, without a
 * device.
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
 * A thread that pthread_cancel() ends holds no lock: posts, and the work for connections, cannot be interrupted by
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

#include <rddp/async.h>
#include <rddp/cm.h>
#include <rddp/ib.h>
#include <rddp/wire.h>
#include <rddp/wr.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDDP_API __attribute__((visibility("default")))

struct rddp_context;       /* everything below lives in one */
struct rddp_pd;            /* protection domain: a queue pair reaches only the regions of its own */
struct rddp_mr;            /* registered memory region */
struct rddp_mw;            /* memory window: a remote key that requests bind to parts of regions */
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
    /* After each arrival a thread looks for the next one for this long before it sleeps: microseconds, at most 1000000;
     * default 0. The next message then costs no wake-up. For an application that polls its memory or sleeps, on a
     * machine with a free processor for each thread. A thread that looks in vain several times stops for a while. */
    uint32_t spin_us;
};

/* Sets the defaults. Call it before setting members, so that members added later have valid values. */
RDDP_API void rddp_context_attr_init(struct rddp_context_attr *attr);

/* Opens a context, which the caller closes with rddp_close(). `attr` may be NULL. On failure returns NULL with errno
 * EINVAL (`loops` above 64, or above 1 with manual_progress; spin_us above 1000000), ENOMEM, EMFILE, or EAGAIN (no
 * thread or random number available). */
RDDP_API struct rddp_context *rddp_open(const struct rddp_context_attr *attr);

/* Frees the context and returns 0. Waits for connections that are still closing, each at most its close_timeout_ms.
 * -EBUSY: a PD, CQ or channel still exists; nothing has changed. */
RDDP_API int rddp_close(struct rddp_context *context);

/* Waits until everything that is due has been sent, whatever objects exist: requests that were posted are complete, the
 * peers' Reads are answered, the first message of each connection has left (see first_delay_ms), and connections that
 * were closing are closed. Nothing is disconnected or destroyed. A process that exits afterwards loses nothing, because
 * the kernel delivers what its TCP sockets hold. With a device or SCTP in user space disconnect first, since only
 * connections that close wait for the peer's acknowledgements. Returns 0. -ETIMEDOUT: `timeout_ms` milliseconds (-1: no
 * limit) did not suffice, for example because a peer does not read. */
RDDP_API int rddp_drain(struct rddp_context *context, int timeout_ms);

/* Does the work that is due. If there is none, waits up to `timeout_ms` milliseconds for some (0: does not wait, -1: no
 * limit). A signal ends the wait early. Returns 0. */
RDDP_API int rddp_progress(struct rddp_context *context, int timeout_ms);

/* Returns a descriptor for poll, select or epoll that is readable (level-triggered) while rddp_progress() has work to
 * do: a socket is ready or a time limit has passed. Completions that were not polled do not make it readable: poll
 * until the CQ is empty before you sleep, and several CQs until all were empty in turn, since polling one may do work
 * that completes in another. So may another thread's poll: one thread alone polls and sleeps, or the others wake it.
 * The context owns the descriptor: do nothing else with it. Use it with manual_progress only; otherwise the thread
 * takes the work first. */
RDDP_API int rddp_progress_fd(const struct rddp_context *context);

/* --- memory -------------------------------------------------------------------------------------------------- */

RDDP_API struct rddp_pd *rddp_alloc_pd(struct rddp_context *context); /* NULL: ENOMEM */
RDDP_API int rddp_dealloc_pd(struct rddp_pd *pd); /* -EBUSY: a region, window, SRQ or queue pair uses it */

/* Registers `length` octets at `addr` (`access`: enum rddp_access). The memory stays the caller's, must stay mapped
 * until rddp_dereg_mr(), and may be changed by peers that know the key if `access` says so. Nothing is pinned; the
 * first and the last page become present, except of volatile memory. EINVAL: unknown or contradictory access (a remote
 * write or atomic without local write, or with RDDP_ACCESS_STABLE; RDDP_ACCESS_STABLE with RDDP_ACCESS_VOLATILE;
 * RDDP_ACCESS_ONE_SHOT), addr + length wraps, NULL with a length; EFAULT: some of it is not mapped, or its
 * first or last page cannot be read, or written if `access` says so (volatile memory need only be mapped); ENOMEM.
 *
 * With RDDP_ACCESS_ON_DEMAND the memory need not be there and is not looked at: see enum rddp_access. NULL may have a
 * length, and NULL with SIZE_MAX are all addresses of the process, with these rights for all that know the key. EINVAL:
 * also with RDDP_ACCESS_STABLE or _VOLATILE; EOPNOTSUPP: the kernel does not let the process call process_vm_readv()
 * and process_vm_writev() for itself (a filter of system calls, such as a container's). */
RDDP_API struct rddp_mr *rddp_reg_mr(struct rddp_pd *pd, void *addr, size_t length, unsigned access);

/* Like rddp_reg_mr(), but remote addresses, and rddp_sge.addr here, begin at `iova` instead of `addr`. EINVAL: also
 * iova + length wraps, or RDDP_ACCESS_ZERO_BASED; EFAULT; EOPNOTSUPP; ENOMEM. */
RDDP_API struct rddp_mr *rddp_reg_mr_iova(struct rddp_pd *pd, void *addr, size_t length, uint64_t iova,
                                          unsigned access);

/* Makes a null region: what requests of the domain read from it is 0, and what they place there is discarded. Every
 * address is in it. Peers cannot use its key, and it cannot be changed, or have parts or windows. The first one of a
 * process takes 8 GiB of address space. NULL: ENOMEM. */
RDDP_API struct rddp_mr *rddp_alloc_null_mr(struct rddp_pd *pd);

/* Values are those of enum ibv_rereg_mr_flags. */
enum rddp_rereg_mr_changes {
    RDDP_REREG_MR_CHANGE_TRANSLATION = 1 << 0, /* to `length` octets at `addr` */
    RDDP_REREG_MR_CHANGE_PD = 1 << 1,          /* to `pd` */
    RDDP_REREG_MR_CHANGE_ACCESS = 1 << 2,      /* to `access` */
};

/* Changes those properties of a region that `changes` names; the other arguments are not used. The region is as
 * rddp_reg_mr() would make it, but keeps an iova until the memory changes. It also keeps its key, unless the memory or
 * RDDP_ACCESS_ZERO_BASED changes, or it was invalidated: then it gets a new one, and is valid. Returns 0: nothing
 * accesses the memory as it was allowed before, or by the old key, any more. -EINVAL: what
 * rddp_reg_mr() refuses, no or unknown changes, a domain of another context, a part of a region, or a null region;
 * -EFAULT; -EOPNOTSUPP; -ENOMEM; -EBUSY: a part of the region is registered, or a window is bound to it. After an error
 * nothing has changed. No other thread may use the object meanwhile, but its key may be in use. */
RDDP_API int rddp_rereg_mr(struct rddp_mr *mr, unsigned changes, struct rddp_pd *pd, void *addr, size_t length,
                           unsigned access);

/* Registers `length` octets at `addr`, a part of the region `parent`, under a key of its own, like libfabric's
 * base_mr. The part has no right that the parent does not have. Peers and requests use it
 * like any region; it is invalidated and deregistered on its own, and becomes useless when its parent is invalidated.
 * RDDP_ACCESS_ZERO_BASED may differ from the parent's; RDDP_ACCESS_STABLE, _VOLATILE and _ON_DEMAND are the
 * parent's. A key with
 * RDDP_ACCESS_ONE_SHOT becomes invalid when the Read whose sink it is has completed, so the peer that was given it can
 * use it for these octets and this Read alone (RFC 5040 8.1.1). Whether the memory is mapped is not checked. EINVAL:
 * not inside the parent, more rights than it has, unknown or contradictory access, or the parent is invalid or a part
 * itself; ENOMEM. */
RDDP_API struct rddp_mr *rddp_reg_sub_mr(struct rddp_mr *parent, void *addr, size_t length, unsigned access);

/* Deregisters a region and frees it. Returns 0: the key is invalid and nothing accesses the memory any more. Data
 * already cut into segments are still sent, from a copy made now. -EBUSY: a part of the region is registered, or a
 * window is bound to it; nothing has changed. */
RDDP_API int rddp_dereg_mr(struct rddp_mr *mr);

/* Values are those of enum ibv_advise_mr_advice. */
enum rddp_advise_mr_advice {
    RDDP_ADVISE_MR_PREFETCH = 0,          /* for reading */
    RDDP_ADVISE_MR_PREFETCH_WRITE = 1,    /* for reading and writing */
    RDDP_ADVISE_MR_PREFETCH_NO_FAULT = 2, /* only what is present already: there is nothing to do for it */
};

/* The value is that of IBV_ADVISE_MR_FLAG_FLUSH. */
enum rddp_advise_mr_flags { RDDP_ADVISE_MR_FLUSH = 1 << 0 /* report it if memory is not there */ };

/* Makes memory of regions with RDDP_ACCESS_ON_DEMAND present, in the order of the list, so that the first request that
 * uses it need not wait for that. Returns 0; -EINVAL: unknown flags, or no entry; -EOPNOTSUPP: an unknown advice;
 * -ENOENT: an lkey that is of no valid region of this kind; -EPERM: of a region of another domain, or to be written
 * without RDDP_ACCESS_LOCAL_WRITE; -EFAULT, with RDDP_ADVISE_MR_FLUSH only: outside the region, or some of the memory
 * is not there or does not allow it. Before Linux 5.14 nothing is made present. */
RDDP_API int rddp_advise_mr(struct rddp_pd *pd, enum rddp_advise_mr_advice advice, unsigned flags,
                            const struct rddp_sge *sg_list, uint32_t num_sge);

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

/* Values are those of enum ibv_mw_type. */
enum rddp_mw_type {
    RDDP_MW_TYPE_1 = 1, /* each bind replaces the one before; all queue pairs of the domain may use it */
    RDDP_MW_TYPE_2 = 2, /* must be invalidated before the next bind; only the queue pair that bound it may use it */
};

/* Makes a memory window: a remote key that RDDP_WR_BIND_MW requests bind to a part of a region of the domain, in the
 * order of their queue (struct rddp_mw_bind), whose completion has RDDP_WC_BIND_MW. It leads nowhere until then. A bind
 * with a length of 0 takes a window of type 1 back; one of type 2 is invalidated by LOCAL_INV, or by a Send with
 * Invalidate of its queue pair's peer. A bind that is wrong completes with RDDP_WC_MW_BIND_ERR and ends the connection.
 * A bind that takes a key away waits until nothing accesses the memory by it. NULL: EINVAL (an unknown type),
 * ENOMEM. */
RDDP_API struct rddp_mw *rddp_alloc_mw(struct rddp_pd *pd, enum rddp_mw_type type);

/* Frees a window, bound or not. Returns 0: nothing accesses memory by its key any more. A request that would bind it
 * fails. */
RDDP_API int rddp_dealloc_mw(struct rddp_mw *mw);

/* Returns the key that the window has now: the last one that it was bound with. */
RDDP_API uint32_t rddp_mw_key(const struct rddp_mw *mw);

/* --- completion ---------------------------------------------------------------------------------------------- */

/* Makes a completion channel. NULL: ENOMEM, EMFILE. */
RDDP_API struct rddp_comp_channel *rddp_create_comp_channel(struct rddp_context *context);
RDDP_API int rddp_destroy_comp_channel(struct rddp_comp_channel *channel); /* -EBUSY: a CQ uses it */

/* Returns a descriptor that is readable while an event is waiting. Use it only with poll, select, epoll,
 * fcntl(O_NONBLOCK) and recv(MSG_PEEK); the last of these waits for an event, too. */
RDDP_API int rddp_comp_channel_fd(const struct rddp_comp_channel *channel);

/* Takes an event and stores its CQ and, unless `user` is NULL, the CQ's user pointer. Waits for an event unless the
 * descriptor is O_NONBLOCK. Returns 0. The event must be acknowledged: until then rddp_destroy_cq() waits, in whichever
 * thread, so the CQ stays valid. -EAGAIN: no event is waiting (O_NONBLOCK); -EINTR: by a signal without SA_RESTART. */
RDDP_API int rddp_get_cq_event(struct rddp_comp_channel *channel, struct rddp_cq **cq, void **user);

/* Acknowledges `n` events of the CQ that were taken. One call for many events saves time. */
RDDP_API void rddp_ack_cq_events(struct rddp_cq *cq, uint32_t n);

/* Makes a CQ for up to `cqe` completions (1 to 1048576). A CQ as large as all the queues it serves never overflows,
 * because a request keeps its place in its queue until its completion is polled. `channel` NULL: polling only. NULL:
 * EINVAL (`cqe` out of range, or a channel of another context), ENOMEM. */
RDDP_API struct rddp_cq *rddp_create_cq(struct rddp_context *context, int cqe, void *user,
                                        struct rddp_comp_channel *channel);

/* Changes the capacity to `cqe` completions (1 to 1048576); those in the CQ and their order stay. Other threads may
 * post, poll and arm. A CQ that has overflowed remains so. Returns 0. -EINVAL: out of range, or fewer than are in the
 * CQ; -ENOMEM. Nothing has changed then. */
RDDP_API int rddp_resize_cq(struct rddp_cq *cq, int cqe);

/* Gives each completion that comes from now on the time at which it was made, in rddp_wc.timestamp_ns: nanoseconds of
 * CLOCK_MONOTONIC, which never go back from one completion to the next. Returns 0. -EBUSY: a queue pair uses the CQ;
 * nothing has changed. */
RDDP_API int rddp_stamp_cq(struct rddp_cq *cq);

/* Frees the CQ, with completions and events that were not taken. Waits until all events that were taken are
 * acknowledged: a thread that has not acknowledged its own waits without end. Returns 0. -EBUSY: a queue pair uses
 * it. */
RDDP_API int rddp_destroy_cq(struct rddp_cq *cq);

/* Takes up to `n` completions, oldest first, and stores them in `wc`. Returns their number; fewer than `n`: the CQ was
 * empty then. -EINVAL: `n` is negative; -EOVERFLOW: the CQ was full once, completions are lost, and its queue pairs are
 * in the error state. */
RDDP_API int rddp_poll_cq(struct rddp_cq *cq, int n, struct rddp_wc *wc);

/* Arms the CQ: the next completion raises one event. With `solicited_only` it must be that of a solicited Send or one
 * with an error. Completions already in the CQ raise none: poll once more after arming. A thread that has polled other
 * CQs, which are not armed, for long and then sleeps may get the first event 200 us late, unless it arms again before.
 * -EINVAL: the CQ has no channel. */
RDDP_API int rddp_req_notify_cq(struct rddp_cq *cq, bool solicited_only);

RDDP_API const char *rddp_wc_status_str(enum rddp_wc_status status);
RDDP_API const char *rddp_fault_str(uint32_t vendor_err); /* a sentence that cites the document; never NULL */

/* --- queues -------------------------------------------------------------------------------------------------- */

/* Makes a shared receive queue for `max_wr` receives (1 to 16384) of up to `max_sge` entries each (0 to 16). NULL:
 * EINVAL (out of range), ENOMEM. */
RDDP_API struct rddp_srq *rddp_create_srq(struct rddp_pd *pd, uint32_t max_wr, uint32_t max_sge);

/* Frees the SRQ and drops the receives that are posted. Waits until its asynchronous events that were taken are
 * acknowledged. Returns 0. -EBUSY: a queue pair uses it. */
RDDP_API int rddp_destroy_srq(struct rddp_srq *srq);

/* Arms the SRQ: when fewer than `limit` receives are posted, now or later, RDDP_ASYNC_SRQ_LIMIT_REACHED comes once, if
 * a channel watches the SRQ, and the limit is 0 again. 0 disarms. Returns 0. -EINVAL: a limit above max_wr. */
RDDP_API int rddp_set_srq_limit(struct rddp_srq *srq, uint32_t limit);

/* Changes max_wr (1 to 16384); posted receives and their order stay. Other threads may post, and messages may arrive.
 * Returns 0. -EINVAL: out of range, below the limit, or below the receives that are posted or whose completions were
 * not polled; -ENOMEM. Nothing has changed then. */
RDDP_API int rddp_resize_srq(struct rddp_srq *srq, uint32_t max_wr);

struct rddp_srq_info {
    uint32_t max_wr, max_sge;
    uint32_t limit;  /* 0: not armed */
    uint32_t posted; /* receives that no message has taken */
};

RDDP_API int rddp_query_srq(struct rddp_srq *srq, struct rddp_srq_info *info); /* returns 0 */

#define RDDP_WAIT_WITHOUT_LIMIT UINT32_MAX

struct rddp_qp_attr {
    enum rddp_qp_type type; /* default RDDP_QPT_CONNECTED; the others: see rddp_modify_qp() */
    struct rddp_cq *send_cq, *recv_cq;
    struct rddp_srq *srq;     /* NULL: the queue pair has its own receive queue */
    uint32_t max_send_wr;     /* default 128, at most 16384; 0: nothing can be posted */
    uint32_t max_recv_wr;     /* default 128; not used with `srq` */
    uint32_t max_send_sge;    /* default 4, at most 16 */
    uint32_t max_recv_sge;    /* default 4 */
    uint32_t max_inline_data; /* default 64, at most 1024 */
    uint32_t max_rd_atomic; /* RDMA Reads and atomics that may be pending in each direction: default 16, at most 128 */
    /* What the peer may do in the regions that allow it: RDDP_ACCESS_REMOTE_WRITE, _READ and _ATOMIC, by default all.
     */
    unsigned access;
    bool sq_sig_all; /* every request is signalled */
    /* How long a message that finds no receive may wait until one is posted, here or in the SRQ. Meanwhile nothing is
     * read from this connection. When the time is over the connection ends. Default 0: it ends at once, as RFC 5041
     * requires; RDDP_WAIT_WITHOUT_LIMIT: as verbs with an RNR retry count of 7. See rddp_post_recv(). */
    uint32_t wait_for_receive_ms;
    /* RDDP_WIRE_RDMATCP: receive Sends before others that were sent earlier, where their sender allows it
     * (RDDP_SEND_ORDER). */
    bool out_of_order_sends;
    /* RDDP_WIRE_RDMATCP: control data of the peer's RDMA Writes and Reads take a receive
     * (RDDP_WC_RECV_RDMA_WITH_IMM, _READ). Otherwise they are dropped and counted. */
    bool rdma_control;
    /* rddp_destroy_qp() leaves completions of success in the CQs, where they take space until they are polled. Several
     * adapters for verbs do so, and programs that destroy a queue pair as soon as its peer is gone rely on it. Default
     * no: all of them vanish. */
    bool keep_completions;
    void *user;
};

RDDP_API void rddp_qp_attr_init(struct rddp_qp_attr *attr);

/* Makes a queue pair that is not connected: receives can be posted, sends cannot. NULL: EINVAL (an attribute is out of
 * range, or a CQ or the SRQ is missing or belongs to another context), ENOMEM; of types RC and UC, which open sockets,
 * also EMFILE, EAGAIN (no random number available) and EPROTONOSUPPORT (this build has no RoCE). */
RDDP_API struct rddp_qp *rddp_create_qp(struct rddp_pd *pd, const struct rddp_qp_attr *attr);

/* Cuts off the connection, if any, and frees the queue pair, its events that were not taken and, unless
 * keep_completions is set, its completions. Waits until its asynchronous events that were taken are acknowledged.
 * Returns 0. */
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

/* Changes `access` of a queue pair, in any state; RDDP_ACCESS_LOCAL_WRITE is allowed and changes nothing. When it has
 * returned, nothing is placed any more that it forbids; octets of Read Responses that were cut before are still sent.
 * A refused message ends the connection like one that its region refuses. rddp_reset_qp() undoes the change. Returns 0.
 * -EINVAL: another right. */
RDDP_API int rddp_set_qp_access(struct rddp_qp *qp, unsigned access);

/* Stores the attributes of creation, with `access` as it is now. Returns 0. */
RDDP_API int rddp_query_qp_attr(struct rddp_qp *qp, struct rddp_qp_attr *attr);
RDDP_API uint32_t rddp_qp_num(const struct rddp_qp *qp);
RDDP_API void *rddp_qp_user(const struct rddp_qp *qp);

/* Posts a list of requests. They stay together: requests that another thread posts to the same queue come before or
 * after all of them. The first may be sent before the last is posted. Returns 0, or an error with *bad_wr the first
 * request that was not posted; those before it were.
 *
 * -ENOMEM: the queue is full.
 * -EOPNOTSUPP: the wire or the adaptation of the connection has no such message: immediate data in a Send with octets
 * outside RDDP_WIRE_ROCE, an atomic outside it and RDDP_WIRE_IWARP, immediate data or a Send with Invalidate over
 * RDDP_WIRE_RDMATCP, or what enum rddp_sctp_adaptation excludes.
 * -EINVAL: the queue pair neither is connected nor connects; unknown opcode or flags; num_sge negative or above
 * max_send_sge; a message of 4 GiB or more; inline data above max_inline_data; a Read that is inline or has more than
 * one sge; an atomic that is inline or whose sges are not one of eight octets; RDDP_SEND_MASKED without an atomic.
 * RDDP_WIRE_RDMATCP: a control_length above 1020 or not a multiple of 4, remote addresses of 4 GiB or more. Other
 * wires: RDDP_SEND_ORDER or control data. RDDP_WIRE_SCTP without negotiation: a Send that does not fit into one chunk.
 *
 * A bad lkey or bad bounds are reported by the completion. In the error state requests are accepted and complete with
 * RDDP_WC_WR_FLUSH_ERR.
 *
 * The success of a Send or a Write means only that its memory may be reused: over iWARP the peer acknowledges neither.
 * Over RoCE a peer of type RC acknowledges them when it has placed them. A Write with a bad rkey succeeds, and then the
 * peer's Terminate ends the connection. The success of a Read means that its data have arrived. Only atomics are
 * atomic: a Read of memory that its owner is writing may return old and new octets mixed, and a reader may see part of
 * a Write until it has received a later message of the writer. A request that is not signalled frees its place in the
 * queue once it and all before it have succeeded; no poll is needed for that.
 *
 * An acceptor may post from rddp_accept() on, an initiator from rddp_connect() on. What an initiator posts before
 * ESTABLISHED is sent then, or flushed if the connection fails; if the wire turns out to have no message for it, it
 * completes with RDDP_WC_LOC_QP_OP_ERR and ends the connection. What an acceptor posts waits for the first message of
 * the initiator, which without peer_to_peer may never come (RFC 5044 7.1.2). */
RDDP_API int rddp_post_send(struct rddp_qp *qp, struct rddp_send_wr *wr, struct rddp_send_wr **bad_wr);

/* Posts a list of receives, also before the queue pair is connected. Receives that another thread posts to the same
 * queue may come between those of the list. A Send that finds no receive, here or in the SRQ, ends its connection, and
 * the peer gets a Terminate. With wait_for_receive_ms it waits instead, and so does all that the peer sent behind it,
 * including answers to our own Reads and atomics. Returns 0, or an error with *bad_wr the first receive that was not
 * posted. -ENOMEM: the queue is full; -EINVAL: num_sge negative or above the queue's limit, 4 GiB or more in all, or
 * rddp_post_recv() with an SRQ. */
RDDP_API int rddp_post_recv(struct rddp_qp *qp, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr);
RDDP_API int rddp_post_srq_recv(struct rddp_srq *srq, struct rddp_recv_wr *wr, struct rddp_recv_wr **bad_wr);

#ifdef __cplusplus
}
#endif
#endif
