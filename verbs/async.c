/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.c - asynchronous events of a context. Its channel is one of rddp, and so is the descriptor. */
#include <errno.h>

#include "verbs/context.h"
#include "verbs/verbs_object.h"

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct rddp_async_event from;
    int error = rddp_get_async_event(open_device_of(context)->async, &from);

    if (error) {
        errno = -error;
        return -1;
    }
    event->event_type = (enum ibv_event_type)from.type;
    if (from.cq)
        event->element.cq = from.user;
    else if (from.srq)
        event->element.srq = from.user;
    else
        event->element.qp = from.user;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct rddp_async_event to = {.type = (enum rddp_async_type)event->event_type};

    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        to.cq = cq_of(event->element.cq)->rddp;
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        to.srq = srq_of(event->element.srq)->rddp;
        break;
    default:
        to.qp = qp_of(event->element.qp)->rddp;
    }
    rddp_ack_async_event(&to);
}
