/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_sidr.c - the life of a question for a service of datagrams on its loop. */
#include "roce/io/endpoint_sidr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "roce/io/roce_cm.h"
#include "roce/io/roce_path.h"

/* Guarded as its first member, as which it is freed. */
struct endpoint_sidr {
    struct endpoint endpoint;
    struct life life;
    struct roce_cm_user user;
    struct roce_cm_conn *conn;          /* NULL: no message is expected any more */
    struct rddp_resolution *resolution; /* active, until something was reported */
    uint8_t octets;                     /* passive: private data of the peer */
    uint8_t data[RCM_IP_PRIVATE_SIDR];
};

static struct endpoint_sidr *endpoint_sidr_of(struct endpoint *endpoint)
{
    return container_of(endpoint, struct endpoint_sidr, endpoint);
}

/* --- what is reported of a question of ours ------------------------------------------------------------------------
 */

/* Reports the end of the question, once. `m`: the answer, if one came. */
static void sidr_report(struct endpoint_sidr *e, enum rddp_event_type type, int status, const struct rcm_message *m)
{
    struct rddp_resolution *resolution = e->resolution;
    struct rddp_event event = {.type = type, .status = status, .resolution = resolution};

    if (!resolution)
        return;
    e->resolution = NULL;
    event.user = resolution->user;
    if (m) {
        event.private_data = m->data;
        event.private_data_length = m->octets;
    }
    if (type == RDDP_EVENT_RESOLVED) {
        event.qpn = m->terms.qpn;
        event.qkey = m->terms.q_key;
    }
    resolution->endpoint = NULL;
    event_post_resolution(resolution, &event);
}

/* It is over: nothing is left to be said or to wait for. */
static void sidr_over(struct endpoint_sidr *e)
{
    life_lost(&e->life, FAULT_LOST);
    e->life.news = 0;
}

static void on_resolved(struct endpoint_sidr *e, const struct rcm_message *m)
{
    switch (m->status) {
    case RCM_SIDR_VALID:
        sidr_report(e, RDDP_EVENT_RESOLVED, 0, m);
        break;
    case RCM_SIDR_REJECTED:
        sidr_report(e, RDDP_EVENT_REJECTED, -ECONNREFUSED, m);
        break;
    case RCM_SIDR_NO_SERVICE:
        sidr_report(e, RDDP_EVENT_UNREACHABLE, -ECONNREFUSED, NULL);
        break;
    default:
        sidr_report(e, RDDP_EVENT_CONNECT_ERROR, -EPROTO, NULL);
    }
    sidr_over(e);
}

static void sidr_on_event(struct endpoint_sidr *e, const struct rcm_event *event)
{
    switch (event->kind) {
    case RCM_EVENT_RESOLVED:
        on_resolved(e, event->message);
        break;
    case RCM_EVENT_UNREACHABLE:
        sidr_report(e, RDDP_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
        sidr_over(e);
        break;
    case RCM_EVENT_GONE:
        e->conn = NULL;
        sidr_over(e);
        break;
    default: /* a question of the peer gave way to newer ones */
        sidr_over(e);
    }
}

static void sidr_event(struct roce_cm_user *user, const struct rcm_event *event)
{
    struct endpoint_sidr *e = container_of(user, struct endpoint_sidr, user);
    struct endpoint *endpoint = &e->endpoint;

    endpoint_hold(endpoint);
    sidr_on_event(e, event);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

/* --- what the endpoint does ----------------------------------------------------------------------------------------
 */

static bool endpoint_sidr_work(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    (void)endpoint;
    (void)role;
    (void)now_us;
    return true;
}

static uint64_t endpoint_sidr_rest(struct endpoint *endpoint, uint64_t now_us)
{
    (void)now_us;
    return life_deadline(&endpoint_sidr_of(endpoint)->life);
}

static void endpoint_sidr_tick(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_sidr *e = endpoint_sidr_of(endpoint);

    if (life_deadline(&e->life) > now_us)
        return;
    sidr_report(e, RDDP_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
    sidr_over(e);
}

static bool endpoint_sidr_owes(const struct endpoint *endpoint)
{
    (void)endpoint;
    return false;
}

/* Its messages come by sockets that the loop watches. */
static void endpoint_sidr_poll(struct endpoint *endpoint)
{
    (void)endpoint;
}

/* A connection cannot be the answer: see rddp_answer(). */
static int accept_connection(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                             uint64_t now_us)
{
    (void)endpoint;
    (void)qp;
    (void)attr;
    (void)now_us;
    return -EINVAL;
}

static int answer_sidr(struct endpoint *endpoint, const struct rddp_answer *answer, uint64_t now_us)
{
    struct endpoint_sidr *e = endpoint_sidr_of(endpoint);
    struct rcm_accept accept = {.terms = {.qpn = answer->qpn, .q_key = answer->qkey},
                                .data = answer->private_data,
                                .octets = (uint8_t)answer->private_data_length};

    if (answer->qpn & ~BTH_MASK24 || answer->private_data_length > RCM_PRIVATE_SIDR_REP)
        return -EINVAL;
    if (!e->conn || rcm_accept(roce_cm_engine(e->conn->cm), &e->conn->conn, &accept, now_us))
        return -ECONNABORTED;
    roce_cm_settle(e->conn->cm);
    sidr_over(e);
    return 0;
}

static int reject_sidr(struct endpoint *endpoint, const void *data, uint16_t length, uint64_t now_us)
{
    struct endpoint_sidr *e = endpoint_sidr_of(endpoint);

    if (length > RCM_PRIVATE_SIDR_REP)
        return -EINVAL;
    if (!e->conn ||
        rcm_reject(roce_cm_engine(e->conn->cm), &e->conn->conn, RCM_CONSUMER, data, (uint8_t)length, now_us))
        return -ECONNABORTED;
    roce_cm_settle(e->conn->cm);
    sidr_over(e);
    return 0;
}

static void endpoint_sidr_lost(struct endpoint *endpoint, enum fault fault)
{
    struct endpoint_sidr *e = endpoint_sidr_of(endpoint);

    sidr_report(e, RDDP_EVENT_UNREACHABLE, -ECONNABORTED, NULL);
    life_lost(&e->life, fault);
}

static void endpoint_sidr_fill_event(const struct endpoint *endpoint, struct rddp_event *event)
{
    const struct endpoint_sidr *e = container_of(endpoint, const struct endpoint_sidr, endpoint);

    event->private_data = e->data;
    event->private_data_length = e->octets;
}

static void endpoint_sidr_close(struct endpoint *endpoint)
{
    struct endpoint_sidr *e = endpoint_sidr_of(endpoint);
    struct roce_cm_conn *conn = e->conn;

    e->conn = NULL;
    if (conn)
        roce_cm_leave(conn, e->life.note.fault == FAULT_FORKED || e->life.note.fault == FAULT_CLOSED);
}

/* What only a queue pair asks for is missing: finish, detach and info. */
static const struct endpoint_kind question = {
    .termination = "nothing",
    .work = endpoint_sidr_work,
    .rest = endpoint_sidr_rest,
    .tick = endpoint_sidr_tick,
    .owes = endpoint_sidr_owes,
    .poll = endpoint_sidr_poll,
    .accept = accept_connection,
    .answer = answer_sidr,
    .reject = reject_sidr,
    .lost = endpoint_sidr_lost,
    .fill_event = endpoint_sidr_fill_event,
    .close = endpoint_sidr_close,
};

static struct endpoint_sidr *endpoint_sidr_new(struct roce_cm *cm, bool active, uint64_t limit_us)
{
    const struct life_limits limits = {.startup_us = limit_us};
    struct endpoint_sidr *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    life_init(&e->life, active, &limits, reactor_now_us());
    e->endpoint.life = &e->life;
    e->endpoint.is_up = true;
    e->user.event = sidr_event;
    e->conn = roce_cm_new(cm, &e->user);
    if (e->conn)
        return e;
    free(e);
    return NULL;
}

/* --- a question of ours --------------------------------------------------------------------------------------------
 */

static int sidr_ask(struct endpoint_sidr *e, const struct rddp_resolve_attr *attr)
{
    struct rcm_connect connect = {
        .service = rcm_service(RCM_SPACE_UDP, roce_address_port(&e->endpoint.peer)),
        .rdma_cm = true,
        .source_port = roce_address_port(&e->endpoint.local),
        .terms = {.pkey = BTH_PKEY_DEFAULT},
        .response_timeout = RCM_TIMEOUT_DEFAULT,
        .cm_retries = RCM_RETRIES_MAX,
        .data = attr->private_data,
        .octets = (uint8_t)attr->private_data_length,
    };
    struct roce_cm *cm = e->conn->cm;
    struct roce_address local, peer;

    if (!roce_address_read(&e->endpoint.local, &local) || !roce_address_read(&e->endpoint.peer, &peer) ||
        roce_address_is_v4(&local) != roce_address_is_v4(&peer))
        return -EADDRNOTAVAIL;
    connect.path = roce_cm_path(&local, &peer, roce_address_scope(&e->endpoint.peer));
    (void)rcm_resolve(roce_cm_engine(cm), &e->conn->conn, &connect, reactor_now_us());
    return 0;
}

static int sidr_begin(struct rddp_resolution *resolution, struct endpoint_sidr *e, const struct rddp_resolve_attr *attr)
{
    struct roce_cm *cm = e->conn->cm;
    int error = sidr_ask(e, attr);

    if (!error)
        error = endpoint_begin(&e->endpoint, resolution->loop, &question);
    if (error) {
        roce_cm_drop(e->conn);
        return error;
    }
    e->resolution = resolution;
    resolution->endpoint = &e->endpoint;
    endpoint_pump(&e->endpoint, ENDPOINT_DRIVER);
    endpoint_release(&e->endpoint, ENDPOINT_DRIVER);
    roce_cm_settle(cm);
    return 0;
}

int endpoint_sidr_resolve(struct rddp_resolution *resolution, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_resolve_attr *attr)
{
    struct sockaddr_storage local, peer;
    struct roce_host *host;
    struct endpoint_sidr *e;
    int error = roce_path_ends(addr, length, attr->local, &local, &peer);

    if (attr->private_data_length > RCM_IP_PRIVATE_SIDR || !attr->timeout_ms)
        return -EINVAL;
    if (!error)
        error = roce_host_open(resolution->loop, &host);
    if (error)
        return error;
    e = endpoint_sidr_new(roce_cm_of(host), true, (uint64_t)attr->timeout_ms * 1000);
    if (!e) {
        roce_host_sweep(host);
        return -ENOMEM;
    }
    if (!roce_address_port(&local))
        roce_address_set_port(&local, host->ports->own.number);
    e->endpoint.local = local;
    e->endpoint.peer = peer;
    error = sidr_begin(resolution, e, attr);
    if (error)
        free(e);
    return error;
}

void endpoint_sidr_forget(struct endpoint *endpoint)
{
    endpoint_sidr_of(endpoint)->resolution = NULL;
    endpoint_abort(endpoint);
}

/* --- a question of a peer ------------------------------------------------------------------------------------------
 */

static struct endpoint_sidr *sidr_take(struct roce_service *service, const struct rcm_event *event)
{
    struct endpoint_sidr *e = endpoint_sidr_new(service->cm, false, 0);
    const struct rcm_message *m = event->message;

    if (!e)
        return NULL;
    e->octets = (uint8_t)(m->octets - RCM_IP_OCTETS);
    memcpy(e->data, m->data + RCM_IP_OCTETS, e->octets);
    roce_cm_name_ends(service, event, &e->endpoint.local, &e->endpoint.peer);
    return e;
}

void endpoint_sidr_requested(struct roce_service *service, const struct rcm_event *event)
{
    struct rddp_listener *listener = service->of;
    struct rcm *engine = roce_cm_engine(service->cm);
    struct endpoint_sidr *e = sidr_take(service, event);

    if (!e || endpoint_begin(&e->endpoint, listener->loop, &question)) {
        (void)rcm_refuse(engine, RCM_NO_RESOURCES, NULL, 0);
        if (e)
            roce_cm_drop(e->conn);
        free(e);
        return;
    }
    rcm_take(engine, &e->conn->conn);
    life_requested(&e->life);
    listener->pending++;
    e->endpoint.listener = listener;
    endpoint_pump(&e->endpoint, ENDPOINT_DRIVER);
    endpoint_release(&e->endpoint, ENDPOINT_DRIVER);
}
