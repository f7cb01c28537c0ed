/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_cm.c - messages of the connection manager, sealed and verified, and to which process each goes. */
#include "roce/io/roce_cm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/container.h"
#include "loop/descriptors.h"
#include "loop/reactor.h"
#include "roce/io/roce_host.h"
#include "roce/io/roce_offers.h"

enum {
    ID_PORT_SHIFT = 16,         /* of a comm ID: a UDP port of its process */
    ID_RANDOM = 0xffff,         /* its other bits */
    SERVICE_TRIES = 1000,       /* ports that may be taken, when any would do */
    FREE_PORTS_FROM = 32768,    /* ports that are selected when any would do, as Linux's ephemeral ones */
    FREE_PORTS = 60999 - 32768, /* how many there are */
    MAD_AT = BTH_OCTETS + DETH_OCTETS,
    PACKET_OCTETS = RCM_PACKET_OCTETS + ICRC_OCTETS,
    OFFER_US = 500, /* until requests that listeners of this host have no space for are offered again */
};

struct roce_cm {
    struct roce_manager manager;
    struct roce_host *host;
    struct rcm rcm;
    struct timer timer;
    struct roce_port *port; /* that messages leave from, and that comm IDs name; NULL: there are no users */
    uint32_t users;         /* connections and listeners */
    struct roce_cm_conn *conns;
    struct roce_offers offers;
    uint64_t offered_us; /* when they were offered last */
    uint32_t paused;     /* listeners that take no requests of this host */
};

struct roce_cm *roce_cm_of(struct roce_host *host)
{
    return container_of(host->manager, struct roce_cm, manager);
}

struct rcm *roce_cm_engine(struct roce_cm *cm)
{
    return &cm->rcm;
}

/* --- users ------------------------------------------------------------------------------------------------------- */

/* The port stays as long as there are users: it is in their comm IDs. */
static void cm_use(struct roce_cm *cm)
{
    if (cm->users++)
        return;
    cm->port = cm->host->ports;
    cm->port->used++;
    cm->rcm.attr.id_base = (uint32_t)cm->port->own.number << ID_PORT_SHIFT;
}

/* The host may be gone behind roce_host_end(), or roce_host_sweep(). */
static void cm_unuse(struct roce_cm *cm)
{
    if (--cm->users)
        return;
    cm->port->used--;
    cm->port = NULL;
}

struct roce_cm_conn *roce_cm_new(struct roce_cm *cm, struct roce_cm_user *user)
{
    struct roce_cm_conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        return NULL;
    conn->cm = cm;
    conn->user = user;
    conn->next = cm->conns;
    conn->before = &cm->conns;
    if (cm->conns)
        cm->conns->before = &conn->next;
    cm->conns = conn;
    cm_use(cm);
    return conn;
}

static void cm_free(struct roce_cm_conn *conn)
{
    *conn->before = conn->next;
    if (conn->next)
        conn->next->before = conn->before;
    cm_unuse(conn->cm);
    free(conn);
}

void roce_cm_drop(struct roce_cm_conn *conn)
{
    struct roce_host *host = conn->cm->host;

    rcm_forget(&conn->cm->rcm, &conn->conn);
    cm_free(conn);
    roce_host_sweep(host);
}

void roce_cm_leave(struct roce_cm_conn *conn, bool silent)
{
    struct roce_cm *cm = conn->cm;

    conn->user = NULL;
    if (silent) {
        roce_cm_drop(conn);
        return;
    }
    rcm_disconnect(&cm->rcm, &conn->conn, reactor_now_us());
    roce_cm_settle(cm);
}

/* --- out --------------------------------------------------------------------------------------------------------- */

static bool cm_is_near(const struct roce_address *local, const struct roce_address *peer)
{
    return roce_address_is_equal(local, peer) || roce_address_is_loopback(peer);
}

struct rcm_path roce_cm_path(const struct roce_address *local, const struct roce_address *peer, uint32_t scope)
{
    struct rcm_path path = {.scope = scope, .peer_port = ROCE_PORT};

    memcpy(path.local, local->octets, sizeof(path.local));
    memcpy(path.peer, peer->octets, sizeof(path.peer));
    return path;
}

void roce_cm_name_ends(const struct roce_service *service, const struct rcm_event *event,
                       struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    struct roce_address own, other;

    memcpy(own.octets, event->path.local, sizeof(own.octets));
    memcpy(other.octets, event->path.peer, sizeof(other.octets));
    roce_address_name(&own, roce_address_port(&service->address), event->path.scope, local);
    roce_address_name(&other, event->ip->port, event->path.scope, peer);
}

static void cm_seal(const struct icrc_path *path, uint16_t identification, const uint8_t *packet, uint8_t *p)
{
    uint32_t crc = icrc_head(icrc_begin(path, identification, PACKET_OCTETS), packet, RCM_PACKET_OCTETS);

    put32le(put_bytes(p, packet, RCM_PACKET_OCTETS), crc);
}

/* A request to this host goes straight to the process that listens, whoever has port 4791: from there no UDP packet
 * has come, so it is not to a port. Returns false if none of ours listens. */
static bool offer_here(struct roce_cm *cm, const struct roce_address *local, const struct roce_address *peer,
                       uint16_t from_port, const uint8_t *packet)
{
    struct icrc_path path = roce_address_path(local, from_port, peer, 0);
    struct roce_run run = {.octets = PACKET_OCTETS, .each = PACKET_OCTETS, .from = *local, .to = *peer};
    uint8_t sealed[PACKET_OCTETS];
    struct rcm_target target;

    if (!cm_is_near(local, peer) || !rcm_find_target(&target, packet + MAD_AT, RCM_MAD_OCTETS) || !target.is_request)
        return false;
    cm_seal(&path, 0, packet, sealed);
    run.at = sealed;
    run.from_port = from_port;
    return roce_offers_put(&cm->offers, &cm->host->passing, target.service, target.sender, &run);
}

static void cm_send(struct roce_cm *cm, struct roce_port *port, const struct rcm_path *to, const uint8_t *packet)
{
    struct udp *udp = &port->own.udp;
    struct sockaddr_storage address, bound;
    struct roce_address local, peer;
    struct icrc_path path;

    memcpy(local.octets, to->local, sizeof(local.octets));
    memcpy(peer.octets, to->peer, sizeof(peer.octets));
    path = roce_address_path(&local, port->own.number, &peer, to->peer_port);
    udp_local(udp, &bound);
    if (offer_here(cm, &local, &peer, port->own.number, packet) ||
        !roce_address_write(&peer, bound.ss_family, to->peer_port, to->scope, &address))
        return;
    udp_set_source(udp, local.octets);
    cm_seal(&path, (uint16_t)udp_place(udp), packet, udp_buffer(udp, &address, PACKET_OCTETS));
    udp_put(udp, PACKET_OCTETS);
}

static void cm_send_all(struct roce_cm *cm)
{
    struct roce_port *port = cm->port ? cm->port : cm->host->ports;
    uint8_t packet[RCM_PACKET_OCTETS];
    struct rcm_path path;

    if (!port)
        return;
    (void)roce_port_enter(port, true);
    while (rcm_output(&cm->rcm, &path, packet))
        cm_send(cm, port, &path, packet);
    udp_flush(&port->own.udp);
    roce_port_leave(port);
}

static uint64_t at_most_us(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Listeners that have answered enough of this host's requests take more of them. */
static void resume_services(struct roce_cm *cm)
{
    for (struct rcm_link *link = cm->rcm.listeners.next; link != &cm->rcm.listeners; link = link->next) {
        struct roce_service *service = container_of(link, struct roce_service, listener.link);

        if (!service->passed.rests || rcm_is_full(&service->listener))
            continue;
        reactor_rouse(&cm->host->loop->reactor, &service->passed);
        cm->paused--;
    }
}

void roce_cm_settle(struct roce_cm *cm)
{
    uint64_t now_us = reactor_now_us(), due_us = rcm_has_event(&cm->rcm) ? now_us : rcm_deadline(&cm->rcm);

    if (cm->paused && descriptors_are_ours())
        resume_services(cm);
    if (cm->offers.waiting && now_us - cm->offered_us >= OFFER_US) {
        cm->offered_us = now_us;
        roce_offers_again(&cm->offers, &cm->host->passing);
    }
    cm_send_all(cm);
    if (cm->offers.waiting)
        due_us = at_most_us(due_us, now_us + OFFER_US);
    reactor_set_timer(&cm->host->loop->reactor, &cm->timer, due_us);
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static void cm_give(const struct rcm_event *event)
{
    struct roce_cm_conn *conn;

    if (event->kind == RCM_EVENT_REQUEST) {
        struct roce_service *service = container_of(event->listener, struct roce_service, listener);

        service->requested(service, event);
        return;
    }
    conn = container_of(event->conn, struct roce_cm_conn, conn);
    if (conn->user)
        conn->user->event(conn->user, event);
    if (event->kind == RCM_EVENT_GONE)
        cm_free(conn);
}

/* The driver holds no endpoint, and the host stays meanwhile. */
static void cm_give_all(struct roce_cm *cm)
{
    struct rcm_event event;

    while (rcm_event(&cm->rcm, &event))
        cm_give(&event);
    roce_cm_settle(cm);
}

static void cm_on_time(struct timer *timer, uint64_t now_us)
{
    struct roce_cm *cm = container_of(timer, struct roce_cm, timer);
    struct roce_host *host = cm->host;

    roce_host_begin(host);
    cm_give_all(cm);
    rcm_tick(&cm->rcm, now_us);
    cm_give_all(cm);
    roce_host_end(host);
}

/* --- in ---------------------------------------------------------------------------------------------------------- */

/* Peers of ours on this host answer at their own port, whoever has port 4791. */
static uint16_t answer_port(const struct roce_run *run, const struct rcm_target *target)
{
    bool is_own = run->from_port >= ROCE_PORT_MIN && run->from_port == target->sender >> ID_PORT_SHIFT;

    return is_own && cm_is_near(&run->to, &run->from) ? run->from_port : ROCE_PORT;
}

static void cm_receive(struct roce_cm *cm, const struct roce_run *run, const struct bth *b,
                       const struct rcm_target *target)
{
    struct icrc_path sealed = roce_address_path(&run->from, run->from_port, &run->to, run->to_port);
    struct rcm_path path = roce_cm_path(&run->to, &run->from, run->scope);

    if (!roce_host_verifies(cm->host, &sealed, 0, run->at, run->octets))
        return;
    path.peer_port = answer_port(run, target);
    path.is_known = !run->socket && !run->to_port && cm_is_near(&run->to, &run->from); /* see offer_here() */
    cm_give_all(cm);
    rcm_input(&cm->rcm, &path, b->data, b->length, reactor_now_us());
    cm_give_all(cm);
}

/* Passes a message on that came to the common port and is for another process. Returns false if it is for us, or no
 * process wants it. */
static bool pass_on(struct roce_cm *cm, const struct roce_run *run, const struct rcm_target *target)
{
    struct roce_host *host = cm->host;
    uint16_t port = (uint16_t)(target->id >> ID_PORT_SHIFT);
    int error;

    if (run->socket != &host->shared)
        return false;
    if (target->is_request) {
        if (rcm_listens(&cm->rcm, target->service, run->to.octets) ||
            (error = roce_passing_offer(&host->passing, target->service, run)) == -ECONNREFUSED)
            return false;
        host->passing.lost += error == -EAGAIN; /* it does not keep up, and the requester asks again */
    } else if (port < ROCE_PORT_MIN || (cm->port && port == cm->port->own.number)) {
        return false;
    } else {
        roce_passing_put(&host->passing, port, run);
    }
    host->counters.passed++;
    return true;
}

static void cm_take(struct roce_manager *manager, const struct roce_run *all)
{
    struct roce_cm *cm = container_of(manager, struct roce_cm, manager);
    struct rcm_target target;
    struct bth b;

    for (uint32_t at = 0; at < all->octets; at += all->each) {
        struct roce_run run = *all;

        run.at += at;
        run.octets = all->octets - at < all->each ? all->octets - at : all->each;
        if (bth_decode(&b, run.at, run.octets) != BTH_OK || !rcm_is_packet(&b) ||
            !rcm_find_target(&target, b.data, b.length))
            cm->host->counters.malformed++;
        else if (!pass_on(cm, &run, &target))
            cm_receive(cm, &run, &b, &target);
    }
}

/* --- listeners --------------------------------------------------------------------------------------------------- */

/* Requests of this host wait in the queues of their processes while the listener has its share of them. */
static void cm_on_passed(struct watch *watch, uint32_t events)
{
    struct roce_service *service = container_of(watch, struct roce_service, passed);

    struct roce_cm *cm = service->cm;

    (void)events;
    roce_host_take_passed(cm->host, watch->fd);
    if (!rcm_is_full(&service->listener) || watch->rests)
        return;
    reactor_rest(&cm->host->loop->reactor, watch);
    cm->paused++;
}

/* Takes the name of the service with this port. */
static int service_take_name(struct roce_service *service, const struct roce_address *local, uint16_t port)
{
    service->listener.service = rcm_service(service->listener.datagram ? RCM_SPACE_UDP : RCM_SPACE_TCP, port);
    service->passed.fd = roce_passing_listen(service->listener.service, local);
    return service->passed.fd < 0 ? service->passed.fd : 0;
}

static int service_take_any_name(struct roce_service *service, const struct roce_address *local, uint16_t *port)
{
    int error = -EADDRINUSE;
    uint16_t number;

    for (unsigned i = 0; i < SERVICE_TRIES && error == -EADDRINUSE; i++) {
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            return -EAGAIN;
        *port = (uint16_t)(FREE_PORTS_FROM + number % FREE_PORTS);
        error = service_take_name(service, local, *port);
    }
    return error;
}

int roce_cm_listen(struct roce_cm *cm, struct roce_service *service)
{
    struct rcm_listener *listener = &service->listener;
    uint16_t port = roce_address_port(&service->address);
    struct roce_address local;
    int error;

    if (!roce_address_read(&service->address, &local))
        return -EAFNOSUPPORT;
    error = port ? service_take_name(service, &local, port) : service_take_any_name(service, &local, &port);
    if (error)
        return error;
    service->cm = cm;
    service->passed.ready = cm_on_passed;
    listener->rdma_cm = true;
    listener->backlog = RCM_BACKLOG_MAX;
    memcpy(listener->local, local.octets, sizeof(listener->local));
    error = reactor_watch(&cm->host->loop->reactor, &service->passed, EPOLLIN);
    if (!error) {
        error = rcm_listen(&cm->rcm, listener);
        if (error)
            reactor_unwatch(&cm->host->loop->reactor, &service->passed);
    }
    if (error) {
        close(service->passed.fd);
        return error;
    }
    roce_address_set_port(&service->address, port);
    cm_use(cm);
    return 0;
}

void roce_cm_unlisten(struct roce_service *service)
{
    struct roce_cm *cm = service->cm;
    struct roce_host *host = cm->host;

    rcm_unlisten(&cm->rcm, &service->listener);
    cm->paused -= service->passed.rests;
    reactor_unwatch(&host->loop->reactor, &service->passed);
    descriptor_close(service->passed.fd);
    cm_unuse(cm);
    roce_host_sweep(host);
}

/* --- the host's -------------------------------------------------------------------------------------------------- */

static uint64_t cm_random(void *of)
{
    uint64_t number;

    (void)of;
    while (getrandom(&number, sizeof(number), 0) != sizeof(number))
        continue;
    return number;
}

static void cm_fini(struct roce_manager *manager)
{
    struct roce_cm *cm = container_of(manager, struct roce_cm, manager);

    while (cm->conns) {
        rcm_forget(&cm->rcm, &cm->conns->conn);
        cm_free(cm->conns);
    }
    reactor_forget_timer(&cm->host->loop->reactor, &cm->timer);
    roce_offers_fini(&cm->offers);
    free(cm);
}

int roce_cm_attach(struct roce_host *host)
{
    struct rcm_attr attr = {.id_mask = ID_RANDOM, .guid = cm_random(NULL), .random = cm_random};
    struct roce_cm *cm = calloc(1, sizeof(*cm));

    if (!cm)
        return -ENOMEM;
    cm->timer.fire = cm_on_time;
    if (reactor_add_timer(&host->loop->reactor, &cm->timer)) {
        free(cm);
        return -ENOMEM;
    }
    cm->manager = (struct roce_manager){.take = cm_take, .fini = cm_fini};
    cm->host = host;
    rcm_init(&cm->rcm, &attr);
    host->manager = &cm->manager;
    return 0;
}
