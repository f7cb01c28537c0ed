/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.c - claims a queue pair for a connection, connects it with its endpoint, and separates them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "endpoint/objects.h"

int qp_claim(struct rddp_qp *qp, struct rddp_event_channel *const *channel)
{
    int error = -EINVAL;

    pthread_mutex_lock(&qp->context->lock);
    if (!qp->channel && qp->qp.state == QP_IDLE)
        error = event_reserve(qp);
    if (!error) {
        qp->channel = *channel;
        qp->channel->users++;
        qp->is_joining = true;
    }
    pthread_mutex_unlock(&qp->context->lock);
    return error;
}

void qp_unclaim(struct rddp_qp *qp)
{
    pthread_mutex_lock(&qp->context->lock);
    qp->channel->users--;
    qp->channel = NULL;
    qp->is_joining = false;
    if (qp->fails_when_joined)
        qp_fail(&qp->qp, &(struct fault_note){.fault = FAULT_OWNER});
    qp->fails_when_joined = false;
    pthread_mutex_unlock(&qp->context->lock);
}

void qp_own_output(struct rddp_qp *qp)
{
    struct out *out = qp->endpoint ? qp->endpoint->life->out : NULL;

    if (out)
        out_own(out);
}

void qp_settle_alone(struct rddp_qp *qp)
{
    pthread_mutex_lock(&qp->context->lock);
    if (!qp->endpoint)
        qp_settle(&qp->qp);
    pthread_mutex_unlock(&qp->context->lock);
}

/* Posts before this call found the endpoint and rang its bell. Requests that it left behind when it goes are flushed
 * here. Holding both locks makes either of them enough to read qp->endpoint. */
void qp_set_endpoint(struct rddp_qp *qp, struct endpoint *endpoint)
{
    pthread_mutex_lock(&qp->context->lock);
    spin_lock(&qp->spin);
    qp->endpoint = endpoint;
    spin_unlock(&qp->spin);
    pthread_mutex_unlock(&qp->context->lock);
    if (!endpoint)
        qp_settle_alone(qp);
}

/* Receives that are taken may wait for their delivery: the window has as many as can be posted. */
static uint32_t window(const struct qp *qp)
{
    uint32_t depth = rq_state(qp->rq).depth;

    return depth < 2 ? 2 : depth < QP_WINDOW_MAX ? depth : QP_WINDOW_MAX;
}

/* Lets messages arrive while earlier ones are incomplete. */
static int widen(struct rddp_qp *qp)
{
    uint32_t messages = window(&qp->qp);

    qp->window_buffer = calloc(1, qp_widen_size(&qp->qp, messages));
    if (!qp->window_buffer)
        return -ENOMEM;
    qp_widen(&qp->qp, messages, qp->window_buffer);
    return 0;
}

int qp_prepare_unordered(struct rddp_qp *qp)
{
    return qp->window_buffer ? 0 : widen(qp);
}

/* "The initial message number [...] SHOULD be selected at random" (rdma-tcp-segments.txt 3.4). */
int qp_prepare(struct rddp_qp *qp, const struct wire *wire, bool in_order)
{
    uint32_t first, messages = window(&qp->qp);
    void *buffer;

    if (wire->numbering != SEG_NUMBERS_SEQUENCE)
        return in_order || qp->window_buffer ? 0 : widen(qp);
    if (getrandom(&first, sizeof(first), 0) != sizeof(first))
        return -EAGAIN;
    buffer = calloc(1, qp_sequence_size(&qp->qp, messages));
    if (!buffer)
        return -ENOMEM;
    free(qp->window_buffer); /* of an earlier attempt to connect */
    qp->window_buffer = buffer;
    qp_sequence(&qp->qp, first, messages, qp->window_buffer);
    return 0;
}
