/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c - rddp's events become rdma_cm's when the application takes them, and its ids change their state then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/cm/datagram.h"

static void cm_event_fill(struct cm_event *event, struct cm_id *id, enum rdma_cm_event_type type,
                          const struct rddp_event *from)
{
    size_t length = from->private_data_length < CM_PRIVATE_MAX ? from->private_data_length : CM_PRIVATE_MAX;

    event->ibv.id = &id->ibv;
    event->ibv.event = type;
    event->counted = id;
    if (length) {
        memcpy(event->private_data, from->private_data, length);
        event->ibv.param.conn.private_data = event->private_data;
        event->ibv.param.conn.private_data_len = (uint8_t)length;
    }
    if (id->qp)
        event->ibv.param.conn.qp_num = id->qp->ibv.qp_num;
}

static uint8_t reads_at_most(uint16_t n)
{
    return (uint8_t)(n < VERBS_READS_MAX ? n : VERBS_READS_MAX);
}

/* A peer of revision 1 names no numbers. */
static uint8_t reads_of(uint16_t n)
{
    return n ? reads_at_most(n) : CM_READS_DEFAULT;
}

/* Without memory for an id the request is rejected. */
static bool event_of_request(struct cm_event *event, const struct rddp_event *from)
{
    const struct cm_listener *at = from->user;
    struct cm_id *listener = at->id;
    struct cm_id *id = cm_id_new(listener->ibv.channel, listener->ibv.context, listener->ibv.ps);

    if (id)
        id->device = at->device;
    if (!id || cm_id_use_device(id)) {
        if (id)
            cm_id_free(id);
        rddp_reject(from->request, NULL, 0);
        return false;
    }
    cm_event_fill(event, id, RDMA_CM_EVENT_CONNECT_REQUEST, from);
    id->state = CM_REQUESTED;
    id->request = from->request;
    rddp_request_addr(id->request, &id->ibv.route.addr.dst_storage);
    rddp_request_local_addr(id->request, &id->ibv.route.addr.src_storage);
    id->peer_ird = reads_of(from->ird);
    id->peer_ord = reads_of(from->ord);
    if (!cm_is_datagram(id)) {
        event->ibv.param.conn.responder_resources = id->peer_ord;
        event->ibv.param.conn.initiator_depth = id->peer_ird;
    }
    event->ibv.listen_id = &listener->ibv;
    event->counted = listener; /* the new id may be destroyed before its event is given back */
    return true;
}

static void event_of_start(struct cm_event *event, struct cm_id *id, const struct rddp_event *from)
{
    struct rddp_qp_info info;

    /* Over InfiniBand who brings a queue pair of his own does the rest by rdma_establish(). */
    bool responds = cm_is_ib(id) && id->is_active && !id->ibv.qp;

    cm_event_fill(event, id, responds ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED, from);
    id->state = CM_CONNECTED;
    if (!responds)
        id->qp->ibv.state = IBV_QPS_RTS;
    rddp_query_qp(id->qp->rddp, &info);
    if (info.local.ss_family)
        id->ibv.route.addr.src_storage = info.local;
    if (info.peer.ss_family)
        id->ibv.route.addr.dst_storage = info.peer;
    event->ibv.param.conn.responder_resources = reads_at_most(info.ird);
    event->ibv.param.conn.initiator_depth = reads_at_most(info.ord);
}

/* The connection is over, or never came to be. */
static void event_of_end(struct cm_event *event, struct cm_id *id, const struct rddp_event *from)
{
    enum rdma_cm_event_type type = RDMA_CM_EVENT_CONNECT_ERROR;
    int status = from->status;

    if (from->type == RDDP_EVENT_DISCONNECTED) {
        type = RDMA_CM_EVENT_DISCONNECTED;
        status = 0;
    } else if (from->type == RDDP_EVENT_REJECTED) {
        type = RDMA_CM_EVENT_REJECTED;
        status = -ECONNREFUSED;
    } else if (from->type == RDDP_EVENT_UNREACHABLE) { /* iw_cm: a port without a listener rejects */
        type = status == -ECONNREFUSED ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE;
    }
    id->state = type == RDMA_CM_EVENT_DISCONNECTED ? CM_OVER : CM_FAILED;
    id->qp->ibv.state = IBV_QPS_ERR;
    cm_event_fill(event, id, type, from);
    event->ibv.status = status;
    cm_rest(id);
}

/* An event that cm_channel_post() queued. */
static void event_of_own(struct cm_event *event, struct cm_id *id, const struct rddp_event *from)
{
    enum rdma_cm_event_type type = (enum rdma_cm_event_type)(from->type - RDDP_EVENT_USER);

    cm_event_fill(event, id, type, from);
    if (type == RDMA_CM_EVENT_DISCONNECTED)
        id->state = CM_OVER;
    event->ibv.status = from->status;
    cm_rest(id);
}

bool cm_event_translate(struct cm_event *event, const struct rddp_event *from)
{
    const struct verbs_qp *qp = from->user;

    if (from->type == RDDP_EVENT_CONNECT_REQUEST)
        return event_of_request(event, from);
    if (from->type >= RDDP_EVENT_USER)
        event_of_own(event, from->user, from);
    else if (from->resolution)
        cm_datagram_event(event, from->user, from);
    else if (!qp->id)
        return false; /* it was destroyed, and its queue pair was not */
    else if (from->type == RDDP_EVENT_ESTABLISHED)
        event_of_start(event, qp->id, from);
    else
        event_of_end(event, qp->id, from);
    return true;
}
