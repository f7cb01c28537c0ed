/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reset.c - resetting, failing and detaching a queue pair, by its owner. */
#include "api/reset.h"

#include <stdlib.h>

#include "drive/doorbell_batch.h"
#include "drive/inherit.h"

/* Detaches the queue pair: its connection ends in the background. The caller is the driver and holds the endpoint.
 * First sends what a poster could not send and left to the driver. */
static void leave_endpoint(struct rddp_qp *qp, struct endpoint *endpoint)
{
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    qp_set_endpoint(qp, NULL);
    endpoint->qp = NULL;
    if (endpoint->closed)
        return;
    endpoint->kind->detach(endpoint, loop_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

void qp_strip(struct rddp_qp *qp)
{
    struct endpoint *endpoint;

    bells_forget(qp);
    endpoint = qp_hold(qp);
    if (endpoint) {
        leave_endpoint(qp, endpoint);
        qp_let_go(endpoint);
    }
    if (qp->channel) {
        event_forget(qp->channel, qp, NULL);
        qp->channel->users--;
        pthread_mutex_lock(&qp->context->lock);
        qp->channel = NULL;
        pthread_mutex_unlock(&qp->context->lock);
    }
    cq_forget(qp->qp.attr.send_cq, qp->qp.attr.number);
    cq_forget(qp->qp.attr.recv_cq, qp->qp.attr.number);
}

int rddp_reset_qp(struct rddp_qp *qp)
{
    int error = context_enter(qp->context);

    if (error)
        return error;
    qp_strip(qp);
    qp_reset(&qp->qp, &qp->made, qp->buffer);
    free(qp->window_buffer);
    qp->window_buffer = NULL;
    qp->last = (struct rddp_qp_info){.state = RDDP_QP_IDLE};
    qp->put_off = 0;
    return 0;
}

/* No Terminate, because it is not the peer's fault: segments already cut are sent, then the stream ends. The caller is
 * the driver and holds the endpoint. */
static void fail_connection(struct endpoint *endpoint, const struct fault_note *note)
{
    if (endpoint->is_up)
        life_fail(endpoint->life, note, false, loop_now_us());
    else
        endpoint->kind->lost(endpoint, note->fault);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

int rddp_fail_qp(struct rddp_qp *qp)
{
    const struct fault_note note = {.fault = FAULT_OWNER};
    int error = context_enter(qp->context);
    struct endpoint *endpoint;

    if (error)
        return error;
    endpoint = qp_hold(qp);
    if (endpoint) {
        fail_connection(endpoint, &note);
        qp_let_go(endpoint);
        return 0;
    }
    pthread_mutex_lock(&qp->context->lock);
    qp_fail(&qp->qp, &note);
    pthread_mutex_unlock(&qp->context->lock);
    return 0;
}
