/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* modify.c - queue pairs of RoCE, connected by hand: their numbers, and the steps from RESET to RTS. */
#include "api/modify.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "api/connect.h"
#include "drive/inherit.h"
#include "drive/transports.h"
#include "endpoint/attr.h"
#include "roce/io/roce_port.h"

/* --- rights ------------------------------------------------------------------------------------------------------ */

enum { ACCESS_REMOTE = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC };

bool qp_access_is_remote(unsigned access)
{
    return !(access & ~(unsigned)(ACCESS_REMOTE | RDDP_ACCESS_LOCAL_WRITE));
}

unsigned qp_access_refused(unsigned access)
{
    return ACCESS_REMOTE & ~access;
}

unsigned qp_access_granted(const struct rddp_qp *qp)
{
    return ACCESS_REMOTE & ~qp->qp.attr.refused;
}

/* --- numbers ----------------------------------------------------------------------------------------------------- */

/* A queue pair of another type may have the number of a slot. */
static bool qp_take_number(struct rddp_context *context, uint32_t number)
{
    bool taken;

    pthread_mutex_lock(&context->lock);
    taken = ids_take(&context->qp_numbers, number);
    pthread_mutex_unlock(&context->lock);
    return taken;
}

int qp_open_slot(struct rddp_context *context, struct roce_slot **slot)
{
    enum { TRIES = 8 };
    const struct transport_ib *ib = transport_by_hand();
    struct loop *loop = loop_next(context);
    int error = -ENOMEM;

    if (!ib)
        return -EPROTONOSUPPORT;
    loop_lock(loop);
    for (unsigned i = 0; i < TRIES && error == -ENOMEM; i++) {
        error = ib->open_slot(loop, slot);
        if (error || qp_take_number(context, roce_slot_number(*slot)))
            break;
        ib->close_slot(*slot);
        error = -ENOMEM;
    }
    loop_unlock(loop);
    return error;
}

void qp_close_slot(struct roce_slot *slot)
{
    struct loop *loop = slot->port->loop;

    loop_lock(loop);
    transport_by_hand()->close_slot(slot);
    loop_unlock(loop);
}

/* --- steps ------------------------------------------------------------------------------------------------------- */

static int step_to_init(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    if (!qp_access_is_remote(attr->access))
        return -EINVAL;
    qp->ib.access = attr->access;
    qp->ib.pkey = attr->pkey;
    qp->ib.qkey = attr->qkey;
    pthread_mutex_lock(&qp->context->lock);
    qp->qp.attr.refused = qp_access_refused(attr->access);
    pthread_mutex_unlock(&qp->context->lock);
    return 0;
}

/* What the peer of a connected queue pair is like. */
static int connect_peer(struct rddp_qp *qp, const struct rddp_ib_attr *attr, struct endpoint **endpoint)
{
    struct rddp_ib_attr ib = *attr;
    int error;

    if (!transport_by_hand()->may_receive(attr))
        return -EINVAL;
    ib.access = qp->ib.access;
    ib.pkey = qp->ib.pkey;
    ib.qkey = qp->ib.qkey;
    ib.max_dest_rd_atomic = (uint8_t)at_most(attr->max_dest_rd_atomic, qp->made.ird);
    ib.max_rd_atomic = (uint8_t)at_most(attr->max_rd_atomic, qp->made.ord);
    error = transport_by_hand()->receive(qp->slot, qp, &ib, endpoint);
    if (!error)
        qp->ib = ib;
    return error;
}

/* The connection manager is about to connect it, in another thread. */
static bool qp_is_claimed(const struct rddp_qp *qp)
{
    bool is_claimed;

    pthread_mutex_lock(&qp->context->lock);
    is_claimed = qp->channel;
    pthread_mutex_unlock(&qp->context->lock);
    return is_claimed;
}

static int step_to_rtr(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    bool is_ud = qp->type == RDDP_QPT_UD;
    struct endpoint *endpoint;
    int error = qp_is_claimed(qp) ? -EINVAL : 0;

    if (!error)
        error = is_ud ? transport_by_hand()->receive_ud(qp->slot, qp, &qp->ib, &endpoint)
                      : connect_peer(qp, attr, &endpoint);
    if (error)
        return error;
    spin_lock(&qp->spin);
    qp->only_receives = true;
    spin_unlock(&qp->spin);
    qp_join(qp, endpoint);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
    return 0;
}

static int step_to_rts(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    struct endpoint *endpoint = qp->endpoint;

    if (!transport_by_hand()->may_send(attr))
        return -EINVAL;
    qp->ib.sq_psn = attr->sq_psn;
    qp->ib.timeout = attr->timeout;
    qp->ib.retry_cnt = attr->retry_cnt;
    qp->ib.rnr_retry = attr->rnr_retry;
    qp->ib.max_rd_atomic = (uint8_t)at_most(attr->max_rd_atomic, qp->made.ord);
    if (endpoint) { /* else it has failed meanwhile, and requests are flushed */
        endpoint_hold(endpoint);
        if (qp->type == RDDP_QPT_UD)
            transport_by_hand()->send_ud(endpoint, qp->ib.sq_psn);
        else
            transport_by_hand()->send(endpoint, &qp->ib);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    spin_lock(&qp->spin);
    qp->only_receives = false;
    spin_unlock(&qp->spin);
    return 0;
}

static int step_again(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    struct endpoint *endpoint = qp->endpoint;
    int error = 0;

    if (endpoint)
        endpoint_hold(endpoint);
    if (endpoint && qp->type == RDDP_QPT_RC && qp_access_is_remote(attr->access))
        error = transport_by_hand()->set_rnr_timer(endpoint, attr->min_rnr_timer);
    if (!error)
        error = step_to_init(qp, attr);
    if (!error)
        qp->ib.min_rnr_timer = attr->min_rnr_timer;
    if (!error && endpoint && qp->type == RDDP_QPT_UD)
        transport_by_hand()->set_key_ud(endpoint, attr->qkey);
    if (endpoint)
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    return error;
}

/* In SQD nothing of ours is under way, and more may change. */
static int step_in_sqd(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    struct endpoint *endpoint = qp->type == RDDP_QPT_UD ? NULL : qp->endpoint;
    struct rddp_ib_attr ib = *attr;
    int error = qp_access_is_remote(attr->access) ? 0 : -EINVAL;

    ib.max_rd_atomic = (uint8_t)at_most(attr->max_rd_atomic, qp->made.ord);
    ib.max_dest_rd_atomic = (uint8_t)at_most(attr->max_dest_rd_atomic, qp->made.ird);
    if (ib.peer.ss_family == AF_UNSPEC) {
        ib.peer = qp->ib.peer;
        ib.local = qp->ib.local;
    }
    if (!error && endpoint) {
        endpoint_hold(endpoint);
        error = transport_by_hand()->set_drained(endpoint, &ib, qp->type == RDDP_QPT_RC);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    if (!error)
        error = step_again(qp, attr);
    if (error || !endpoint)
        return error;
    qp->ib.local = ib.local;
    qp->ib.peer = ib.peer;
    if (qp->type == RDDP_QPT_RC) {
        qp->ib.timeout = ib.timeout;
        qp->ib.retry_cnt = ib.retry_cnt;
        qp->ib.rnr_retry = ib.rnr_retry;
        qp->ib.max_rd_atomic = ib.max_rd_atomic;
        qp->ib.max_dest_rd_atomic = ib.max_dest_rd_atomic;
    }
    return 0;
}

static int step_drain(struct rddp_qp *qp, bool drains)
{
    struct endpoint *endpoint = qp->endpoint;

    if (!endpoint) /* it has failed meanwhile */
        return 0;
    endpoint_hold(endpoint);
    if (qp->type == RDDP_QPT_UD)
        transport_by_hand()->drain_ud(endpoint, drains);
    else
        transport_by_hand()->drain(endpoint, drains);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
    return 0;
}

static int step_to_sqd(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    (void)attr;
    return step_drain(qp, true);
}

static int step_back_to_rts(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    (void)attr;
    return step_drain(qp, false);
}

static int step_restart(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    struct endpoint *endpoint = qp->endpoint;

    (void)attr;
    if (!endpoint) /* it has failed meanwhile */
        return 0;
    endpoint_hold(endpoint);
    if (qp->type == RDDP_QPT_UD)
        transport_by_hand()->restart_ud(endpoint);
    else
        transport_by_hand()->restart(endpoint);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
    return 0;
}

/* A line of the table: a step, and what does it. */
static const struct step {
    enum rddp_ib_state from, to;
    int (*take)(struct rddp_qp *qp, const struct rddp_ib_attr *attr);
} steps[] = {
    {RDDP_IB_RESET, RDDP_IB_INIT, step_to_init}, {RDDP_IB_INIT, RDDP_IB_INIT, step_to_init},
    {RDDP_IB_INIT, RDDP_IB_RTR, step_to_rtr},    {RDDP_IB_RTR, RDDP_IB_RTS, step_to_rts},
    {RDDP_IB_RTS, RDDP_IB_RTS, step_again},      {RDDP_IB_RTS, RDDP_IB_SQD, step_to_sqd},
    {RDDP_IB_SQD, RDDP_IB_SQD, step_in_sqd},     {RDDP_IB_SQD, RDDP_IB_RTS, step_back_to_rts},
    {RDDP_IB_SQE, RDDP_IB_RTS, step_restart},
};

static enum rddp_ib_state ib_state(const struct rddp_qp *qp)
{
    if (qp->qp.state == QP_ERROR)
        return RDDP_IB_ERR;
    return qp->qp.sends_failed ? RDDP_IB_SQE : qp->ib.state;
}

/* The caller has locked the loop. */
static int take_step(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    int error;

    for (unsigned i = 0; i < countof(steps); i++) {
        if (steps[i].from != ib_state(qp) || steps[i].to != attr->state)
            continue;
        error = steps[i].take(qp, attr);
        if (!error)
            qp->ib.state = attr->state;
        return error;
    }
    return -EINVAL;
}

int rddp_modify_qp(struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    int error = context_use(qp->context);
    struct loop *loop;

    if (error)
        return error;
    if (qp->type == RDDP_QPT_CONNECTED)
        return -EINVAL;
    if (attr->state == RDDP_IB_RESET)
        return rddp_reset_qp(qp);
    if (attr->state == RDDP_IB_ERR)
        return rddp_fail_qp(qp);
    loop = qp->slot->port->loop;
    loop_lock(loop);
    error = take_step(qp, attr);
    loop_unlock(loop);
    return error;
}

int rddp_query_ib(struct rddp_qp *qp, struct rddp_ib_attr *attr)
{
    int error = context_enter(qp->context);

    if (error)
        return error;
    if (qp->type == RDDP_QPT_CONNECTED)
        return -EINVAL;
    loop_lock(qp->slot->port->loop);
    *attr = qp->ib;
    attr->access = qp_access_granted(qp);
    attr->state = ib_state(qp);
    loop_unlock(qp->slot->port->loop);
    return 0;
}

int rddp_path_mtu(const struct sockaddr *peer, socklen_t length)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    const struct transport_ib *ib = transport_by_hand();

    if (!ib)
        return -EPROTONOSUPPORT;
    if (length > sizeof(address) || length < sizeof(struct sockaddr_in))
        return -EINVAL;
    memcpy(&address, peer, length);
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return -EAFNOSUPPORT;
    if (address.ss_family == AF_INET6 && length < sizeof(struct sockaddr_in6))
        return -EINVAL;
    return ib->path_mtu(&address);
}
