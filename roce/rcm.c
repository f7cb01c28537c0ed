/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm.c - what the host asks of the connection manager. */
#include "roce/rcm.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/container.h"
#include "roce/rcm_inner.h"

void rcm_init(struct rcm *cm, const struct rcm_attr *attr)
{
    memset(cm, 0, sizeof(*cm));
    cm->attr = *attr;
    cm->key[0] = attr->random(attr->of);
    cm->key[1] = attr->random(attr->of);
    cm->psn = (uint32_t)attr->random(attr->of);
    cm->unasked = RCM_UNASKED_MAX;
    for (uint32_t i = 0; i < RCM_BUCKETS; i++) {
        rcm_list_init(&cm->by_local[i]);
        rcm_list_init(&cm->by_remote[i]);
        rcm_list_init(&cm->by_qpn[i]);
    }
    rcm_list_init(&cm->listeners);
    rcm_list_init(&cm->resting);
    rcm_list_init(&cm->news);
    rcm_list_init(&cm->output);
}

static uint8_t lower(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* --- the active end -------------------------------------------------------------------------------------------- */

/* The private data of a request: those of the host, with the addresses of rdma_cm in front if they are asked for.
 * Returns false if they are too many. */
static bool write_private(struct rcm_message *m, const struct rcm_connect *connect, uint8_t *p)
{
    struct rcm_ip ip = {.ipv6 = !rcm_is_ipv4(connect->path.local), .port = connect->source_port};
    uint32_t head = connect->rdma_cm ? RCM_IP_OCTETS : 0;

    if (connect->octets > rcm_private_max(m->attribute) - head)
        return false;
    memcpy(ip.source, connect->path.local, sizeof(ip.source));
    memcpy(ip.destination, connect->path.peer, sizeof(ip.destination));
    if (connect->rdma_cm)
        rcm_ip_encode(&ip, p);
    put_bytes(p + head, connect->data, connect->octets);
    m->data = p;
    m->octets = (uint8_t)(head + connect->octets);
    return true;
}

static int ask_peer(struct rcm *cm, struct rcm_conn *conn, const struct rcm_connect *connect, struct rcm_message *m,
                    enum rcm_state state, uint64_t now_us)
{
    uint8_t private_data[RCM_PRIVATE_MAX];

    if (!write_private(m, connect, private_data))
        return -EMSGSIZE;
    rcm_begin(conn, &connect->path, connect->response_timeout, connect->cm_retries);
    conn->active = true;
    conn->datagram = state == RCM_SIDR_SENT;
    conn->local_id = rcm_new_id(cm);
    conn->transaction = cm->attr.random(cm->attr.of);
    conn->leave_transaction = cm->attr.random(cm->attr.of);
    conn->qpn = connect->terms.qpn;
    conn->responder_resources = connect->terms.responder_resources;
    conn->initiator_depth = connect->terms.initiator_depth;
    conn->timewait_us = connect->timewait_us;
    rcm_add_local(cm, conn);
    rcm_write(conn, m);
    rcm_ask(cm, conn, state, now_us);
    return 0;
}

enum { NO_LID = 0xffff };

int rcm_connect(struct rcm *cm, struct rcm_conn *conn, const struct rcm_connect *connect, uint64_t now_us)
{
    struct rcm_message m = {
        .attribute = RCM_REQ,
        .service = connect->service,
        .guid = cm->attr.guid,
        .terms = connect->terms,
        .route = {.local_lid = NO_LID,
                  .remote_lid = NO_LID,
                  .flow_label = connect->flow_label,
                  .traffic_class = connect->traffic_class,
                  .hop_limit = connect->hop_limit,
                  .ack_timeout = connect->ack_timeout},
        .remote_timeout = connect->response_timeout,
        .local_timeout = connect->response_timeout,
        .cm_retries = connect->cm_retries,
    };

    memcpy(m.route.local_gid, connect->path.local, sizeof(m.route.local_gid));
    memcpy(m.route.remote_gid, connect->path.peer, sizeof(m.route.remote_gid));
    return ask_peer(cm, conn, connect, &m, RCM_REQ_SENT, now_us);
}

int rcm_resolve(struct rcm *cm, struct rcm_conn *conn, const struct rcm_connect *connect, uint64_t now_us)
{
    struct rcm_message m = {
        .attribute = RCM_SIDR_REQ, .service = connect->service, .terms = {.pkey = connect->terms.pkey}};

    return ask_peer(cm, conn, connect, &m, RCM_SIDR_SENT, now_us);
}

int rcm_confirm(struct rcm *cm, struct rcm_conn *conn)
{
    struct rcm_message m = {.attribute = RCM_RTU};

    if (conn->state != RCM_REP_RECEIVED)
        return -ENOTCONN;
    rcm_write(conn, &m);
    rcm_establish(cm, conn);
    rcm_send(cm, conn);
    return 0;
}

/* --- the passive end ------------------------------------------------------------------------------------------- */

int rcm_listen(struct rcm *cm, struct rcm_listener *listener)
{
    assert(listener->backlog && listener->backlog <= RCM_BACKLOG_MAX);
    for (struct rcm_link *link = cm->listeners.next; link != &cm->listeners; link = link->next) {
        const struct rcm_listener *other = container_of(link, struct rcm_listener, link);

        if (other->service == listener->service && !memcmp(other->local, listener->local, sizeof(other->local)))
            return -EADDRINUSE;
    }
    listener->pending_count = listener->known_count = 0;
    listener->link = (struct rcm_link){NULL, NULL};
    rcm_list_init(&listener->pending);
    rcm_list_add(&cm->listeners, &listener->link);
    return 0;
}

void rcm_unlisten(struct rcm *cm, struct rcm_listener *listener)
{
    while (!rcm_list_is_empty(&listener->pending)) {
        struct rcm_conn *conn = container_of(listener->pending.next, struct rcm_conn, in_list);

        rcm_list_remove(&conn->in_list);
        conn->listener = NULL;
    }
    rcm_list_remove(&listener->link);
    if (cm->asked == listener)
        cm->asked = NULL;
}

bool rcm_listens(const struct rcm *cm, uint64_t service, const uint8_t *local)
{
    return rcm_find_listener(cm, service, local);
}

int rcm_refuse(struct rcm *cm, uint16_t reason, const void *data, uint8_t octets)
{
    assert(cm->asked && cm->offered);
    if (!rcm_deny(cm, reason, data, octets))
        return -EMSGSIZE;
    cm->asked = NULL;
    return 0;
}

/* The backlog is full, or this peer has its share of it: the oldest gives way, and its peer is told, if that has no
 * answer yet or one more message may leave. */
static void rcm_give_way(struct rcm *cm, struct rcm_conn *conn)
{
    bool is_sidr = conn->datagram;
    struct rcm_message m = {.attribute = is_sidr ? RCM_SIDR_REP : RCM_REJ,
                            .transaction = conn->transaction,
                            .local_id = conn->local_id,
                            .remote_id = conn->remote_id,
                            .service = conn->service,
                            .about = conn->state == RCM_REQ_RECEIVED ? RCM_ABOUT_REQ : RCM_ABOUT_OTHER,
                            .reason = RCM_NO_RESOURCES,
                            .status = RCM_SIDR_REJECTED};

    if (conn->state == RCM_REQ_RECEIVED || conn->state == RCM_SIDR_RECEIVED || rcm_may_ask(cm, conn))
        rcm_answer(cm, &conn->path, &m);
    rcm_notify(cm, conn, RCM_EVENT_GAVE_WAY);
    rcm_close(cm, conn);
    cm->counters.gave_way++;
}

static uint32_t rcm_share(const struct rcm_listener *listener)
{
    return listener->backlog >= RCM_SHARE ? listener->backlog / RCM_SHARE : 1;
}

bool rcm_is_full(const struct rcm_listener *listener)
{
    return listener->known_count >= rcm_share(listener);
}

/* The oldest that is not established, and how many those are, of senders that are not known. `of`: of this address
 * alone, unless it is NULL. */
static struct rcm_conn *oldest_pending(const struct rcm_listener *listener, const uint8_t *of, uint32_t *count)
{
    struct rcm_conn *oldest = NULL;

    *count = 0;
    for (struct rcm_link *link = listener->pending.next; link != &listener->pending; link = link->next) {
        struct rcm_conn *conn = container_of(link, struct rcm_conn, in_list);

        if (conn->path.is_known || (of && memcmp(conn->path.peer, of, sizeof(conn->path.peer)) != 0))
            continue;
        if (!(*count)++)
            oldest = conn;
    }
    return oldest;
}

static void make_space(struct rcm *cm, struct rcm_listener *listener, const struct rcm_path *path)
{
    uint32_t count;
    struct rcm_conn *oldest = oldest_pending(listener, path->peer, &count);

    if (path->is_known || count < rcm_share(listener)) {
        if (listener->pending_count < listener->backlog)
            return;
        oldest = oldest_pending(listener, NULL, &count);
        if (!oldest)
            oldest = container_of(listener->pending.next, struct rcm_conn, in_list);
    }
    rcm_give_way(cm, oldest);
}

void rcm_take(struct rcm *cm, struct rcm_conn *conn)
{
    const struct rcm_message *m = &cm->received;
    struct rcm_listener *listener = cm->asked;

    assert(cm->asked && cm->offered);
    cm->asked = NULL;
    make_space(cm, listener, &cm->received_path);
    rcm_begin(conn, &cm->received_path, m->local_timeout, m->cm_retries);
    conn->datagram = m->attribute == RCM_SIDR_REQ;
    conn->state = conn->datagram ? RCM_SIDR_RECEIVED : RCM_REQ_RECEIVED;
    conn->local_id = rcm_new_id(cm);
    conn->remote_id = m->local_id;
    conn->transaction = m->transaction;
    conn->leave_transaction = cm->attr.random(cm->attr.of);
    conn->service = m->service;
    conn->peer_qpn = m->terms.qpn;
    conn->responder_resources = m->terms.initiator_depth;
    conn->initiator_depth = m->terms.responder_resources;
    conn->listener = listener;
    conn->is_real = conn->path.is_known;
    listener->pending_count++;
    listener->known_count += conn->path.is_known;
    rcm_list_add(&listener->pending, &conn->in_list);
    rcm_add_local(cm, conn);
    rcm_add_remote(cm, conn);
}

/* What was said to a request is kept for as long as the request may come again. */
static void rest_answered(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us)
{
    rcm_rest(cm, conn, 2 * conn->wait.response_us, now_us);
    rcm_send(cm, conn);
}

int rcm_accept(struct rcm *cm, struct rcm_conn *conn, const struct rcm_accept *accept, uint64_t now_us)
{
    struct rcm_message m = {.attribute = conn->datagram ? RCM_SIDR_REP : RCM_REP,
                            .service = conn->service,
                            .guid = cm->attr.guid,
                            .terms = accept->terms,
                            .data = accept->data,
                            .octets = accept->octets};

    if (conn->state != RCM_REQ_RECEIVED && conn->state != RCM_SIDR_RECEIVED)
        return -ENOTCONN;
    m.terms.responder_resources = lower(m.terms.responder_resources, conn->responder_resources);
    m.terms.initiator_depth = lower(m.terms.initiator_depth, conn->initiator_depth);
    if (!rcm_write(conn, &m))
        return -EMSGSIZE;
    conn->responder_resources = m.terms.responder_resources;
    conn->initiator_depth = m.terms.initiator_depth;
    conn->qpn = accept->terms.qpn;
    conn->timewait_us = accept->timewait_us;
    if (conn->datagram)
        rest_answered(cm, conn, now_us);
    else
        rcm_ask(cm, conn, RCM_REP_SENT, now_us);
    return 0;
}

void rcm_communicates(struct rcm *cm, struct rcm_conn *conn)
{
    if (conn->state != RCM_REP_SENT)
        return;
    rcm_establish(cm, conn);
    rcm_notify(cm, conn, RCM_EVENT_ESTABLISHED);
}

/* --- both ends -------------------------------------------------------------------------------------------------- */

int rcm_reject(struct rcm *cm, struct rcm_conn *conn, uint16_t reason, const void *data, uint8_t octets,
               uint64_t now_us)
{
    struct rcm_message m = {.attribute = conn->datagram ? RCM_SIDR_REP : RCM_REJ,
                            .service = conn->service,
                            .about = conn->active ? RCM_ABOUT_REP : RCM_ABOUT_REQ,
                            .reason = reason,
                            .status = RCM_SIDR_REJECTED,
                            .data = data,
                            .octets = octets};

    if (conn->state != RCM_REQ_RECEIVED && conn->state != RCM_SIDR_RECEIVED && conn->state != RCM_REP_RECEIVED)
        return -ENOTCONN;
    if (!rcm_write(conn, &m))
        return -EMSGSIZE;
    rest_answered(cm, conn, now_us);
    return 0;
}

void rcm_disconnect(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us)
{
    struct rcm_message m = {.attribute = RCM_DREQ, .remote_qpn = conn->peer_qpn};

    switch (conn->state) {
    case RCM_REQ_SENT:
    case RCM_SIDR_SENT:
        rcm_cancel(cm, conn);
        break;
    case RCM_REQ_RECEIVED:
    case RCM_SIDR_RECEIVED:
    case RCM_REP_RECEIVED:
        rcm_reject(cm, conn, RCM_CONSUMER, NULL, 0, now_us);
        break;
    case RCM_REP_SENT:
    case RCM_ESTABLISHED:
        rcm_write(conn, &m);
        rcm_ask(cm, conn, RCM_DREQ_SENT, now_us);
        break;
    case RCM_CLOSED:
    case RCM_DREQ_SENT:
    case RCM_TIMEWAIT:
        break;
    }
}

/* --- events ----------------------------------------------------------------------------------------------------- */

static bool request_event(struct rcm *cm, struct rcm_event *event)
{
    if (cm->asked && cm->offered)
        cm->asked = NULL;
    if (!cm->asked)
        return false;
    cm->offered = true;
    *event = (struct rcm_event){.kind = RCM_EVENT_REQUEST,
                                .listener = cm->asked,
                                .path = cm->received_path,
                                .message = &cm->received,
                                .ip = cm->asked->rdma_cm ? &cm->received_ip : NULL};
    return true;
}

bool rcm_has_event(const struct rcm *cm)
{
    return (cm->asked && !cm->offered) || !rcm_list_is_empty(&cm->news);
}

bool rcm_event(struct rcm *cm, struct rcm_event *event)
{
    struct rcm_conn *conn;
    enum rcm_event_kind kind;

    if (request_event(cm, event))
        return true;
    if (rcm_list_is_empty(&cm->news))
        return false;
    conn = container_of(cm->news.next, struct rcm_conn, in_news);
    kind = (enum rcm_event_kind)__builtin_ctz(conn->news);
    conn->news &= conn->news - 1;
    if (!conn->news)
        rcm_list_remove(&conn->in_news);
    *event = (struct rcm_event){.kind = kind, .conn = conn};
    if (kind == RCM_EVENT_REJECTED)
        event->reason = conn->reason;
    if (cm->received_conn == conn && kind != RCM_EVENT_GONE)
        event->message = &cm->received;
    if (cm->received_conn == conn && kind == RCM_EVENT_GONE)
        cm->received_conn = NULL;
    return true;
}
