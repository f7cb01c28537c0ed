/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/async.h - asynchronous events of queue pairs, CQs and SRQs: what no completion and no connection event reports.
 * rddp.h includes it, and its conventions hold here. */
#ifndef RDDP_ASYNC_H
#define RDDP_ASYNC_H

#ifdef __cplusplus
extern "C" {
#endif

#define RDDP_API __attribute__((visibility("default")))

struct rddp_async_channel; /* a descriptor that signals asynchronous events */
struct rddp_context;
struct rddp_cq;
struct rddp_qp;
struct rddp_srq;

/* Values are those of enum ibv_event_type. The others do not exist here: there is no port and no path that changes. */
enum rddp_async_type {
    RDDP_ASYNC_CQ_ERR = 0,   /* the CQ was full: completions are lost, and its queue pairs fail */
    RDDP_ASYNC_QP_FATAL = 1, /* a fault of the stream, of memory or of a CQ ended the connection */
    /* A message of the peer that no receive reports ended the connection: unknown, out of sequence, or no receive was
     * posted for it. */
    RDDP_ASYNC_QP_REQ_ERR = 2,
    RDDP_ASYNC_QP_ACCESS_ERR = 3, /* the peer named a wrong key, right or bound, which ended the connection */
    RDDP_ASYNC_COMM_EST = 4,      /* a packet of the peer came to a queue pair in RTR: it is time to go on to RTS */
    RDDP_ASYNC_SQ_DRAINED = 5,    /* of a queue pair in SQD: all requests that had begun are complete */
    RDDP_ASYNC_SRQ_LIMIT_REACHED = 15,   /* fewer receives are posted than the limit: see rddp_set_srq_limit() */
    RDDP_ASYNC_QP_LAST_WQE_REACHED = 16, /* the queue pair is in error or closed and takes no receive of its SRQ */
};

struct rddp_async_event {
    enum rddp_async_type type;
    struct rddp_cq *cq; /* the object that the type names; the other two are NULL */
    struct rddp_qp *qp;
    struct rddp_srq *srq;
    void *user; /* as given to rddp_watch_...() */
};

/* Makes a channel for asynchronous events. NULL: ENOMEM, EMFILE. */
RDDP_API struct rddp_async_channel *rddp_create_async_channel(struct rddp_context *context);
RDDP_API int rddp_destroy_async_channel(struct rddp_async_channel *channel); /* -EBUSY: an object uses it */

/* Returns a descriptor that is readable while an event is waiting; use it like rddp_comp_channel_fd(). */
RDDP_API int rddp_async_channel_fd(const struct rddp_async_channel *channel);

/* From now on the events of the object come on `channel`, with `user`. Without this call there are none. An object
 * keeps its channel until it is destroyed. Returns 0. -EBUSY: the object has a channel; -EINVAL: the channel belongs to
 * another context. */
RDDP_API int rddp_watch_cq(struct rddp_cq *cq, struct rddp_async_channel *channel, void *user);
RDDP_API int rddp_watch_qp(struct rddp_qp *qp, struct rddp_async_channel *channel, void *user);
RDDP_API int rddp_watch_srq(struct rddp_srq *srq, struct rddp_async_channel *channel, void *user);

/* Takes an event and stores it in *event. Waits for one unless the descriptor is O_NONBLOCK. Returns 0. The event must
 * be acknowledged: until then the calls that destroy its object wait, in whichever thread. An event that was not taken
 * vanishes with its object, and when its queue pair is reset; one that comes again before it is taken is reported once.
 * -EAGAIN: no event is waiting (O_NONBLOCK); -EINTR: by a signal without SA_RESTART. */
RDDP_API int rddp_get_async_event(struct rddp_async_channel *channel, struct rddp_async_event *event);
RDDP_API void rddp_ack_async_event(const struct rddp_async_event *event);
RDDP_API const char *rddp_async_event_str(enum rddp_async_type type);

#ifdef __cplusplus
}
#endif
#endif
