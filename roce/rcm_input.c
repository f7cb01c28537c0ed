/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_input.c - a message comes in. It counts for a connection only if it comes from its peer's address and has its
 * comm IDs and transaction ID: who is not on the path would have to guess them. */
#include <assert.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/container.h"
#include "roce/rc_requester.h"
#include "roce/rcm_inner.h"

static void drop(struct rcm *cm)
{
    cm->counters.dropped++;
}

/* An event that this message causes. */
static void notify(struct rcm *cm, struct rcm_conn *conn, enum rcm_event_kind kind)
{
    cm->received_conn = conn;
    rcm_notify(cm, conn, kind);
}

static void reject(struct rcm *cm, struct rcm_conn *conn, uint16_t reason)
{
    conn->reason = reason;
    notify(cm, conn, RCM_EVENT_REJECTED);
}

/* --- REQ -------------------------------------------------------------------------------------------------------- */

/* We are at work on the message: the peer shall wait. */
static void ask_for_patience(struct rcm *cm, const struct rcm_conn *conn)
{
    const struct rcm_message m = {.attribute = RCM_MRA,
                                  .transaction = conn->transaction,
                                  .local_id = conn->local_id,
                                  .remote_id = conn->remote_id,
                                  .about = conn->active ? RCM_ABOUT_REP : RCM_ABOUT_REQ,
                                  .service_timeout = RCM_SERVICE_DEFAULT};

    rcm_answer(cm, &conn->path, &m);
}

static bool was_rejected(const struct rcm_conn *conn)
{
    struct rcm_message m;

    return rcm_decode(&m, conn->out, sizeof(conn->out)) == RCM_OK && m.attribute == RCM_REJ;
}

/* A request of the same number, or for the same queue pair, as that of a connection. */
static void refuse_stale(struct rcm *cm, struct rcm_conn *conn)
{
    rcm_deny(cm, RCM_STALE, NULL, 0);
    if (conn->state == RCM_ESTABLISHED)
        notify(cm, conn, RCM_EVENT_DOUBTED);
}

static void request_again(struct rcm *cm, struct rcm_conn *conn)
{
    if (cm->received.transaction != conn->transaction) {
        refuse_stale(cm, conn);
        return;
    }
    cm->counters.duplicates++;
    if (conn->state == RCM_REQ_RECEIVED)
        ask_for_patience(cm, conn);
    else if (conn->state == RCM_REP_SENT || (conn->state == RCM_TIMEWAIT && was_rejected(conn)))
        rcm_send(cm, conn);
    else if (conn->state == RCM_TIMEWAIT)
        rcm_deny(cm, RCM_STALE, NULL, 0);
    else if (conn->state == RCM_DREQ_SENT)
        rcm_deny(cm, RCM_CONSUMER, NULL, 0);
}

/* Returns why this request cannot be for the listener, or 0. */
static uint16_t mismatch(struct rcm *cm, const struct rcm_listener *listener)
{
    const struct rcm_message *m = &cm->received;

    if (!listener || listener->datagram != (m->attribute == RCM_SIDR_REQ))
        return RCM_NO_SERVICE;
    if (!m->local_id || (listener->rdma_cm && !rcm_ip_decode(&cm->received_ip, m->data)))
        return RCM_UNSUPPORTED;
    if (listener->datagram)
        return 0;
    if (m->terms.transport != RCM_RC && m->terms.transport != RCM_UC)
        return RCM_WRONG_TRANSPORT;
    if (m->terms.qpn <= RCM_QPN)
        return RCM_UNSUPPORTED;
    if ((m->terms.pkey ^ BTH_PKEY_DEFAULT) & BTH_PKEY_PARTITION)
        return RCM_WRONG_GID;
    return rcm_mtu(m->terms.mtu) ? 0 : RCM_WRONG_MTU;
}

static void rcm_offer(struct rcm *cm)
{
    struct rcm_listener *listener = rcm_find_listener(cm, cm->received.service, cm->received_path.local);
    uint16_t reason = mismatch(cm, listener);

    if (reason) {
        rcm_deny(cm, reason, NULL, 0);
        return;
    }
    cm->asked = listener;
    cm->offered = false;
}

/* One that has rested for its time is gone, although the host may be late to say so. */
static struct rcm_conn *unless_rested(struct rcm *cm, struct rcm_conn *conn)
{
    if (!conn || conn->state != RCM_TIMEWAIT || conn->timer.due_us > cm->received_us)
        return conn;
    rcm_close(cm, conn);
    return NULL;
}

static void receive_req(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = rcm_by_remote(cm, &cm->received_path, m->local_id, false);

    if (conn) {
        request_again(cm, conn);
        return;
    }
    conn = unless_rested(cm, rcm_by_qpn(cm, &cm->received_path, m->terms.qpn));
    if (conn)
        refuse_stale(cm, conn);
    else
        rcm_offer(cm);
}

static void receive_sidr_req(struct rcm *cm)
{
    struct rcm_conn *conn = rcm_by_remote(cm, &cm->received_path, cm->received.local_id, true);

    if (!conn) {
        rcm_offer(cm);
        return;
    }
    cm->counters.duplicates++;
    if (conn->state == RCM_TIMEWAIT && conn->transaction == cm->received.transaction)
        rcm_send(cm, conn);
}

/* --- answers to requests ---------------------------------------------------------------------------------------- */

/* The connection that an answer is for: the IDs are right. While the peer's is not known, any is. */
static struct rcm_conn *connection_of_message(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = rcm_by_local(cm, &cm->received_path, m->remote_id);

    return conn && (!conn->remote_id || conn->remote_id == m->local_id) ? conn : NULL;
}

/* The same, of messages with the transaction ID of the request. */
static struct rcm_conn *requester(struct rcm *cm)
{
    struct rcm_conn *conn = connection_of_message(cm);

    return conn && conn->transaction == cm->received.transaction ? conn : NULL;
}

static void receive_mra(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = requester(cm);
    uint8_t code = m->service_timeout < RCM_SERVICE_MAX ? m->service_timeout : RCM_SERVICE_MAX;
    bool fits = conn && ((conn->state == RCM_REQ_SENT && m->about == RCM_ABOUT_REQ) ||
                         (conn->state == RCM_REP_SENT && m->about == RCM_ABOUT_REP));

    if (!fits || conn->wait.prolonged) {
        drop(cm);
        return;
    }
    conn->wait.prolonged = true;
    conn->wait.interval_us = conn->wait.response_us;
    rcm_timer_set(&cm->first, &conn->timer, cm->received_us + rc_timeout_us(code) + conn->wait.response_us);
}

static uint8_t lower_of(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* The answer to our request. */
static void rcm_meet(struct rcm *cm, struct rcm_conn *conn)
{
    const struct rcm_message *m = &cm->received;

    if (unless_rested(cm, rcm_by_qpn(cm, &cm->received_path, m->terms.qpn))) {
        rcm_deny(cm, RCM_STALE, NULL, 0);
        reject(cm, conn, RCM_STALE);
        rcm_close(cm, conn);
        return;
    }
    conn->state = RCM_REP_RECEIVED;
    conn->path.peer_port = cm->received_path.peer_port;
    conn->remote_id = m->local_id;
    conn->peer_qpn = m->terms.qpn;
    conn->responder_resources = lower_of(conn->responder_resources, m->terms.initiator_depth);
    conn->initiator_depth = lower_of(conn->initiator_depth, m->terms.responder_resources);
    rcm_timer_set(&cm->first, &conn->timer, RCM_NEVER);
    rcm_list_remove(&conn->in_output);
    rcm_add_qpn(cm, conn);
    notify(cm, conn, RCM_EVENT_ANSWERED);
}

/* A second acceptance of the same request comes from a duplicate that outlived the first one: it is refused. */
static void receive_rep(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = rcm_by_local(cm, &cm->received_path, m->remote_id);

    if (!conn) {
        rcm_deny(cm, RCM_UNKNOWN_ID, NULL, 0);
        return;
    }
    if (conn->transaction != m->transaction || !conn->active || conn->datagram || !m->local_id) {
        drop(cm);
        return;
    }
    if (conn->remote_id && conn->remote_id != m->local_id) {
        rcm_deny(cm, RCM_STALE, NULL, 0);
        return;
    }
    if (conn->state == RCM_REQ_SENT) {
        rcm_meet(cm, conn);
        return;
    }
    cm->counters.duplicates++;
    if (conn->state == RCM_REP_RECEIVED)
        ask_for_patience(cm, conn);
    else if (conn->state == RCM_ESTABLISHED || (conn->state == RCM_TIMEWAIT && was_rejected(conn)))
        rcm_send(cm, conn);
    else if (conn->state == RCM_TIMEWAIT)
        rcm_deny(cm, RCM_STALE, NULL, 0);
}

static void receive_rtu(struct rcm *cm)
{
    struct rcm_conn *conn = requester(cm);

    if (!conn || conn->state != RCM_REP_SENT) {
        drop(cm);
        return;
    }
    rcm_establish(cm, conn);
    notify(cm, conn, RCM_EVENT_ESTABLISHED);
}

/* Who withdraws a request does not know our ID. So it names numbers of its own alone, which others may know: that does
 * not end a connection. Who rejects a request need not name its own ID. */
static struct rcm_conn *rejected(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = m->remote_id ? rcm_by_local(cm, &cm->received_path, m->remote_id)
                                         : rcm_by_remote(cm, &cm->received_path, m->local_id, false);

    if (!conn || conn->datagram || conn->transaction != m->transaction)
        return NULL;
    if (!m->remote_id)
        return conn->state == RCM_REQ_RECEIVED || conn->state == RCM_REP_SENT ? conn : NULL;
    return !conn->remote_id || !m->local_id || conn->remote_id == m->local_id ? conn : NULL;
}

static void receive_rej(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = rejected(cm);

    switch (conn ? conn->state : RCM_CLOSED) {
    case RCM_REQ_SENT:
    case RCM_REP_RECEIVED:
        reject(cm, conn, m->reason);
        rcm_close(cm, conn);
        break;
    case RCM_REQ_RECEIVED:
    case RCM_REP_SENT:
        reject(cm, conn, m->reason);
        rcm_rest(cm, conn, 2 * conn->wait.response_us, cm->received_us);
        break;
    case RCM_ESTABLISHED:
    case RCM_DREQ_SENT:
        cm->received_conn = conn;
        rcm_part(cm, conn, cm->received_us);
        break;
    default:
        drop(cm);
    }
}

static void receive_sidr_rep(struct rcm *cm)
{
    struct rcm_conn *conn = rcm_by_local(cm, &cm->received_path, cm->received.remote_id);

    if (!conn || conn->state != RCM_SIDR_SENT || conn->transaction != cm->received.transaction) {
        drop(cm);
        return;
    }
    notify(cm, conn, RCM_EVENT_RESOLVED);
    rcm_close(cm, conn);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

/* A connection that is gone is over for its peer, too. */
static void answer_dreq(struct rcm *cm)
{
    const struct rcm_message m = {.attribute = RCM_DREP,
                                  .transaction = cm->received.transaction,
                                  .local_id = cm->received.remote_id,
                                  .remote_id = cm->received.local_id};

    rcm_answer(cm, &cm->received_path, &m);
}

static void receive_dreq(struct rcm *cm)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_conn *conn = connection_of_message(cm);
    enum rcm_state state = conn ? conn->state : RCM_CLOSED;

    if (conn ? m->remote_qpn != conn->qpn || state == RCM_REQ_RECEIVED || conn->datagram
             : !!rcm_by_local(cm, &cm->received_path, m->remote_id)) {
        drop(cm);
        return;
    }
    answer_dreq(cm);
    if (state == RCM_REQ_SENT || state == RCM_REP_RECEIVED) {
        reject(cm, conn, RCM_CONSUMER);
        rcm_close(cm, conn);
        return;
    }
    if (state != RCM_REP_SENT && state != RCM_ESTABLISHED && state != RCM_DREQ_SENT)
        return;
    if (state == RCM_REP_SENT)
        notify(cm, conn, RCM_EVENT_ESTABLISHED);
    cm->received_conn = conn;
    rcm_part(cm, conn, cm->received_us);
}

static void receive_drep(struct rcm *cm)
{
    struct rcm_conn *conn = connection_of_message(cm);

    if (!conn || conn->state != RCM_DREQ_SENT || conn->leave_transaction != cm->received.transaction) {
        drop(cm);
        return;
    }
    cm->received_conn = conn;
    rcm_part(cm, conn, cm->received_us);
}

/* Alternate paths are for ports of InfiniBand: a LAP is ignored, as Linux does on RoCE, and no APR is expected. */
static void (*const receive[RCM_ATTRIBUTES])(struct rcm *cm) = {
    [RCM_REQ - RCM_REQ] = receive_req,
    [RCM_MRA - RCM_REQ] = receive_mra,
    [RCM_REJ - RCM_REQ] = receive_rej,
    [RCM_REP - RCM_REQ] = receive_rep,
    [RCM_RTU - RCM_REQ] = receive_rtu,
    [RCM_DREQ - RCM_REQ] = receive_dreq,
    [RCM_DREP - RCM_REQ] = receive_drep,
    [RCM_SIDR_REQ - RCM_REQ] = receive_sidr_req,
    [RCM_SIDR_REP - RCM_REQ] = receive_sidr_rep,
    [RCM_LAP - RCM_REQ] = drop,
    [RCM_APR - RCM_REQ] = drop,
};

void rcm_input(struct rcm *cm, const struct rcm_path *path, const uint8_t *mad, uint32_t octets, uint64_t now_us)
{
    assert(rcm_list_is_empty(&cm->news));
    cm->asked = NULL;
    cm->received_conn = NULL;
    cm->received_path = *path;
    cm->received_us = now_us;
    cm->counters.received++;
    if (rcm_decode(&cm->received, mad, octets) == RCM_OK)
        receive[cm->received.attribute - RCM_REQ](cm);
    else
        drop(cm);
}
