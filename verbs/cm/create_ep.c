/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* create_ep.c - ids that are made, resolved and given their queues by one call, and the requests to those that listen.
 */
#include <errno.h>
#include <stdlib.h>

#include <rdma/rdma_verbs.h>

#include "verbs/cm/cm.h"

enum { RESOLVE_MS = 2000 };

/* What queue pairs of those who connect to a passive id will be like. */
static int remember(struct cm_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    id->ep_pd = pd;
    if (!init)
        return 0;
    id->ep_init = malloc(sizeof(*init));
    if (!id->ep_init)
        return cm_fail(ENOMEM);
    *id->ep_init = *init;
    id->ep_init->qp_type = id->ibv.qp_type;
    return 0;
}

static int endpoint_resolve(struct rdma_cm_id *id, const struct rdma_addrinfo *info)
{
    if (rdma_resolve_addr(id, info->ai_src_addr, info->ai_dst_addr, RESOLVE_MS))
        return -1;
    return rdma_resolve_route(id, RESOLVE_MS);
}

static int endpoint_set_up(struct rdma_cm_id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd,
                           struct ibv_qp_init_attr *init)
{
    if (info->ai_flags & RAI_PASSIVE)
        return rdma_bind_addr(id, info->ai_src_addr) || remember(cm_of(id), pd, init) ? -1 : 0;
    if (endpoint_resolve(id, info))
        return -1;
    if (!init)
        return 0;
    init->qp_type = (enum ibv_qp_type)info->ai_qp_type;
    return rdma_create_qp(id, pd, init);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *info, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *init)
{
    struct rdma_cm_id *id;

    if (rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)info->ai_port_space))
        return -1;
    if (endpoint_set_up(id, info, pd, init)) {
        int error = errno;
        rdma_destroy_ep(id);
        return cm_fail(error);
    }
    *out = id;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

static int make_synchronous(const struct cm_id *listener, struct rdma_cm_id *id)
{
    if (listener->ep_init) {
        struct ibv_qp_init_attr init = *listener->ep_init; /* what is made for this id is not for the next */
        if (rdma_create_qp(id, listener->ep_pd, &init))
            return -1;
    }
    return rdma_migrate_id(id, NULL);
}

int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **out)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    int error;

    if (!cm_of(listener)->is_sync)
        return cm_fail(EINVAL);
    if (listener->event) {
        rdma_ack_cm_event(listener->event);
        listener->event = NULL;
    }
    if (rdma_get_cm_event(listener->channel, &event))
        return -1;
    error = event->status ? (event->status < 0 ? -event->status : event->status) : 0;
    if (!error && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        error = EINVAL;
    id = event->id;
    if (!error && make_synchronous(cm_of(listener), id)) {
        error = errno;
        rdma_reject(id, NULL, 0);
        rdma_destroy_ep(id);
    }
    if (error) {
        rdma_ack_cm_event(event);
        return cm_fail(error);
    }
    id->event = event; /* given back at its next call */
    *out = id;
    return 0;
}
