/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_sctp.c - a connection that is an SCTP association, at a socket of its own or at its listener's. */
#include "sctp/io/endpoint_sctp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "endpoint/attr.h"
#include "sctp/io/sctp_conn.h"
#include "sctp/io/sctp_port.h"
#include "sctp/io/ksctp.h"
#include "sctp/io/osctp_provider.h"

enum { LISTENER_PENDING = 4096 }; /* associations of one listener that were not answered */

/* Freed as its first member, the endpoint. */
struct endpoint_sctp {
    struct endpoint endpoint;
    struct sctp_conn conn;
    struct sctp_port *port;
    struct silent_entry silent;
    bool more; /* a turn ended before its work was done */
};

static struct endpoint_sctp *endpoint_sctp_of(struct endpoint *endpoint)
{
    return container_of(endpoint, struct endpoint_sctp, endpoint);
}

static struct assoc *assoc_of(struct endpoint *endpoint)
{
    return &endpoint_sctp_of(endpoint)->conn.assoc;
}

/* --- work ----------------------------------------------------------------------------------------------------------
 */

/* Signals are taken and dropped: this API reports none, and their data have been placed. */
static void endpoint_sctp_receive(struct endpoint_sctp *e, uint64_t now_us)
{
    struct assoc_signal signal;
    bool was_up = e->conn.assoc.up;

    e->more = sctp_conn_receive(&e->conn, now_us);
    if (!was_up && e->conn.assoc.up && e->conn.assoc.attr.adaptation && !e->conn.assoc.peer)
        context_log(e->endpoint.loop->context, RDDP_LOG_WARN,
                    "the peer indicates no adaptation: plain SCTP messages, no header extension");
    while (assoc_signal(&e->conn.assoc, &signal, now_us))
        continue;
    if (e->conn.assoc.life.state != CONN_WAIT_REQUEST)
        silent_remove(&e->silent);
}

static int why_unreachable(const struct assoc *a)
{
    return a->life.note.fault == FAULT_STALLED ? -ETIMEDOUT : -ECONNREFUSED;
}

static bool endpoint_sctp_work(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    struct endpoint_sctp *e = endpoint_sctp_of(endpoint);
    bool more = sctp_conn_serve(&e->conn, role == ENDPOINT_DRIVER, now_us);

    sctp_port_schedule(e->port, role == ENDPOINT_DRIVER);
    atomic_store_explicit(&endpoint->sent_us, now_us, memory_order_relaxed);
    if (e->conn.assoc.up || e->conn.assoc.life.state != CONN_OVER) {
        if (role == ENDPOINT_DRIVER)
            e->more |= more;
        return role == ENDPOINT_DRIVER || !more;
    }
    if (role == ENDPOINT_DRIVER && endpoint->qp)
        endpoint_fail_to_connect(endpoint, why_unreachable(&e->conn.assoc));
    return role == ENDPOINT_DRIVER;
}

static uint64_t endpoint_sctp_rest(struct endpoint *endpoint, uint64_t now_us)
{
    return endpoint_sctp_of(endpoint)->more ? now_us : assoc_deadline(assoc_of(endpoint));
}

static void endpoint_sctp_tick(struct endpoint *endpoint, uint64_t now_us)
{
    assoc_tick(assoc_of(endpoint), now_us);
    endpoint_sctp_receive(endpoint_sctp_of(endpoint), now_us);
}

static bool endpoint_sctp_owes(const struct endpoint *endpoint)
{
    const struct endpoint_sctp *e = container_of(endpoint, const struct endpoint_sctp, endpoint);

    return life_owes(&e->conn.assoc.life) || assoc_wants(&e->conn.assoc) & ASSOC_TX || e->conn.held_octets;
}

/* The callback of the port: events or room for this association. By the driver. */
static void endpoint_sctp_turn(void *owner)
{
    struct endpoint_sctp *e = owner;
    struct endpoint *endpoint = &e->endpoint;

    endpoint_hold(endpoint);
    loop_note_receipt(endpoint->loop, endpoint);
    endpoint_sctp_receive(e, reactor_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

static void poll_port(struct endpoint *endpoint)
{
    sctp_port_drive(endpoint_sctp_of(endpoint)->port);
}

/* --- for the application -------------------------------------------------------------------------------------------
 */

static int bind_streams(struct assoc *a, const struct rddp_conn_attr *attr)
{
    int error = 0;

    for (uint32_t i = 0; !error && i < attr->sctp_stream_count; i++)
        error = assoc_bind(a, (uint16_t)(i < ASSOC_STREAMS ? i : ASSOC_STREAMS),
                           attr->sctp_streams[i] ? (uint32_t)attr->sctp_streams[i]->mr->key : 0);
    return error;
}

static int accept_assoc(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                        uint64_t now_us)
{
    struct endpoint_sctp *e = endpoint_sctp_of(endpoint);
    int error = e->conn.assoc.life.state == CONN_WAIT_ANSWER ? qp_prepare_unordered(qp) : -ECONNABORTED;

    (void)now_us;
    if (!error)
        error = bind_streams(&e->conn.assoc, attr);
    if (!error)
        error = assoc_accept(&e->conn.assoc, &qp->qp, at_most(attr->ird, qp->qp.attr.ird),
                             at_most(attr->ord, qp->qp.attr.ord), attr->private_data, attr->private_data_length);
    e->more = !error; /* messages that arrived before the answer */
    return error;
}

static int reject_assoc(struct endpoint *endpoint, const void *private_data, uint16_t length, uint64_t now_us)
{
    return assoc_reject(assoc_of(endpoint), private_data, length, now_us);
}

static void endpoint_sctp_finish(struct endpoint *endpoint, uint64_t now_us)
{
    assoc_close(assoc_of(endpoint), now_us);
}

static void endpoint_sctp_detach(struct endpoint *endpoint, uint64_t now_us)
{
    assoc_detach(assoc_of(endpoint), now_us);
}

static void endpoint_sctp_lost(struct endpoint *endpoint, enum fault fault)
{
    assoc_lost(assoc_of(endpoint), fault);
}

static void endpoint_sctp_fill_event(const struct endpoint *endpoint, struct rddp_event *event)
{
    const struct neg *hello = &container_of(endpoint, const struct endpoint_sctp, endpoint)->conn.assoc.peer_hello;

    event->private_data = hello->data;
    event->private_data_length = (uint16_t)hello->data_length;
    event->ird = hello->ird;
    event->ord = hello->ord;
}

static void endpoint_sctp_info_of(const struct endpoint *endpoint, struct rddp_qp_info *info)
{
    const struct assoc *a = &container_of(endpoint, const struct endpoint_sctp, endpoint)->conn.assoc;

    info->wire = RDDP_WIRE_SCTP;
    info->crc = true;
    info->ird = a->ird;
    info->ord = a->ord;
    info->emss = a->payload_max;
    info->sctp_own = (enum rddp_sctp_adaptation)a->own;
    info->sctp_peer = (enum rddp_sctp_adaptation)a->peer;
}

static void close_assoc(struct endpoint *endpoint)
{
    struct endpoint_sctp *e = endpoint_sctp_of(endpoint);

    silent_remove(&e->silent);
    sctp_conn_fini(&e->conn);
    sctp_port_leave(e->port);
}

static const struct endpoint_kind association = {
    .termination = "ABORT",
    .work = endpoint_sctp_work,
    .rest = endpoint_sctp_rest,
    .tick = endpoint_sctp_tick,
    .owes = endpoint_sctp_owes,
    .poll = poll_port,
    .accept = accept_assoc,
    .reject = reject_assoc,
    .finish = endpoint_sctp_finish,
    .detach = endpoint_sctp_detach,
    .lost = endpoint_sctp_lost,
    .fill_event = endpoint_sctp_fill_event,
    .info = endpoint_sctp_info_of,
    .close = close_assoc,
};

/* --- both ends ---------------------------------------------------------------------------------------------------- */

static const struct sctp_provider *const providers[] = {
    [RDDP_SCTP_OWN] = &osctp,
    [RDDP_SCTP_KERNEL] = &ksctp,
};

static struct sctp_attr stack_attr(const struct rddp_wire_attr *wire)
{
    return (struct sctp_attr){
        .indication = wire->sctp_adaptation,
        .mtu = wire->sctp_mtu,
        .udp_port = wire->sctp_udp_port,
        .connect_ms = wire->startup_timeout_ms,
        .raw = !wire->sctp_udp_port,
        .address = wire->sctp_addresses,
        .addresses = wire->sctp_address_count,
    };
}

/* The tags for the sinks of our Reads are derived from the seed, which must be unguessable. */
static int assoc_attr_of(const struct rddp_wire_attr *wire, struct assoc_attr *attr)
{
    *attr = (struct assoc_attr){
        .adaptation = (enum sctpddp_adaptation)wire->sctp_adaptation,
        .batches = providers[wire->sctp_provider]->batches != NULL,
        .limits = {.startup_us = (uint64_t)wire->startup_timeout_ms * 1000,
                   .stall_us = (uint64_t)wire->stall_timeout_ms * 1000,
                   .close_us = (uint64_t)wire->close_timeout_ms * 1000},
    };
    return getrandom(&attr->seed, sizeof(attr->seed), 0) == sizeof(attr->seed) ? 0 : -EAGAIN;
}

static int open_port(struct rddp_context *context, struct loop *loop, const struct sctp_provider *provider,
                     const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr,
                     struct sctp_port **port)
{
    const char *why;
    int error = sctp_port_open(loop, provider, local, length, attr, endpoint_sctp_turn, port, &why);

    if (error == -EPROTONOSUPPORT)
        context_log(context, RDDP_LOG_ERROR, "%s", why);
    return error;
}

/* Takes over one use of the port and the association, even if it fails; then it has freed `e`. On success the caller
 * holds the endpoint. */
static int endpoint_sctp_begin(struct endpoint_sctp *e, struct sctp_port *port, struct sctp_assoc *sctp)
{
    int error;

    e->port = port;
    e->endpoint.life = &e->conn.assoc.life;
    e->endpoint.is_up = true;
    sctp_conn_attach(&e->conn, port->socket, sctp);
    error = endpoint_begin(&e->endpoint, port->loop, &association);
    if (error) {
        close_assoc(&e->endpoint);
        free(e);
        return error;
    }
    sctp->owner = e;
    sctp_port_schedule(port, true);
    return 0;
}

/* --- the active end ----------------------------------------------------------------------------------------------- */

/* Where the socket of an association is, the port being one of UDP: at `from`, or NULL, at the wildcard. Returns the
 * SCTP port of `from`, or 0. */
static uint16_t local_address(sa_family_t family, const struct sockaddr *from, struct sockaddr_storage *local)
{
    uint16_t sctp_port;

    *local = (struct sockaddr_storage){.ss_family = family};
    if (from)
        memcpy(local, from, sctp_address_length(family));
    sctp_port = sctp_port_of(local);
    sctp_set_port(local, 0);
    return sctp_port;
}

static int endpoint_sctp_init_active(struct endpoint_sctp *e, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    struct assoc_attr own;
    int error = assoc_attr_of(&attr->wire, &own);

    own.ird = at_most(attr->ird, qp->qp.attr.ird);
    own.ord = at_most(attr->ord, qp->qp.attr.ord);
    if (!error)
        error = qp_prepare_unordered(qp);
    if (!error)
        error = sctp_conn_init_active(&e->conn, &own, &qp->qp, attr->private_data, attr->private_data_length,
                                      reactor_now_us());
    return error ? error : bind_streams(&e->conn.assoc, attr);
}

static int endpoint_sctp_connect(struct loop *loop, struct rddp_qp *qp, const struct sockaddr *peer, socklen_t length,
                                 const struct rddp_conn_attr *attr, struct endpoint **endpoint)
{
    struct sctp_attr stack = stack_attr(&attr->wire);
    struct endpoint_sctp *e = NULL;
    struct sockaddr_storage local;
    struct sctp_port *port;
    struct sctp_assoc *sctp;
    socklen_t local_length = sctp_address_length(peer->sa_family);
    int error;

    if ((peer->sa_family != AF_INET && peer->sa_family != AF_INET6) || length < local_length)
        return -EAFNOSUPPORT;
    stack.alone = true;
    stack.local_port = local_address(peer->sa_family, attr->local, &local);
    error = open_port(qp->context, loop, providers[attr->wire.sctp_provider], (struct sockaddr *)&local, local_length,
                      &stack, &port);
    if (error)
        return error;
    e = calloc(1, sizeof(*e));
    error = e ? endpoint_sctp_init_active(e, qp, attr) : -ENOMEM;
    if (!error)
        error = port->socket->provider->connect(port->socket, peer, &sctp);
    if (error) {
        sctp_port_leave(port);
        if (e)
            sctp_conn_fini(&e->conn);
        free(e);
        return error;
    }
    port->socket->provider->names(sctp, &e->endpoint.local, &e->endpoint.peer);
    error = endpoint_sctp_begin(e, port, sctp);
    *endpoint = error ? NULL : &e->endpoint;
    return error;
}

/* --- the passive end ---------------------------------------------------------------------------------------------- */

static void endpoint_sctp_turn_away(struct sctp_port *port, struct sctp_assoc *sctp, const char *why)
{
    port->socket->provider->close(sctp);
    context_log(port->listener->context, RDDP_LOG_WARN, "refused an association: %s", why);
}

static void give_way(struct silent_entry *entry)
{
    struct endpoint *endpoint = &container_of(entry, struct endpoint_sctp, silent)->endpoint;

    endpoint_hold(endpoint);
    endpoint_abort(endpoint);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

/* Takes a place for an association of this peer: one that has said nothing gives way, of the peer's own address if that
 * has its share, or else the oldest. Returns false if all wait for the application. */
static bool take_silent_place(const struct rddp_listener *listener, struct silent *silent,
                              const struct sockaddr_storage *peer)
{
    struct silent_entry *entry = silent_over_share(silent, peer);

    if (!entry && listener->pending >= LISTENER_PENDING) {
        entry = silent_oldest(silent);
        if (!entry)
            return false;
    }
    if (entry)
        give_way(entry);
    return true;
}

static void take_association(struct rddp_listener *listener, struct sctp_port *port, struct sctp_assoc *sctp)
{
    struct endpoint_sctp *e = calloc(1, sizeof(*e));
    const char *why = e ? NULL : "no memory";
    struct assoc_attr own;

    if (e)
        port->socket->provider->names(sctp, &e->endpoint.local, &e->endpoint.peer);
    if (e && !take_silent_place(listener, port->silent, &e->endpoint.peer))
        why = "too many wait for an answer";
    else if (e && assoc_attr_of(&listener->wire, &own))
        why = "no random numbers";
    if (why) {
        endpoint_sctp_turn_away(port, sctp, why);
        free(e);
        return;
    }
    sctp_conn_init_passive(&e->conn, &own, reactor_now_us());
    sctp_port_use(port);
    if (endpoint_sctp_begin(e, port, sctp))
        return;
    listener->pending++;
    e->endpoint.listener = listener;
    silent_add(port->silent, &e->silent, &e->endpoint.peer);
    endpoint_pump(&e->endpoint, ENDPOINT_DRIVER);
    endpoint_release(&e->endpoint, ENDPOINT_DRIVER);
}

/* The memory and the key of the list of those that say nothing. */
static int open_silent(struct sctp_port *port)
{
    uint64_t key[2];

    port->silent = malloc(sizeof(*port->silent));
    if (!port->silent)
        return -ENOMEM;
    if (getrandom(key, sizeof(key), 0) != sizeof(key))
        return -EAGAIN;
    silent_init(port->silent, key);
    return 0;
}

static int endpoint_sctp_listen(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length)
{
    struct sctp_attr stack = stack_attr(&listener->wire);
    struct sockaddr_storage local = {.ss_family = AF_UNSPEC};
    struct sctp_port *port;
    uint16_t sctp_port;
    int error;

    if (length > sizeof(local) || length < sizeof(struct sockaddr_in))
        return -EINVAL;
    memcpy(&local, addr, length);
    if (local.ss_family != AF_INET && (local.ss_family != AF_INET6 || length < sizeof(struct sockaddr_in6)))
        return -EAFNOSUPPORT;
    sctp_port = sctp_port_of(&local);
    sctp_set_port(&local, stack.udp_port);
    error = open_port(listener->context, listener->loop, providers[listener->wire.sctp_provider],
                      (struct sockaddr *)&local, length, &stack, &port);
    if (error)
        return error;
    error = open_silent(port);
    if (!error)
        error = port->socket->provider->listen(port->socket, sctp_port);
    listener->wire.sctp_addresses = NULL; /* the caller's */
    if (error == -EADDRNOTAVAIL)
        context_log(listener->context, RDDP_LOG_ERROR,
                    "no such address, or all of them: a listener of kernel SCTP has to name those its peers are told");
    if (error) {
        sctp_port_leave(port);
        return error;
    }
    port->listener = listener;
    port->arrived = take_association;
    listener->sctp = port;
    return 0;
}

static void endpoint_sctp_unlisten(struct rddp_listener *listener)
{
    if (!listener->sctp) /* fork() left it to the parent */
        return;
    listener->sctp->listener = NULL;
    listener->sctp->socket->provider->unlisten(listener->sctp->socket);
    sctp_port_leave(listener->sctp);
    listener->sctp = NULL;
}

static void endpoint_sctp_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr)
{
    listener->sctp->socket->provider->local(listener->sctp->socket, addr);
}

const struct transport transport_sctp = {
    .connect = endpoint_sctp_connect,
    .listen = endpoint_sctp_listen,
    .unlisten = endpoint_sctp_unlisten,
    .addr = endpoint_sctp_addr,
    .abandon = osctp_abandon,
};
