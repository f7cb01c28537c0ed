/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.c - asynchronous events: which there are, and the channels on which they come. */
#include "api/async.h"

#include <errno.h>
#include <stdlib.h>

#include "api/channel.h"

/* --- channels -------------------------------------------------------------------------------------------------- */

struct rddp_async_channel *rddp_create_async_channel(struct rddp_context *context)
{
    struct rddp_async_channel *channel = channel_new(context, sizeof(*channel));

    if (!channel)
        return NULL;
    channel->context = context;
    return channel_complete(channel, context, MEMBER_ASYNC_CHANNEL, &channel->member, reports_init(&channel->reports));
}

int rddp_destroy_async_channel(struct rddp_async_channel *channel)
{
    int error = channel_leave(channel->context, &channel->member, channel->users);

    if (error)
        return error;
    reports_fini(&channel->reports);
    free(channel);
    return 0;
}

int rddp_async_channel_fd(const struct rddp_async_channel *channel)
{
    return channel_fd(channel->context, &channel->reports.notifier);
}

/* --- objects --------------------------------------------------------------------------------------------------- */

/* `event` names the object. The channel is stored last: from then on events are reported. */
static int async_join(struct async_source *source, const struct rddp_context *context,
                      struct rddp_async_channel *channel, const struct rddp_async_event *event)
{
    if (channel->context != context)
        return -EINVAL;
    if (atomic_load(&source->channel))
        return -EBUSY;
    source->event = *event;
    channel->users++;
    atomic_store(&source->channel, channel);
    return 0;
}

int rddp_watch_cq(struct rddp_cq *cq, struct rddp_async_channel *channel, void *user)
{
    return async_join(&cq->async, cq->context, channel, &(struct rddp_async_event){.cq = cq, .user = user});
}

int rddp_watch_qp(struct rddp_qp *qp, struct rddp_async_channel *channel, void *user)
{
    return async_join(&qp->async, qp->context, channel, &(struct rddp_async_event){.qp = qp, .user = user});
}

int rddp_watch_srq(struct rddp_srq *srq, struct rddp_async_channel *channel, void *user)
{
    return async_join(&srq->async, srq->context, channel, &(struct rddp_async_event){.srq = srq, .user = user});
}

void async_drop(struct async_source *source)
{
    struct rddp_async_channel *channel = atomic_load(&source->channel);

    if (channel)
        reports_drop(&channel->reports, &source->reporter);
}

void async_leave(struct async_source *source)
{
    struct rddp_async_channel *channel = atomic_load(&source->channel);

    if (!channel)
        return;
    reports_withdraw(&channel->reports, &source->reporter);
    channel->users--;
}

/* --- events ---------------------------------------------------------------------------------------------------- */

static void async_report(struct async_source *source, enum rddp_async_type type)
{
    struct rddp_async_channel *channel = atomic_load(&source->channel);

    if (channel)
        reports_add(&channel->reports, &source->reporter, type);
}

/* What a completion or a connection event reports makes no asynchronous event, and neither does an end that one of the
 * two sides or the path wanted. False: there is none for this fault. */
static bool async_type_of(enum fault fault, enum rddp_async_type *type)
{
    switch (fault) {
    case FAULT_KEY:
    case FAULT_DOMAIN:
    case FAULT_RIGHT:
    case FAULT_BOUNDS:
    case FAULT_WRAP:
    case FAULT_ABSENT:
    case FAULT_INVALIDATE:
        *type = RDDP_ASYNC_QP_ACCESS_ERR;
        return true;
    case FAULT_QUEUE:
    case FAULT_NO_RECEIVE:
    case FAULT_MSN:
    case FAULT_MO:
    case FAULT_OPCODE:
    case FAULT_SHORT:
    case FAULT_UNASKED:
    case FAULT_READS:
    case FAULT_UNALIGNED:
    case FAULT_PACKET:
    case FAULT_QP_ACCESS:
        *type = RDDP_ASYNC_QP_REQ_ERR;
        return true;
    case FAULT_NONE:
    case FAULT_TOO_LONG:  /* the receive says so */
    case FAULT_LOCAL_KEY: /* the request or the receive says so */
    case FAULT_NO_ORD:    /* the request says so, as with the next four */
    case FAULT_RETRY:
    case FAULT_RNR:
    case FAULT_NAK:
    case FAULT_RESPONSE:
    case FAULT_REJECTED:
    case FAULT_LOST:
    case FAULT_CUT:
    case FAULT_STALLED:
    case FAULT_TERMINATED:
    case FAULT_OWNER:
    case FAULT_FORKED:
    case FAULT_CLOSED:
        return false;
    default:
        *type = RDDP_ASYNC_QP_FATAL;
        return true;
    }
}

static void report_qp_failed(struct rddp_qp *qp)
{
    enum rddp_async_type type;

    if (async_type_of(qp->qp.note.fault, &type))
        async_report(&qp->async, type);
    if (qp->qp.attr.srq)
        async_report(&qp->async, RDDP_ASYNC_QP_LAST_WQE_REACHED);
}

/* The completion of the request is the event; the log has what is wrong. */
static void log_sends_failed(const struct rddp_qp *qp)
{
    enum { LINE = 400 };
    char line[LINE];

    fault_describe(&qp->qp.note, line, sizeof(line));
    context_log(qp->context, RDDP_LOG_WARN, "queue pair %#x: %s", qp->qp.attr.number, line);
}

void async_qp_happened(struct qp *engine, enum qp_happening what)
{
    struct rddp_qp *qp = container_of(engine, struct rddp_qp, qp);

    switch (what) {
    case QP_COMMUNICATES:
        async_report(&qp->async, RDDP_ASYNC_COMM_EST);
        break;
    case QP_DRAINED:
        async_report(&qp->async, RDDP_ASYNC_SQ_DRAINED);
        break;
    case QP_SENDS_FAILED:
        log_sends_failed(qp);
        break;
    case QP_FAILS:
        qp_own_output(qp);
        break;
    case QP_FAILED:
        report_qp_failed(qp);
        break;
    }
}

void async_cq_overran(struct cq *cq)
{
    async_report(&container_of(cq, struct rddp_cq, cq)->async, RDDP_ASYNC_CQ_ERR);
}

void async_srq_is_low(struct rq *rq)
{
    async_report(&container_of(rq, struct rddp_srq, rq)->async, RDDP_ASYNC_SRQ_LIMIT_REACHED);
}

int rddp_get_async_event(struct rddp_async_channel *channel, struct rddp_async_event *event)
{
    struct reporter *reporter = NULL;
    unsigned kind;
    int error = channel_await(channel->context, &channel->reports, &reporter, &kind);

    if (error)
        return error;
    *event = container_of(reporter, struct async_source, reporter)->event;
    event->type = (enum rddp_async_type)kind;
    return 0;
}

void rddp_ack_async_event(const struct rddp_async_event *event)
{
    struct async_source *source = event->cq ? &event->cq->async : event->qp ? &event->qp->async : &event->srq->async;

    reports_acknowledge(&atomic_load(&source->channel)->reports, &source->reporter, 1);
}

const char *rddp_async_event_str(enum rddp_async_type type)
{
    switch (type) {
    case RDDP_ASYNC_CQ_ERR:
        return "CQ error: it was full";
    case RDDP_ASYNC_QP_FATAL:
        return "queue pair failed";
    case RDDP_ASYNC_QP_REQ_ERR:
        return "queue pair: invalid request of the peer";
    case RDDP_ASYNC_QP_ACCESS_ERR:
        return "queue pair: access violation by the peer";
    case RDDP_ASYNC_COMM_EST:
        return "queue pair: communication established";
    case RDDP_ASYNC_SQ_DRAINED:
        return "queue pair: send queue drained";
    case RDDP_ASYNC_SRQ_LIMIT_REACHED:
        return "SRQ limit reached";
    case RDDP_ASYNC_QP_LAST_WQE_REACHED:
        return "queue pair: last receive of its SRQ taken";
    }
    return "unknown asynchronous event";
}
