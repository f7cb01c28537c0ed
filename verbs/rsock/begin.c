/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* begin.c - a connection begins as the events of rdma_cm come: a call that looks at the socket takes them. */
#include <errno.h>

#include "verbs/rsock/rsocket.h"

/* What rdma_connect() and rdma_accept() send. A reader that some adapters need for their beginning is one. */
void rs_set_param(const struct rsocket *rs, struct rdma_conn_param *param, uint8_t data[RS_HELLO_SIZE])
{
    struct rs_hello hello;

    rs_hello_fill(rs, &hello);
    rs_hello_encode(data, &hello);
    *param = (struct rdma_conn_param){.private_data = data,
                                      .private_data_len = RS_HELLO_SIZE,
                                      .responder_resources = 1,
                                      .initiator_depth = 1,
                                      .flow_control = 1,
                                      .retry_count = 7,
                                      .rnr_retry_count = 7};
}

static int ask_for_connection(struct rsocket *rs)
{
    uint8_t data[RS_HELLO_SIZE];
    struct rdma_conn_param param;
    int error = rs_queues_make(rs);

    if (error)
        return error;
    rs_set_param(rs, &param, data);
    return rdma_connect(rs->id, &param) ? errno : 0;
}

/* The end that connected finds the peer's private data in this event; the other had them before. */
static int connection_begin(struct rsocket *rs, const struct rdma_conn_param *param)
{
    struct rs_hello hello = rs->peer;

    if (rs->state == RS_CONNECTING && !rs_hello_decode(&hello, param->private_data, param->private_data_len))
        return EPROTO;
    rs_start(rs, &hello);
    return 0;
}

static int event_errno(const struct rdma_cm_event *event)
{
    const int status = event->status < 0 ? -event->status : event->status;

    switch (event->event) {
    case RDMA_CM_EVENT_REJECTED:
        return ECONNREFUSED;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        return status ? status : EHOSTUNREACH;
    case RDMA_CM_EVENT_UNREACHABLE:
        return status ? status : ETIMEDOUT;
    default:
        return status ? status : ECONNRESET;
    }
}

static int connection_step(struct rsocket *rs, const struct rdma_cm_event *event)
{
    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        return rdma_resolve_route(rs->id, RS_RESOLVE_MS) ? errno : 0;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return ask_for_connection(rs);
    case RDMA_CM_EVENT_ESTABLISHED:
        return connection_begin(rs, &event->param.conn);
    default:
        return event_errno(event);
    }
}

void rs_advance_connection(struct rsocket *rs)
{
    struct rdma_cm_event *event;
    int error;

    while ((rs->state == RS_CONNECTING || rs->state == RS_ACCEPTING) && !rdma_get_cm_event(rs->events, &event)) {
        error = connection_step(rs, event);
        rdma_ack_cm_event(event);
        if (error)
            rs_break(rs, error);
    }
}
