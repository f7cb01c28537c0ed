/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.c - a queue pair and its endpoint find and lose each other. */
#include "api/api.h"

void qp_settle_alone(struct rddp_qp *qp)
{
    pthread_mutex_lock(&qp->context->lock);
    if (!qp->endpoint)
        qp_settle(&qp->qp);
    pthread_mutex_unlock(&qp->context->lock);
}

/* Posts that came before this found the endpoint and rang; what they left when it goes is flushed here. */
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
