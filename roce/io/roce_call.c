/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_call.c - a queue pair is connected by the connection manager, and disconnected. */
#include "roce/io/roce_call.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "endpoint/attr.h"
#include "roce/io/roce_attr.h"
#include "roce/io/roce_path.h"

enum {
    HOP_LIMIT = 64,
    AGAIN_US = 5000, /* between a refusal and the next call */
};

static struct rcm *engine_of(const struct endpoint_roce *e)
{
    return roce_cm_engine(e->call.conn->cm);
}

/* --- what both ends are told ------------------------------------------------------------------------------------- */

static void call_keep_private(struct roce_call *call, const struct rcm_message *m, uint32_t head)
{
    call->octets = (uint8_t)(m->octets - head < sizeof(call->data) ? m->octets - head : sizeof(call->data));
    memcpy(call->data, m->data + head, call->octets);
}

static int draw_psn(uint32_t *psn)
{
    if (getrandom(psn, sizeof(*psn), 0) != sizeof(*psn))
        return -EAGAIN;
    *psn &= BTH_MASK24;
    return 0;
}

/* What this end is like. The first PSN of the peer is drawn at random: who does not see the packets would have to guess
 * it. */
static int own_terms(const struct endpoint_roce *e, const struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                     struct rcm_terms *terms)
{
    *terms = (struct rcm_terms){
        .qpn = roce_slot_number(e->slot),
        .responder_resources = (uint8_t)at_most(attr->ird, qp->qp.attr.ird),
        .initiator_depth = (uint8_t)at_most(attr->ord, qp->qp.attr.ord),
        .transport = RCM_RC,
        .retries = (uint8_t)at_most(attr->retry_count, RC_RETRIES_MAX),
        .rnr_retries = (uint8_t)at_most(attr->rnr_retry_count, RC_RNR_ENDLESS),
        .ack_delay = RCM_TIMEOUT_LEAST,
        .pkey = BTH_PKEY_DEFAULT,
    };
    return draw_psn(&terms->psn);
}

/* What rddp_query_ib() tells of a queue pair that could have been connected by hand. */
static void show_attributes(struct rddp_qp *qp, const struct rddp_ib_attr *ib, const struct sockaddr_storage *local,
                            const struct sockaddr_storage *peer)
{
    struct rddp_ib_attr shown = *ib;

    shown.state = RDDP_IB_RTS;
    shown.access = qp->ib.access;
    shown.pkey = qp->ib.pkey;
    shown.local = *local;
    shown.peer = *peer;
    qp->ib = shown;
}

static uint8_t ack_timeout_of(const struct rddp_conn_attr *attr)
{
    return (uint8_t)at_most(attr->ack_timeout, ROCE_ATTR_CODE_MAX);
}

/* The peer is known, and so is what was agreed on. Each end has told the other which PSN to begin with. */
static int call_connect_pair(struct endpoint_roce *e, struct rddp_qp *qp, const struct rcm_terms *own, uint32_t mtu,
                             uint8_t ack_timeout)
{
    const struct sockaddr_storage local = e->endpoint.local, peer = e->endpoint.peer;
    const struct rcm_conn *conn = &e->call.conn->conn;
    struct rddp_ib_attr ib;
    int error;

    rddp_ib_attr_init(&ib);
    ib.peer_qpn = e->call.peer.qpn;
    ib.rq_psn = own->psn;
    ib.sq_psn = e->call.peer.psn;
    ib.path_mtu = mtu;
    ib.timeout = ack_timeout;
    ib.retry_cnt = e->pair.life.active ? e->call.asked.terms.retries : e->call.peer.retries;
    ib.rnr_retry = e->call.peer.rnr_retries;
    ib.max_dest_rd_atomic = conn->responder_resources;
    ib.max_rd_atomic = conn->initiator_depth;
    if (qp->slot)
        show_attributes(qp, &ib, &local, &peer);
    error = roce_pair_connect(e, qp, &local, &peer, &ib);
    if (!error && own->rnr_retries != RC_RNR_ENDLESS)
        e->pair.responder.attr.rnr_tries = own->rnr_retries;
    return error;
}

/* --- events of both ends ----------------------------------------------------------------------------------------- */

/* Neither end expects anything of the other. */
static void call_is_over(struct endpoint_roce *e, uint64_t now_us)
{
    life_fin(&e->pair.life, now_us);
    life_peer_ended(&e->pair.life, false, now_us);
}

static void on_rejected(struct endpoint_roce *e, const struct rcm_event *event, uint64_t now_us)
{
    struct life *life = &e->pair.life;

    if (event->reason == RCM_NO_SERVICE && life->active && now_us < e->call.insist_us) {
        e->call.again_us = now_us + AGAIN_US;
    } else if (event->reason == RCM_NO_SERVICE && life->active) {
        endpoint_fail_to_connect(&e->endpoint, -ECONNREFUSED);
    } else if (event->reason == RCM_CONSUMER && life->active && life_in_startup(life)) {
        if (event->message)
            call_keep_private(&e->call, event->message, 0);
        life_rejected(life, now_us);
        call_is_over(e, now_us);
    } else {
        life_lost(life, FAULT_REJECTED);
    }
}

static void on_unreachable(struct endpoint_roce *e)
{
    if (e->pair.life.active)
        endpoint_fail_to_connect(&e->endpoint, -ETIMEDOUT);
    else
        life_lost(&e->pair.life, FAULT_STALLED);
}

/* The peer has accepted. */
static void on_answered(struct endpoint_roce *e, const struct rcm_event *event)
{
    struct life *life = &e->pair.life;
    int error;

    if (life->state != CONN_WAIT_REPLY)
        return; /* it has failed meanwhile, and is left */
    e->call.peer = event->message->terms;
    call_keep_private(&e->call, event->message, 0);
    error = call_connect_pair(e, e->endpoint.qp, &e->call.asked.terms, e->call.mtu, e->call.asked.ack_timeout);
    if (error) {
        endpoint_fail_to_connect(&e->endpoint, error);
        return;
    }
    (void)rcm_confirm(engine_of(e), &e->call.conn->conn);
    life_established(life);
}

static void on_established(struct endpoint_roce *e)
{
    e->call.limit_us = 0;
    if (e->pair.life.state == CONN_READY && !e->pair.life.established)
        life_established(&e->pair.life);
}

/* The peer asks for another connection of its queue pair, and so knows nothing of this one: it has restarted. A DREQ
 * follows, as after a stale REQ in InfiniBand's rules. */
static void on_doubted(struct endpoint_roce *e, uint64_t now_us)
{
    const struct fault_note note = {.fault = FAULT_LOST};

    life_fail(&e->pair.life, &note, false, now_us);
}

static void call_on_event(struct endpoint_roce *e, const struct rcm_event *event, uint64_t now_us)
{
    switch (event->kind) {
    case RCM_EVENT_ANSWERED:
        on_answered(e, event);
        break;
    case RCM_EVENT_ESTABLISHED:
        on_established(e);
        break;
    case RCM_EVENT_DOUBTED:
        on_doubted(e, now_us);
        break;
    case RCM_EVENT_REJECTED:
        on_rejected(e, event, now_us);
        break;
    case RCM_EVENT_UNREACHABLE:
        on_unreachable(e);
        break;
    case RCM_EVENT_GAVE_WAY:
        life_lost(&e->pair.life, FAULT_LOST);
        break;
    case RCM_EVENT_GONE:
        e->call.conn = NULL;
        if (e->pair.life.state == CONN_ENDING)
            call_is_over(e, now_us);
        break;
    case RCM_EVENT_DISCONNECTED:
        e->call.left = true;
        life_peer_ended(&e->pair.life, false, now_us);
        call_is_over(e, now_us);
        break;
    default:
        break;
    }
}

static void call_event(struct roce_cm_user *user, const struct rcm_event *event)
{
    struct endpoint_roce *e = container_of(user, struct endpoint_roce, call.user);
    struct endpoint *endpoint = &e->endpoint;

    endpoint_hold(endpoint);
    call_on_event(e, event, reactor_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

static int call_begin(struct endpoint_roce *e, struct roce_cm *cm)
{
    e->call.user.event = call_event;
    e->call.conn = roce_cm_new(cm, &e->call.user);
    return e->call.conn ? 0 : -ENOMEM;
}

/* --- the active end ---------------------------------------------------------------------------------------------- */

/* Sends the request. Returns 0 or -ENOMEM. */
static int call_ask(struct endpoint_roce *e, uint64_t now_us)
{
    int error = call_begin(e, roce_cm_of(e->slot->port->host));

    if (error)
        return error;
    (void)rcm_connect(engine_of(e), &e->call.conn->conn, &e->call.asked, now_us);
    roce_cm_settle(e->call.conn->cm);
    return 0;
}

/* The listener was not there: perhaps it is now. */
static void roce_call_again(struct endpoint_roce *e, uint64_t now_us)
{
    int error = e->slot->port->host ? 0 : -ENODEV;

    e->call.again_us = 0;
    if (e->call.conn) /* of the call that was refused */
        roce_cm_leave(e->call.conn, false);
    e->call.conn = NULL;
    if (!error)
        error = call_ask(e, now_us);
    if (error)
        endpoint_fail_to_connect(&e->endpoint, error);
}

int roce_call_connect(struct endpoint_roce *e, const struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    struct rcm_connect connect = {
        .service = rcm_service(RCM_SPACE_TCP, roce_address_port(&e->endpoint.peer)),
        .rdma_cm = true,
        .source_port = roce_address_port(&e->endpoint.local),
        .hop_limit = HOP_LIMIT,
        .ack_timeout = ack_timeout_of(attr),
        .response_timeout = RCM_TIMEOUT_DEFAULT,
        .cm_retries = RCM_RETRIES_MAX,
        .timewait_us = rcm_timewait_us(ack_timeout_of(attr)),
        .data = e->call.own,
        .octets = (uint8_t)attr->private_data_length,
    };
    int mtu = roce_path_mtu(&e->endpoint.peer), error;

    if (attr->private_data_length > RCM_IP_PRIVATE)
        return -EINVAL;
    error = mtu < 0 ? mtu : own_terms(e, qp, attr, &connect.terms);
    if (error)
        return error;
    if (attr->private_data_length)
        memcpy(e->call.own, attr->private_data, attr->private_data_length);
    connect.terms.mtu = rcm_mtu_code((uint32_t)mtu);
    connect.path = roce_cm_path(&e->local, &e->peer, roce_address_scope(&e->endpoint.peer));
    e->call.mtu = (uint32_t)mtu;
    e->call.asked = connect;
    e->call.insist_us = reactor_now_us() + (uint64_t)attr->retry_refused_ms * 1000;
    return call_ask(e, reactor_now_us());
}

/* --- the passive end --------------------------------------------------------------------------------------------- */

int roce_call_take(struct endpoint_roce *e, struct roce_cm *cm, const struct rcm_event *event)
{
    int error = call_begin(e, cm);

    if (error)
        return error;
    e->call.peer = event->message->terms;
    e->call.ack_timeout = event->message->route.ack_timeout;
    call_keep_private(&e->call, event->message, RCM_IP_OCTETS);
    rcm_take(roce_cm_engine(cm), &e->call.conn->conn);
    return 0;
}

static int call_accept(struct endpoint_roce *e, struct rddp_qp *qp, const struct rddp_conn_attr *attr, uint64_t now_us)
{
    struct rcm_conn *conn = &e->call.conn->conn;
    struct rcm_accept accept = {.timewait_us = rcm_timewait_us(e->call.ack_timeout),
                                .data = attr->private_data,
                                .octets = (uint8_t)attr->private_data_length};
    int error = own_terms(e, qp, attr, &accept.terms);

    /* What the two agree on is the less of both, as rcm_accept() has it. */
    conn->responder_resources = (uint8_t)at_most(accept.terms.responder_resources, conn->responder_resources);
    conn->initiator_depth = (uint8_t)at_most(accept.terms.initiator_depth, conn->initiator_depth);
    if (!error)
        error = call_connect_pair(e, qp, &accept.terms, rcm_mtu(e->call.peer.mtu), ack_timeout_of(attr));
    if (error)
        return error;
    (void)rcm_accept(engine_of(e), conn, &accept, now_us);
    e->call.limit_us = now_us + e->call.startup_us;
    roce_cm_settle(e->call.conn->cm);
    return 0;
}

int roce_call_accept(struct endpoint_roce *e, struct rddp_qp *qp, const struct rddp_conn_attr *attr, uint64_t now_us)
{
    int error;

    if (!e->call.conn || e->call.conn->conn.state != RCM_REQ_RECEIVED || e->pair.life.state != CONN_WAIT_ANSWER)
        return -ECONNABORTED;
    if (attr->private_data_length > RCM_PRIVATE_REP)
        return -EINVAL;
    error = qp->slot ? roce_slot_join(qp->slot, e->endpoint.loop) : roce_slot_open(e->endpoint.loop, &e->slot);
    if (error)
        return error;
    if (qp->slot)
        e->slot = qp->slot;
    e->owns_slot = !qp->slot;
    return call_accept(e, qp, attr, now_us);
}

int roce_call_reject(struct endpoint_roce *e, const void *data, uint16_t length, uint64_t now_us)
{
    struct rcm_conn *conn = e->call.conn ? &e->call.conn->conn : NULL;

    if (length > RCM_PRIVATE_REJ)
        return -EINVAL;
    if (!conn || rcm_reject(engine_of(e), conn, RCM_CONSUMER, data, (uint8_t)length, now_us))
        return -ECONNABORTED;
    e->call.left = true;
    roce_cm_settle(e->call.conn->cm);
    life_rejected(&e->pair.life, now_us);
    call_is_over(e, now_us);
    return 0;
}

void roce_call_received(struct endpoint_roce *e)
{
    if (!e->call.conn || e->pair.life.established || !e->arrived_us)
        return;
    rcm_communicates(engine_of(e), &e->call.conn->conn);
    roce_cm_settle(e->call.conn->cm);
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

/* What we asked for is done, what the peer asked for is answered: or it has failed, and nothing more is to be said. */
bool roce_call_is_ending(const struct endpoint_roce *e)
{
    const struct life *life = &e->pair.life;

    if (life->state == CONN_DRAINING)
        return life_is_drained(life) && rc_responder_deadline(&e->pair.responder) == RC_NEVER;
    return life->state == CONN_ENDING && !e->call.left;
}

void roce_call_end(struct endpoint_roce *e, uint64_t now_us)
{
    life_fin(&e->pair.life, now_us);
    e->call.left = true;
    if (!e->call.conn)
        return;
    rcm_disconnect(engine_of(e), &e->call.conn->conn, now_us);
    roce_cm_settle(e->call.conn->cm);
}

uint64_t roce_call_deadline(const struct endpoint_roce *e)
{
    uint64_t at = life_in_startup(&e->pair.life) ? life_deadline(&e->pair.life) : UINT64_MAX;

    if (e->call.again_us && e->call.again_us < at)
        at = e->call.again_us;
    return e->call.limit_us && e->call.limit_us < at ? e->call.limit_us : at;
}

void roce_call_tick(struct endpoint_roce *e, uint64_t now_us)
{
    if (roce_call_deadline(e) > now_us)
        return;
    if (e->call.again_us && e->call.again_us <= now_us && life_in_startup(&e->pair.life)) {
        roce_call_again(e, now_us);
        return;
    }
    e->call.again_us = e->call.limit_us = 0;
    on_unreachable(e);
}

void roce_call_leave(struct endpoint_roce *e)
{
    struct roce_cm_conn *conn = e->call.conn;

    e->call.conn = NULL;
    if (conn)
        roce_cm_leave(conn, e->pair.life.note.fault == FAULT_FORKED || e->pair.life.note.fault == FAULT_CLOSED);
}
