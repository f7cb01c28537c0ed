/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* id.c - the calls that make, destroy and ask ids; synchronous ones wait here. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/cm/datagram.h"

/* Where the events of queue pairs go that outlive their id. Under verbs_lock. */
static struct rddp_event_channel *nowhere;

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context, enum rdma_port_space ps)
{
    bool is_sync = !channel;
    struct cm_id *id;

    if (ps != RDMA_PS_TCP && (ps != RDMA_PS_UDP || !cm_ib_device()))
        return cm_fail(EPROTONOSUPPORT); /* datagrams: iWARP has none */
    if (is_sync && !(channel = rdma_create_event_channel()))
        return -1;
    id = cm_id_new(channel, context, ps);
    if (!id) {
        if (is_sync)
            rdma_destroy_event_channel(channel);
        return cm_fail(ENOMEM);
    }
    id->is_sync = is_sync;
    if (cm_is_datagram(id))
        id->device = cm_ib_device();
    *out = &id->ibv;
    return 0;
}

/* Takes the events of a queue pair away from those who wait for them. */
static void send_nowhere(const struct verbs_qp *qp)
{
    if (!nowhere)
        nowhere = cm_channel_new();
    if (nowhere)
        rddp_migrate_qp(qp->rddp, nowhere);
}

/* The queue pair goes first and its id remains, which learns that the connection is over. */
static void on_qp_going(struct verbs_qp *qp)
{
    struct cm_id *id = qp->id;

    id->has_left = true;
    if (cm_is_datagram(id))
        ; /* datagrams have no connection that could be over */
    else if (id->state == CM_CONNECTED && !cm_channel_post(id, RDMA_CM_EVENT_DISCONNECTED, 0))
        id->state = CM_ENDING;
    else if (id->state == CM_CONNECTING && !cm_channel_post(id, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNABORTED))
        id->state = CM_FAILED;
    send_nowhere(qp);
    id->qp = NULL;
    if (id->ibv.qp == &qp->ibv)
        id->ibv.qp = NULL;
    qp->id = NULL;
}

void cm_id_attach(struct cm_id *id, struct verbs_qp *qp)
{
    verbs_qp_is_going = on_qp_going;
    if (qp->id) /* the one that it had before */
        qp->id->qp = NULL;
    if (id->qp) /* it did not connect */
        id->qp->id = NULL;
    id->qp = qp;
    qp->id = id;
}

int cm_id_disconnect(struct cm_id *id)
{
    int error = rddp_disconnect(id->qp->rddp);

    return error == -ENOTCONN ? rddp_fail_qp(id->qp->rddp) : error;
}

/* The application destroys its queue pair later, or never: its channel must not wait for that. */
static void id_detach(struct cm_id *id)
{
    struct verbs_qp *qp = id->qp;

    if (!cm_is_datagram(id) && (id->state == CM_CONNECTED || id->state == CM_CONNECTING))
        cm_id_disconnect(id);
    send_nowhere(qp);
    qp->id = NULL;
}

int rdma_destroy_id(struct rdma_cm_id *ibv)
{
    struct cm_id *id = cm_of(ibv);

    if (ibv->event)
        rdma_ack_cm_event(ibv->event);
    verbs_enter();
    if (id->qp)
        id_detach(id);
    if (id->request)
        rddp_reject(id->request, NULL, 0);
    if (id->resolution)
        rddp_destroy_resolution(id->resolution);
    for (unsigned i = 0; i < CM_DEVICES; i++) {
        if (id->listener[i].rddp) /* requests that were not taken go with it */
            rddp_destroy_listener(id->listener[i].rddp);
    }
    rddp_withdraw_events(cm_channel_of(ibv->channel)->rddp, id);
    cm_channel_settle(id);
    verbs_leave();
    if (id->is_sync)
        rdma_destroy_event_channel(ibv->channel);
    cm_id_free(id);
    return 0;
}

int cm_complete(struct cm_id *id)
{
    const struct rdma_cm_event *event;

    if (id->ibv.event) {
        rdma_ack_cm_event(id->ibv.event);
        id->ibv.event = NULL;
    }
    if (rdma_get_cm_event(id->ibv.channel, &id->ibv.event))
        return -1;
    event = id->ibv.event;
    if (!event->status)
        return 0;
    if (event->event == RDMA_CM_EVENT_REJECTED)
        return cm_fail(ECONNREFUSED);
    return cm_fail(event->status < 0 ? -event->status : event->status);
}

int rdma_set_option(struct rdma_cm_id *ibv, int level, int name, void *value, size_t length)
{
    struct cm_id *id = cm_of(ibv);
    int flag = 0;

    if (level != RDMA_OPTION_ID)
        return cm_fail(ENOSYS); /* paths of InfiniBand */
    if (name == RDMA_OPTION_ID_REUSEADDR)
        /* Ports are always shared as REUSEADDR does for TCP: no connection of the past keeps one. */
        return length != sizeof(flag) || id->state == CM_LISTENING ? cm_fail(EINVAL) : 0;
    if (name == RDMA_OPTION_ID_AFONLY) {
        if (length != sizeof(flag) || ibv->route.addr.src_addr.sa_family)
            return cm_fail(EINVAL);
        memcpy(&flag, value, sizeof(flag));
        id->af_only = flag;
        return 0;
    }
    if (length != sizeof(uint8_t))
        return cm_fail(EINVAL);
    if (name == RDMA_OPTION_ID_ACK_TIMEOUT) {
        id->ack_timeout = *(uint8_t *)value;
        return 0; /* TCP has its own */
    }
    if (name == RDMA_OPTION_ID_TOS)
        return 0;
    return cm_fail(ENOSYS);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return id->route.addr.src_sin.sin_port; /* at the same place for IPv6 */
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return id->route.addr.dst_sin.sin_port;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    (void)event; /* InfiniBand's COMM_EST: iWARP has told by itself */
    return cm_of(id)->state < CM_CONNECTING ? cm_fail(EINVAL) : 0;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
    struct ibv_context **list = calloc(CM_DEVICES + 1, sizeof(*list));
    struct ibv_device *device;
    unsigned n = 0;

    for (unsigned i = 0; list && (device = verbs_device_at(i)); i++) {
        list[n] = verbs_shared_context(device);
        n += list[n] != NULL;
    }
    if (list && !n) {
        free(list);
        list = NULL;
    }
    if (num_devices)
        *num_devices = (int)n;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}
