/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_roce.c - the life of a queue pair of RoCE on its loop. */
#include "roce/io/endpoint_roce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "roce/io/roce_attr.h"
#include "roce/io/roce_call.h"
#include "roce/io/roce_path.h"

static struct endpoint_roce *endpoint_roce_of(struct endpoint *endpoint)
{
    return container_of(endpoint, struct endpoint_roce, endpoint);
}

static const struct endpoint_roce *endpoint_roce_of_const(const struct endpoint *endpoint)
{
    return container_of(endpoint, const struct endpoint_roce, endpoint);
}

/* --- work -------------------------------------------------------------------------------------------------------- */

/* What was withheld has left behind a request: the driver need not ask for it. Only the holder of an endpoint changes
 * what names it as the one that owes. */
static void settle_own_debt(struct endpoint_roce *e)
{
    struct loop *loop = e->endpoint.loop;

    if (!e->pair.responder.held_us && atomic_load_explicit(&loop->owing, memory_order_relaxed) == &e->endpoint)
        atomic_store_explicit(&loop->owing, NULL, memory_order_relaxed);
}

/* Returns false if another thread sends from this port, which a poster does not wait for. */
static bool send_packets(struct endpoint_roce *e, enum endpoint_role role, uint64_t now_us)
{
    struct roce_port *port = e->slot->port;

    if (!roce_port_enter(port, role == ENDPOINT_DRIVER))
        return false;
    e->more = roce_pair_send(e, now_us);
    roce_port_leave(port);
    settle_own_debt(e);
    atomic_store_explicit(&e->endpoint.sent_us, now_us, memory_order_relaxed);
    return true;
}

static bool endpoint_roce_work(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);

    if (life_in_startup(endpoint->life))
        return true;
    rc_pair_check(&e->pair, now_us);
    if (rc_pair_has_output(&e->pair, now_us) && !send_packets(e, role, now_us))
        return false;
    if (!roce_call_is_ending(e))
        return role == ENDPOINT_DRIVER || !e->more;
    if (role != ENDPOINT_DRIVER)
        return false;
    roce_call_end(e, now_us);
    return true;
}

static uint64_t endpoint_roce_rest(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);
    uint64_t call_us = roce_call_deadline(e), pair_us;

    if (e->more)
        return now_us;
    pair_us = life_in_startup(endpoint->life) ? UINT64_MAX : rc_pair_deadline(&e->pair);
    return call_us < pair_us ? call_us : pair_us;
}

static void endpoint_roce_tick(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);

    e->more = false;
    roce_call_tick(e, now_us);
    if (!life_in_startup(endpoint->life) && rc_pair_deadline(&e->pair) <= now_us)
        roce_pair_tick(e, now_us);
}

/* The acknowledgement waits for a poller's answer, and both are one call and one arrival. Not if that of another does,
 * if anything may sleep that has not polled again, or, without a thread, if the application has not answered before. */
static void withhold(struct endpoint_roce *e, uint64_t now_us)
{
    struct loop *loop = e->endpoint.loop;
    struct rddp_context *context = loop->context;

    if (!atomic_load_explicit(&loop->polled.lasts, memory_order_relaxed) || loop->owing || loop_is_relied_on(loop) ||
        !roce_pair_may_follow(e) ||
        (context->manual && (atomic_load(&loop->batch.sleepers) || !roce_pair_is_answering(e))))
        return;
    if (rc_pair_withhold(&e->pair, now_us))
        loop->owing = &e->endpoint;
}

static bool endpoint_roce_release(struct endpoint *endpoint)
{
    return rc_pair_release(&endpoint_roce_of(endpoint)->pair);
}

/* Called for the slot by the driver, who does not hold the endpoint. */
static void endpoint_roce_take(struct roce_user *user, const struct roce_run *run)
{
    struct endpoint_roce *e = container_of(user, struct endpoint_roce, user);
    struct endpoint *endpoint = &e->endpoint;
    uint64_t now_us = reactor_now_us();

    endpoint_hold(endpoint);
    loop_note_receipt(endpoint->loop, endpoint);
    roce_pair_take(e, run, now_us);
    roce_call_received(e);
    withhold(e, now_us);
    if (roce_pair_needs_turn(e, now_us))
        endpoint_pump_at(endpoint, ENDPOINT_DRIVER, now_us);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

static bool endpoint_roce_stay_out(struct endpoint *endpoint, bool out)
{
    return roce_pair_stay_out(endpoint_roce_of(endpoint), out);
}

static void endpoint_roce_poll(struct endpoint *endpoint)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);
    struct roce_socket *socket = roce_pair_polled(e);

    if (!socket)
        return;
    if (e->out && e->out != socket)
        endpoint_rouse(endpoint);
    if (endpoint->closed)
        return;
    endpoint_rest_if_polled(endpoint);
    roce_socket_poll(socket);
}

static bool endpoint_roce_owes(const struct endpoint *endpoint)
{
    const struct endpoint_roce *e = endpoint_roce_of_const(endpoint);

    return life_owes(&e->pair.life) || e->more || e->pair.responder.held_us;
}

/* --- for the application ------------------------------------------------------------------------------------------ */

static int accept_pair(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                       uint64_t now_us)
{
    return roce_call_accept(endpoint_roce_of(endpoint), qp, attr, now_us);
}

static int reject_pair(struct endpoint *endpoint, const void *private_data, uint16_t length, uint64_t now_us)
{
    return roce_call_reject(endpoint_roce_of(endpoint), private_data, length, now_us);
}

static void endpoint_roce_finish(struct endpoint *endpoint, uint64_t now_us)
{
    rc_pair_close(&endpoint_roce_of(endpoint)->pair, now_us);
}

/* If the number is the queue pair's, it may be used at once for its next connection: nothing arrives here any more. */
static void endpoint_roce_detach(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);

    e->slot->user = NULL;
    life_detach(&e->pair.life, now_us);
    if (!e->owns_slot)
        life_lost(&e->pair.life, FAULT_LOST);
}

static void endpoint_roce_lost(struct endpoint *endpoint, enum fault fault)
{
    life_lost(&endpoint_roce_of(endpoint)->pair.life, fault);
}

static void endpoint_roce_fill_event(const struct endpoint *endpoint, struct rddp_event *event)
{
    const struct endpoint_roce *e = endpoint_roce_of_const(endpoint);

    event->private_data = e->call.data;
    event->private_data_length = e->call.octets;
    event->ird = e->call.peer.responder_resources;
    event->ord = e->call.peer.initiator_depth;
}

static void endpoint_roce_info_of(const struct endpoint *endpoint, struct rddp_qp_info *info)
{
    const struct endpoint_roce *e = endpoint_roce_of_const(endpoint);

    info->wire = RDDP_WIRE_ROCE;
    info->crc = true;
    info->ird = (uint16_t)e->pair.attr.responder.reads;
    info->ord = endpoint->qp ? (uint16_t)endpoint->qp->qp.attr.ord : 0;
    info->emss = e->pair.attr.requester.mtu;
    info->sent_again = e->pair.requester.counters.resent;
    (void)roce_port_enter(e->slot->port, true);
    info->ib = roce_pair_counters(e);
    roce_port_leave(e->slot->port);
}

static void endpoint_roce_explain(const struct endpoint *endpoint, char *text, size_t size)
{
    const struct endpoint_roce *e = endpoint_roce_of_const(endpoint);

    (void)roce_port_enter(e->slot->port, true);
    roce_pair_explain(e, text, size);
    roce_port_leave(e->slot->port);
}

static void endpoint_roce_close(struct endpoint *endpoint)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);

    roce_pair_leave_socket(e);
    roce_call_leave(e);
    rc_pair_fini(&e->pair);
    if (e->slot && e->slot->user == &e->user)
        e->slot->user = NULL;
    if (e->owns_slot)
        roce_slot_close(e->slot);
    e->owns_slot = false;
    free(e->memory);
    e->memory = NULL;
}

static const struct endpoint_kind queue_pair = {
    .termination = "NAK",
    .work = endpoint_roce_work,
    .rest = endpoint_roce_rest,
    .tick = endpoint_roce_tick,
    .owes = endpoint_roce_owes,
    .poll = endpoint_roce_poll,
    .stay_out = endpoint_roce_stay_out,
    .release = endpoint_roce_release,
    .accept = accept_pair,
    .reject = reject_pair,
    .finish = endpoint_roce_finish,
    .detach = endpoint_roce_detach,
    .lost = endpoint_roce_lost,
    .fill_event = endpoint_roce_fill_event,
    .info = endpoint_roce_info_of,
    .explain = endpoint_roce_explain,
    .close = endpoint_roce_close,
};

static struct endpoint_roce *endpoint_roce_new(struct roce_slot *slot)
{
    struct endpoint_roce *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->slot = slot;
    e->user.take = endpoint_roce_take;
    e->endpoint.life = &e->pair.life;
    e->endpoint.is_up = true;
    return e;
}

/* --- by hand ----------------------------------------------------------------------------------------------------- */

enum { CLOSE_US = 100000 /* an end needs no longer: nothing is awaited of the peer */ };

/* Whoever connects by hand knows that, and needs no event. */
static int begin_by_hand(struct endpoint_roce *e, struct rddp_qp *qp, const struct rddp_ib_attr *attr)
{
    const struct life_limits limits = {.close_us = CLOSE_US};
    int error;

    e->endpoint.by_hand = true;
    rc_pair_begin(&e->pair, true, &limits, &qp->qp, reactor_now_us());
    error = roce_pair_connect(e, qp, &attr->local, &attr->peer, attr);
    if (error)
        return error;
    life_established(&e->pair.life);
    e->pair.life.news = 0;
    e->pair.is_waiting = true;
    error = endpoint_begin(&e->endpoint, e->slot->port->loop, &queue_pair);
    if (error)
        e->slot->user = NULL;
    return error;
}

int endpoint_roce_receive(struct roce_slot *slot, struct rddp_qp *qp, struct rddp_ib_attr *attr,
                          struct endpoint **endpoint)
{
    struct endpoint_roce *e;
    int error = slot->port->host ? roce_path_complete(attr) : -ENODEV;

    if (error)
        return error;
    e = endpoint_roce_new(slot);
    if (!e)
        return -ENOMEM;
    error = begin_by_hand(e, qp, attr);
    if (error) {
        free(e->memory);
        free(e);
        return error;
    }
    *endpoint = &e->endpoint;
    return 0;
}

void endpoint_roce_send(struct endpoint *endpoint, const struct rddp_ib_attr *attr)
{
    const struct rc_requester_attr requester = {
        .psn = attr->sq_psn,
        .timeout_us = rc_patience_us(attr->timeout),
        .retries = attr->retry_cnt,
        .rnr_retries = attr->rnr_retry,
    };

    rc_pair_start(&endpoint_roce_of(endpoint)->pair, &requester, attr->max_rd_atomic);
}

/* --- by the connection manager ----------------------------------------------------------------------------------- */

static struct life_limits limits_of(const struct rddp_wire_attr *wire)
{
    return (struct life_limits){.startup_us = (uint64_t)wire->startup_timeout_ms * 1000,
                                .close_us = (uint64_t)wire->close_timeout_ms * 1000};
}

/* Selects the addresses of both ends, with ports. */
static int find_path(struct endpoint_roce *e, const struct sockaddr *addr, socklen_t length,
                     const struct sockaddr *local)
{
    struct sockaddr_storage peer, own;
    int error = roce_path_ends(addr, length, local, &own, &peer);

    if (error)
        return error;
    if (!roce_address_port(&own))
        roce_address_set_port(&own, e->slot->port->own.number);
    return roce_pair_set_path(e, &own, &peer, 0);
}

static int begin_active(struct endpoint_roce *e, struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                        const struct rddp_conn_attr *attr)
{
    struct life_limits limits = limits_of(&attr->wire);
    int error = find_path(e, addr, length, attr->local);

    if (error)
        return error;
    rc_pair_begin(&e->pair, true, &limits, &qp->qp, reactor_now_us());
    error = roce_call_connect(e, qp, attr);
    if (!error)
        error = endpoint_begin(&e->endpoint, e->slot->port->loop, &queue_pair);
    if (!error)
        qp_use_packets(&qp->qp);
    return error;
}

int endpoint_roce_connect(struct loop *loop, struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                          const struct rddp_conn_attr *attr, struct endpoint **endpoint)
{
    struct roce_slot *slot = qp->slot;
    struct endpoint_roce *e;
    int error = slot ? roce_slot_join(slot, loop) : roce_slot_open(loop, &slot);

    if (error)
        return error;
    e = endpoint_roce_new(slot);
    if (!e) {
        if (!qp->slot)
            roce_slot_close(slot);
        return -ENOMEM;
    }
    e->owns_slot = !qp->slot;
    error = begin_active(e, qp, addr, length, attr);
    if (!error) {
        *endpoint = &e->endpoint;
        return 0;
    }
    endpoint_roce_close(&e->endpoint);
    free(e);
    return error;
}

/* Why a request cannot be accepted, whatever the application says; 0: it can. */
static uint16_t unfit(const struct rcm_event *event, const struct sockaddr_storage *peer)
{
    const struct rcm_terms *terms = &event->message->terms;
    int mtu = roce_path_mtu(peer);

    if (terms->transport != RCM_RC)
        return RCM_WRONG_TRANSPORT;
    return mtu < 0 || (uint32_t)mtu < rcm_mtu(terms->mtu) ? RCM_WRONG_MTU : 0;
}

static int begin_passive(struct endpoint_roce *e, struct roce_service *service, const struct rcm_event *event)
{
    struct rddp_listener *listener = service->of;
    struct life_limits limits = limits_of(&listener->wire);
    int error;

    rc_pair_begin(&e->pair, false, &limits, NULL, reactor_now_us());
    e->call.startup_us = limits.startup_us;
    error = roce_call_take(e, service->cm, event);
    if (error)
        return error;
    life_requested(&e->pair.life);
    error = endpoint_begin(&e->endpoint, listener->loop, &queue_pair);
    if (error)
        return error;
    listener->pending++;
    e->endpoint.listener = listener;
    return 0;
}

void endpoint_roce_requested(struct roce_service *service, const struct rcm_event *event)
{
    struct rcm *engine = roce_cm_engine(service->cm);
    struct endpoint_roce *e = endpoint_roce_new(NULL);
    uint16_t reason;

    if (!e) {
        (void)rcm_refuse(engine, RCM_NO_RESOURCES, NULL, 0);
        return;
    }
    roce_cm_name_ends(service, event, &e->endpoint.local, &e->endpoint.peer);
    reason = unfit(event, &e->endpoint.peer);
    if (reason)
        (void)rcm_refuse(engine, reason, NULL, 0);
    if (reason || begin_passive(e, service, event)) {
        endpoint_roce_close(&e->endpoint);
        free(e);
        return;
    }
    endpoint_pump(&e->endpoint, ENDPOINT_DRIVER);
    endpoint_release(&e->endpoint, ENDPOINT_DRIVER);
}

void endpoint_roce_drain(struct endpoint *endpoint, bool drains)
{
    rc_pair_drain(&endpoint_roce_of(endpoint)->pair, drains, reactor_now_us());
}

void endpoint_roce_restart(struct endpoint *endpoint)
{
    rc_pair_restart(&endpoint_roce_of(endpoint)->pair, reactor_now_us());
}

int endpoint_roce_set_rnr_timer(struct endpoint *endpoint, uint8_t code)
{
    if (code > ROCE_ATTR_CODE_MAX)
        return -EINVAL;
    endpoint_roce_of(endpoint)->pair.responder.attr.rnr_timer = code;
    endpoint_roce_of(endpoint)->pair.responder.attr.rnr_tries = 0; /* each wait is as the program has it */
    return 0;
}

/* The port of an end says nothing. */
static bool is_end_of_path(const struct sockaddr_storage *a, const struct roce_address *b)
{
    struct roce_address address;

    return roce_address_read(a, &address) && roce_address_is_equal(&address, b);
}

static int set_other_path(struct endpoint_roce *e, struct rddp_ib_attr *attr)
{
    int error;

    if (is_end_of_path(&attr->peer, &e->peer) &&
        (roce_address_is_open(&attr->local, attr->peer.ss_family) || is_end_of_path(&attr->local, &e->local)))
        return 0;
    error = roce_path_complete(attr);
    return error ? error : roce_pair_set_path(e, &attr->local, &attr->peer, e->pair.attr.peer_qpn);
}

int endpoint_roce_set_drained(struct endpoint *endpoint, struct rddp_ib_attr *attr, bool has_timers)
{
    struct endpoint_roce *e = endpoint_roce_of(endpoint);
    struct rc_requester_attr *requester = &e->pair.requester.attr;
    int error;

    if (has_timers && (!roce_attr_may_send(attr) || attr->min_rnr_timer > ROCE_ATTR_CODE_MAX ||
                       attr->max_dest_rd_atomic > rc_responder_places(&e->pair.responder)))
        return -EINVAL;
    error = set_other_path(e, attr);
    if (error || !has_timers)
        return error;
    requester->timeout_us = rc_patience_us(attr->timeout);
    requester->retries = attr->retry_cnt;
    requester->rnr_retries = attr->rnr_retry;
    e->pair.responder.attr.reads = attr->max_dest_rd_atomic;
    e->pair.life.qp->attr.ord = attr->max_rd_atomic;
    return 0;
}
