/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.h - the queues of one endpoint: requests are posted, segments are placed and emitted, completions come out. */
#ifndef RDDP_CORE_QP_H
#define RDDP_CORE_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rddp/wr.h>

#include "base/ranges.h"
#include "base/span.h"
#include "core/cq.h"
#include "core/fault.h"
#include "core/mr.h"
#include "core/numbering.h"
#include "core/rq.h"
#include "core/seg.h"

enum {
    QP_SGE_MAX = 16,      /* pieces of one request */
    QP_INLINE_MAX = 1024, /* octets of one inline request */
    QP_DEPTH_MAX = 16384, /* requests of one queue */
    QP_READS_MAX = 128,   /* IRD and ORD; siw caps at the same */
    QP_WINDOW_MAX = 1024, /* messages of one queue that may be in arrival at once */
};

/* Octets of one message (RFC 5041 5.2: less than 2^32). */
#define QP_MESSAGE_MAX UINT32_MAX

enum send_state {
    SEND_POSTED,  /* waits for its turn */
    SEND_QUEUED,  /* all of it is encoded; `end` says when it has left */
    SEND_WAITING, /* a Read Request has left, its response has not all arrived */
    SEND_DONE,    /* waits for earlier ones to complete */
};

struct destination;

/* A request in the send queue. `sge`, `inlined` and `to` point into the room of the queue. */
struct send {
    /* What every request uses comes first: a long queue passes through the cache with each turn. */
    uint64_t wr_id;
    struct rddp_sge *sge;
    uint8_t *inlined;
    uint64_t remote_offset;
    uint64_t end; /* stream position behind its last segment */
    uint32_t length, sges;
    uint32_t remote_key; /* rkey, or the key to invalidate, or that a window is to have */
    enum rddp_wr_opcode opcode;
    unsigned flags;     /* enum rddp_send_flags */
    uint32_t immediate; /* of a request with immediate data */
    enum send_state state;
    enum rddp_wc_status status; /* why it failed, if it is to blame; else RDDP_WC_SUCCESS */
    uint64_t retired;           /* the epoch in which it invalidated a key; it completes when mr_is_unused(); or 0 */
    bool begun;                 /* an RDMA Read: the first segment of its response had its turn */
    bool answered;              /* an RDMA Read: the last segment of its response is placed */
    bool early;                 /* an RDMA Read: a segment of its response came out of order */
    uint64_t rx_end;            /* of an RDMA Read: stream position behind the last response segment so far */
    struct ranges got;          /* of an RDMA Read: which octets of the response are placed */

    struct destination *to; /* of QP_DATAGRAMS */
    const uint8_t *control; /* with a SEG_NUMBERS_SEQUENCE wire, as the next two: control data, the poster's */
    uint16_t control_length, order;
    uint32_t number; /* of the message */
    union {
        struct seg_atomic atomic; /* of an atomic; `number` is then that of its response */
        struct rddp_mw_bind bind;
    };
    /* An RDMA Read of a SEG_NUMBERS_SEQUENCE wire: where control data of the response go, and how many came. */
    uint8_t *response_control;
    uint32_t response_size, response_length;
};

/* A message that is arriving at the receive claimed for it. A Write or Read Request has one for its control data. */
struct inbound {
    struct recv recv; /* its sges are in the room of the queue pair */
    struct ranges got;
    uint64_t end;    /* stream position behind the last segment so far */
    uint32_t length; /* known when the last segment was seen */
    uint32_t reach;  /* octets up to the end of the farthest segment so far */
    uint64_t invalidate;
    uint32_t source;            /* with SEG_DATAGRAM */
    uint32_t immediate;         /* with SEG_WITH_IMM */
    unsigned flags;             /* enum seg_flag of its last segment; SEG_LAST: length is known */
    enum rddp_wc_status status; /* as of struct send */
    bool early;                 /* a segment came out of order */
    uint8_t op;                 /* enum seg_op: a Send, or what else takes a receive */
    uint16_t order;             /* with a SEG_NUMBERS_SEQUENCE wire: the order it wants, its number */
    uint32_t number;
    uint32_t control_length; /* how many came */
};

/* A Read Request, or an atomic, of the peer: it waits for its delivery, then for its response to be emitted. */
struct peer_read {
    uint8_t op; /* SEG_READ_REQ or SEG_ATOMIC_REQ */
    union {
        struct seg_read read;
        struct seg_atomic atomic;
    };
    uint64_t end;
    uint32_t number; /* of the message, with a SEG_NUMBERS_SEQUENCE wire */
    bool arrived;
};

enum qp_state {
    QP_IDLE,  /* receives may be posted, sends wait; nothing may arrive */
    QP_READY, /* connected */
    QP_ERROR, /* everything is flushed, also what is posted from here on */
};

/* What becomes of requests. */
enum qp_service {
    QP_RELIABLE,   /* one that fails is the end of the queue pair */
    QP_UNRELIABLE, /* one that fails here is the end of the send queue alone, until qp_restart_sends() */
    QP_DATAGRAMS,  /* the same, and each names its peer (datagram.h) */
};

struct qp;

/* What a queue pair tells its owner. */
enum qp_happening {
    QP_COMMUNICATES, /* a packet of the peer came before requests may be sent */
    QP_DRAINED,      /* the requests that had begun are done */
    QP_SENDS_FAILED, /* qp.sends_failed, and qp.note says why */
    QP_FAILS,        /* all is flushed next: what has been cut and has not left, leaves from a copy */
    QP_FAILED,       /* all is flushed, and qp.note says why */
};

struct qp_attr {
    struct pd *pd;
    struct mr_table *mrs;
    struct cq *send_cq, *recv_cq;
    struct rq *srq; /* NULL: the queue pair has its own receive queue */
    uint32_t send_depth, recv_depth;
    uint32_t send_sge, recv_sge;
    uint32_t inline_max;
    uint32_t ird, ord;        /* room for; qp_connect() sets what was agreed */
    uint32_t window;          /* messages that may be in arrival at once: 1 is enough for a link in order */
    uint64_t receive_wait_us; /* how long a message may wait for its receive; 0: not at all; UINT64_MAX: no limit */
    enum qp_service service;
    bool signal_all;
    bool out_of_order; /* Sends may be delivered out of order where their sender allows it */
    bool rdma_control; /* Writes and Read Requests with control data take a receive */
    /* Remote rights (enum rddp_access) that the peer does not have, whatever its regions grant. Any thread may change
     * it in qp->attr. */
    _Atomic unsigned refused;
    uint32_t number;
    void (*happened)(struct qp *qp, enum qp_happening what); /* may be NULL */
};

/* What qp_emit() is at: at most one message of the send queue or one response at a time. */
enum emit_source {
    EMIT_NOTHING,
    EMIT_SEND,
    EMIT_IMMEDIATE, /* the same request: its Write has been cut, its immediate data have not */
    EMIT_RESPONSE
};

/* The peer's Writes in the order of the stream, where messages are numbered in queues: what the immediate data behind
 * one of them belong to. */
struct written {
    uint32_t octets;    /* of the message that is open */
    uint32_t length;    /* of the one that is over, when nothing but Read Responses came since; else 0 */
    bool partial;       /* some of the open one came out of order, and `octets` knows nothing of them */
    uint64_t early_end; /* up to this stream position some came out of order */
};

/* Rings have a power of two of places; counters and message numbers run free, and a mask finds the place. */

/* Requests, from the post to the completion. A post that finds no place taken goes to the first place of the ring,
 * which is still in the cache where a long ring is not: it sets `first` before `head`, so that `first` is read after
 * it. */
struct send_queue {
    struct send *ring;
    uint32_t mask;
    _Atomic uint32_t first;   /* the counter of ring[0] */
    _Atomic uint32_t head;    /* next to post */
    uint32_t next;            /* next to emit */
    uint32_t tail;            /* oldest that is not complete */
    _Atomic uint32_t taken;   /* places in use: from the post until the application has seen the completion */
    _Atomic uint32_t unasked; /* some of them, as good as free: the peer will only be asked later whether it has them */
};

/* Our Reads and atomics that have left and are not answered, at most attr.ord. */
struct reads_out {
    uint32_t *at; /* ring: their places in the send queue */
    uint32_t mask, head, tail;
};

/* Messages that are arriving, at most attr.window. */
struct arriving {
    struct inbound *ring;
    uint32_t mask;
    uint32_t claimed, next; /* message numbers: next to claim a receive, next to deliver (QN 0; first is 1) */
};

/* Reads and atomics of the peer, at most attr.ird. */
struct answers {
    struct peer_read *ring;
    uint32_t mask;
    uint32_t head, tail; /* MSN of the next to be delivered (QN 1), and to be answered */
    bool turn;           /* fairness: whose turn it is when both a request and a response wait */
};

/* The message that is being cut into segments. */
struct cut {
    enum emit_source source, last; /* what it is, and whose the last segment was */
    uint32_t offset;               /* octets of it already emitted */
    uint32_t sge, sge_offset;
};

struct qp {
    struct qp_attr attr;
    _Atomic enum qp_state state;       /* QP_ERROR is set when `note` is whole */
    _Atomic bool sends_failed;         /* a request failed, and all behind it are flushed: not of QP_RELIABLE */
    struct fault_note note;            /* why QP_ERROR, or else sends_failed */
    const struct numbering *numbering; /* messages are numbered in queues unless qp_sequence() says otherwise */
    struct sequence *sequence;         /* with a SEG_NUMBERS_SEQUENCE wire, else NULL */
    uint32_t unsupported; /* requests that the connection has no message for, a bit for each enum rddp_wr_opcode: set
                           * before qp_connect(), and refused at the post (-EOPNOTSUPP) */
    uint32_t send_max;    /* octets of a Send, where there are no longer ones; else 0 */
    uint64_t user;        /* its number among the users of attr.mrs */

    struct send_queue sq;
    struct reads_out reads;

    struct rq own_rq, *rq;
    struct arriving arriving;
    struct answers answers;
    struct written written;
    uint64_t invalidating; /* not 0: the message at arriving.next invalidated a key at that epoch; it is delivered when
                              mr_is_unused() */
    struct mr *joined;     /* with `binding`, the region of that bind, if it has joined it: see mw_bind() */
    uint64_t rx_pos;       /* everything before this stream position has arrived and is placed */
    uint64_t waiter;       /* the host's: rq_await() notes it */

    uint32_t tx_send_msg, tx_read_msg, tx_atomic_msg; /* next MSN of queues 0, 1, 3; the first is 1 */
    uint32_t rx_atomic_msg;                           /* of the response to our next atomic (queue 3) */
    uint64_t tx_pos;                                  /* everything before this stream position has left */
    struct cut cut;
    bool binding; /* the next request binds a window that others may still use */

    uint64_t tx_octets, rx_octets; /* payload, for counters */
    uint64_t control_dropped; /* octets of control data of Writes and Read Requests that no receive was posted for */
};

/* Octets of room that qp_init() wants for these attributes; 0 if one is over its limit (a window of 0 is, too). */
size_t qp_size(const struct qp_attr *attr);

/* `buffer` is zeroed, aligned for any type and stays the caller's; everything else is counted into pd, cqs and srq. */
void qp_init(struct qp *qp, const struct qp_attr *attr, void *buffer);

/* Gives the claims on pd, cqs and srq back. Completions not yet polled stay in the CQs: see cq_forget(). */
void qp_fini(struct qp *qp);

/* As after qp_init() with the same attributes and room, which are the caller's as they were then. What was posted is
 * gone without a completion; those in the CQs were dropped before: cq_forget(). */
void qp_reset(struct qp *qp, const struct qp_attr *attr, void *buffer);

/* In a child of fork(), as rq_leave(), and after that of an SRQ. No thread was placing or emitting; a
 * post that was under way has not happened. */
void qp_leave(struct qp *qp);

/* QP_IDLE -> QP_READY with what was agreed. `rx_pos` is the stream position of the first octet that can arrive. */
void qp_connect(struct qp *qp, uint32_t ird, uint32_t ord, uint64_t rx_pos);

static inline void qp_tell(struct qp *qp, enum qp_happening what)
{
    if (qp->attr.happened)
        qp->attr.happened(qp, what);
}

/* Into QP_ERROR (once; later calls change nothing): remembers why and flushes every request with a completion.
 * In order of posting: the send queue; then the receives that messages were arriving at, then those of an own receive
 * queue (an SRQ keeps its). All as RDDP_WC_WR_FLUSH_ERR, but what was found to be the culprit has its own status. */
void qp_fail(struct qp *qp, const struct fault_note *note);

/* The peer says, before qp_fail(), that a message of this kind was wrong: the oldest request that it can have been is
 * given `status`. For SEG_READ_REQ that is the oldest Read without its response, else the oldest request of the kind
 * that has not completed, or the oldest at all, of what has left in part; a Read Response belongs to no request.
 * What has completed stays so: a Write completes when it has left. */
void qp_blame(struct qp *qp, enum seg_op op, enum rddp_wc_status status);

/* --- posting (qp.c). Each queue has one producer at a time, which excludes other producers (the receive queue does it
 * by itself), but not the thread that places and emits. 0, or -ENOMEM: the queue is full; -EINVAL: too many sges (a
 * Read has one sink), too long, unknown opcode or flag, inline too long, a Read with inline, a receive although there
 * is an SRQ. In QP_ERROR the request is taken and completes as flushed when qp_settle() is called. The address of an
 * sge is an offset of its region, as a peer would name it.
 * --- */
int qp_post_send(struct qp *qp, const struct rddp_send_wr *wr);
/* The same for a list, from its front until one fails: *wr is then that one, else NULL. They become visible at once. */
int qp_post_sends(struct qp *qp, struct rddp_send_wr **wr);
/* The length of the longest of the `requests` that were posted last. */
uint32_t qp_longest_of(const struct qp *qp, uint32_t requests);
int qp_post_recv(struct qp *qp, const struct rddp_recv_wr *wr);

/* The place of request `i`, which was posted and is not complete. */
static inline struct send *sq_at(const struct qp *qp, uint32_t i)
{
    return &qp->sq.ring[(i - atomic_load_explicit(&qp->sq.first, memory_order_relaxed)) & qp->sq.mask];
}

/* Returns the next request to be emitted; NULL: there is none. */
static inline struct send *sq_next(const struct qp *qp)
{
    return qp->sq.next == atomic_load_explicit(&qp->sq.head, memory_order_acquire) ? NULL : sq_at(qp, qp->sq.next);
}

static inline bool is_local(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_LOCAL_INV || opcode == RDDP_WR_BIND_MW;
}

/* Is the next request to be emitted one that sends nothing? */
static inline bool qp_has_local(const struct qp *qp)
{
    const struct send *s = sq_next(qp);

    return s && is_local(s->opcode);
}

/* Executes it, and those like it behind it, whether anything may be sent or not: no peer delays what concerns memory of
 * our own. QP_ERROR afterwards: one of them failed, and qp->note says why. */
void qp_do_local(struct qp *qp);

/* Has the oldest request been executed, and waits for its completion? */
static inline bool sq_waits(const struct qp *qp)
{
    return qp->sq.tail != atomic_load_explicit(&qp->sq.head, memory_order_acquire) &&
           sq_at(qp, qp->sq.tail)->state == SEND_DONE;
}

/* Does something that invalidated a key, or binds a window, wait until the region is out of use? */
static inline bool qp_waits(const struct qp *qp)
{
    return qp->invalidating || qp->binding || sq_waits(qp);
}

/* Does it wait for spans of that region which are queued for a socket, here or elsewhere? Their peers may never read
 * them: whoever holds such spans copies them. */
bool qp_waits_for_spans(const struct qp *qp);

/* Completes of that what can be; to be called now and then while qp_waits(). Faults are those of qp_advance(). */
enum fault qp_resume(struct qp *qp);

/* Requests may leave again after sends_failed. What was posted before is flushed. */
void qp_restart_sends(struct qp *qp);

/* Flushes what was posted since the queue pair, or its send queue, failed. As all below for whoever places and emits;
 * to be called after a post that found, or left, QP_ERROR. */
void qp_settle(struct qp *qp);

/* --- arriving --- */

/* Places one segment: every check stands before its first byte moves. One that begins at rx_pos also moves rx_pos to
 * its end and delivers what became complete; one that begins before it was here already and changes nothing. A
 * numbering by queues takes segments in any order of their stream positions; one that begins behind rx_pos may come
 * again until then and counts once. FAULT_NOT_NOW is no fault: a segment out of order cannot be placed yet, nothing has
 * changed, and the link keeps it until something before it has arrived. In order that happens while a
 * delivery waits for an invalidation (see qp_waits()), and to a sequence: the segment has to wait until a response has
 * been emitted. After FAULT_NO_RECEIVE nothing has changed either, but for the note: the segment may come again when a
 * receive was posted. SEG_TERMINATE is not for here, and in QP_ERROR everything is dropped (RFC 5041 7.1). On a fault
 * qp->note says more, the receive or Read it is about has its status, and the caller goes on to qp_fail() (which has
 * been called already if a CQ was full). */
enum fault qp_place(struct qp *qp, const struct seg *seg);

/* Places and delivers a segment in order that is a whole Write or Send and goes straight to its place. Returns false,
 * and has changed nothing but octets of a Write's memory on demand, if it is not that simple, or wrong: qp_place()
 * knows. The queue pair may have failed: a CQ was full. Only while qp_takes_whole(): it neither waits for anything nor
 * has anything to do. */
bool qp_take_whole(struct qp *qp, const struct seg *seg);
bool qp_takes_whole(const struct qp *qp);

/* Takes the receive that `seg`, the next of the stream, needs and has not yet, so that qp_place() finds it. Returns
 * FAULT_NO_RECEIVE: none is posted; else FAULT_NONE, whatever else may be wrong. */
enum fault qp_claim_receive(struct qp *qp, const struct seg *seg);

/* Is no receive posted? Then qp->waiter waits for one (rq_await()). */
static inline bool qp_awaits_receive(const struct qp *qp)
{
    return rq_await(qp->rq, qp->waiter);
}

/* Places the payload of a segment that begins behind rx_pos, once: in its turn its header is to come to qp_place(),
 * with SEG_PLACED, and is judged as if it came only then. Without seg->data: could it be placed? FAULT_NOT_NOW: it
 * cannot, be it that it has to wait or that it is wrong; in its turn it comes as any other. Nothing is delivered, but
 * for Sends of a sequence where both sides allow it. */
enum fault qp_place_early(struct qp *qp, const struct seg *seg);

/* Where the payload of `seg`, the next of the stream, belongs: *at, or NULL if that is not in one piece or cannot be
 * known yet. No octet moves; a Send may take its receive. Faults are those of qp_place(), the note included. A host
 * that reads the payload there has qp_place() check again when it is whole, with seg->data where it is already. */
enum fault qp_locate(struct qp *qp, const struct seg *seg, uint8_t **at);

/* The link says that everything before `pos` has arrived (a gap closed): delivers what that completes, in stream order.
 * FAULT_MSN, FAULT_MO or FAULT_UNASKED if a message cannot be complete any more; else faults of delivery. */
enum fault qp_advance(struct qp *qp, uint64_t pos);

/* --- leaving --- */

enum { EMIT_SPANS = QP_SGE_MAX };

/* A segment to encode: payload in spans of registered memory (or of the request's inline room, or in `buffer`). */
struct emit {
    struct seg seg;
    struct span span[EMIT_SPANS];
    uint32_t spans;
    struct mr *region[EMIT_SPANS]; /* of each span, NULL for inline data and what lies in `buffer` */
    uint8_t *buffer; /* the caller's, for a segment's payload: memory registered on demand is copied there; or NULL */
    bool volatile_data; /* inline data: its room may be reused once the request completes; or what lies in `buffer` */
    bool may_change;    /* it may be written meanwhile: it is not registered as stable */
};

/* Is there anything that could leave now? */
bool qp_has_output(const struct qp *qp);

/* Has all been cut that was posted, and that the peer has asked for? */
static inline bool qp_has_cut_all(const struct qp *qp)
{
    return qp->cut.source == EMIT_NOTHING && qp->answers.tail == qp->answers.head &&
           qp->sq.next == atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

/* Cuts the next segment with at most `tagged_max` (Write, Read Response) or `untagged_max` (Send) octets of payload.
 * True with *e filled; false if nothing can leave now (empty, a fence, ORD reached, or the queue went to QP_ERROR
 * because of its own request or because the region of a response has gone: qp->note says why). Counts the message
 * numbers. seg.begin and seg.end are the caller's to fill. */
bool qp_emit(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);

/* The segment just emitted ends at stream position `end`. */
void qp_queued(struct qp *qp, uint64_t end);

/* Everything before stream position `pos` has left, or is with the peer, where completions are to say that: completes
 * what that finishes. */
void qp_sent(struct qp *qp, uint64_t pos);

/* For a link that delivers out of order, before anything arrives: `window` messages of the peer may be in arrival at
 * once, up to QP_WINDOW_MAX. `buffer` is as qp_init()'s, of qp_widen_size() octets. */
size_t qp_widen_size(const struct qp *qp, uint32_t window);
void qp_widen(struct qp *qp, uint32_t window, void *buffer);

/* For a SEG_NUMBERS_SEQUENCE wire, before anything leaves or arrives: our messages begin with number `first` (drawn at
 * random), and `window` Sends of the peer may wait for their delivery, from 2 to QP_WINDOW_MAX. `buffer` is as
 * qp_init()'s, of qp_sequence_size() octets. From here on requests are held to what that wire can say. */
size_t qp_sequence_size(const struct qp *qp, uint32_t window);
void qp_sequence(struct qp *qp, uint32_t first, uint32_t window, void *buffer);

/* A Send of zero length as ready-to-receive message (RFC 6581 5) is not visible to the consumer: the next message
 * number is used up without a receive. Only before anything else has arrived. */
void qp_skip_receive(struct qp *qp);

#endif
