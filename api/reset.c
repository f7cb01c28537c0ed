/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reset.c - resetting, failing and detaching a queue pair, by its owner. */
#include "api/reset.h"

#include <stdlib.h>

#include "drive/doorbell_batch.h"
#include "drive/inherit.h"
#include "api/async.h"

/* Detaches the queue pair: its connection ends in the background. The caller is the driver and holds the endpoint.
 * First sends what a poster could not send and left to the driver. */
static void leave_endpoint(struct rddp_qp *qp, struct endpoint *endpoint)
{
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    qp_set_endpoint(qp, NULL);
    endpoint->qp = NULL;
    if (endpoint->closed)
        return;
    endpoint->kind->detach(endpoint, reactor_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

void qp_strip(struct rddp_qp *qp, bool keeps)
{
    struct event_list events = {NULL, NULL};
    struct endpoint *endpoint;

    batch_forget(qp);
    endpoint = qp_hold(qp);
    if (endpoint) {
        leave_endpoint(qp, endpoint);
        qp_release(endpoint);
    }
    pthread_mutex_lock(&qp->context->lock);
    if (qp->channel) {
        event_withdraw(qp->channel, EVENT_OF_QP, qp, &events);
        qp->channel->users--;
        qp->channel = NULL;
    }
    pthread_mutex_unlock(&qp->context->lock);
    event_drop(&events);
    event_unreserve(qp);
    async_drop(&qp->async);
    if (keeps) {
        cq_orphan(qp->qp.attr.send_cq, qp->qp.attr.number);
        cq_orphan(qp->qp.attr.recv_cq, qp->qp.attr.number);
    }
    cq_forget(qp->qp.attr.send_cq, qp->qp.attr.number);
    cq_forget(qp->qp.attr.recv_cq, qp->qp.attr.number);
}

int rddp_reset_qp(struct rddp_qp *qp)
{
    int error = context_enter(qp->context);

    if (error)
        return error;
    qp_strip(qp, false);
    qp_reset(&qp->qp, &qp->made, qp->buffer);
    free(qp->window_buffer);
    qp->window_buffer = NULL;
    qp->last = (struct rddp_qp_info){.state = RDDP_QP_IDLE};
    qp->was_established = false;
    qp->only_receives = false;
    rddp_ib_attr_init(&qp->ib);
    qp->deferred = 0;
    return 0;
}

static const struct fault_note by_owner = {.fault = FAULT_OWNER};

/* No Terminate, because it is not the peer's fault: segments already cut are sent, then the stream ends. */
void qp_fail_connection(struct endpoint *endpoint)
{
    if (endpoint->is_up)
        life_fail(endpoint->life, &by_owner, false, reactor_now_us());
    else
        endpoint->kind->lost(endpoint, FAULT_OWNER);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

/* Fails a queue pair without an endpoint. While another thread connects it or accepts with it, that thread alone
 * changes it, and fails it when it has an endpoint. */
static void fail_alone(struct rddp_qp *qp)
{
    if (qp->is_joining)
        qp->fails_when_joined = true;
    else
        qp_fail(&qp->qp, &by_owner);
}

int rddp_fail_qp(struct rddp_qp *qp)
{
    int error = context_enter(qp->context);
    struct endpoint *endpoint;

    if (error)
        return error;
    endpoint = qp_hold_or_lock(qp);
    if (endpoint)
        qp_fail_connection(endpoint);
    else
        fail_alone(qp);
    qp_release_or_unlock(qp, endpoint);
    return 0;
}
