/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint_ud.c - the life of a queue pair of unreliable datagrams on its loop. */
#include "roce/io/endpoint_ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/ud.h"
#include "roce/io/roce_packet.h"

enum {
    UD_TURN_PACKETS = 4 * UDP_BATCH_PACKETS, /* that a turn sends */
    UD_CLOSE_US = 100000,                    /* an end needs no longer: nothing is awaited of a peer */
};

/* Guarded as its first member, as which it is freed. */
struct endpoint_ud {
    struct endpoint endpoint;
    struct ud ud;
    struct roce_slot *slot; /* goes with the queue pair */
    struct roce_user user;
    struct roce_socket *socket; /* that its last datagrams came by; NULL: none have come */
    sa_family_t family;         /* of the socket that it sends from */
    bool more;                  /* a turn ended before its work was done */
    uint64_t wrong_icrc;
};

static struct endpoint_ud *endpoint_ud_of(struct endpoint *endpoint)
{
    return container_of(endpoint, struct endpoint_ud, endpoint);
}

static const struct endpoint_ud *endpoint_ud_of_const(const struct endpoint *endpoint)
{
    return container_of(endpoint, const struct endpoint_ud, endpoint);
}

/* --- out --------------------------------------------------------------------------------------------------------- */

/* On this host the port in a queue pair's number leads there, whoever has the common port. */
static uint16_t destination_port(const struct roce_address *local, const struct roce_address *peer, uint32_t qpn)
{
    uint32_t port = (qpn & BTH_MASK24) >> ROCE_SLOT_BITS;
    bool is_near = roce_address_is_equal(local, peer) || roce_address_is_loopback(peer);

    return is_near && port >= ROCE_PORT_MIN ? (uint16_t)port : ROCE_PORT;
}

static void send_datagram(const struct endpoint_ud *e, struct rc_packet *packet, const struct destination *to)
{
    struct roce_socket *own = &e->slot->port->own;
    struct sockaddr_storage address;
    struct roce_address local, peer;
    struct icrc_path path;
    uint16_t port;

    memcpy(local.octets, to->path.local, sizeof(local.octets));
    memcpy(peer.octets, to->path.peer, sizeof(peer.octets));
    port = destination_port(&local, &peer, to->qpn);
    if (!roce_address_write(&peer, e->family, port, to->path.scope, &address))
        return; /* there is no IPv6: it is lost, as any packet may be */
    path = roce_address_path(&local, own->number, &peer, port);
    udp_set_source(&own->udp, local.octets);
    roce_packet_put(&own->udp, &address, &path, packet);
}

static bool send_datagrams(struct endpoint_ud *e, uint64_t now_us)
{
    const struct destination *to;
    uint8_t buffer[BTH_MTU_MAX];
    struct rc_packet packet;
    unsigned packets = 0;

    packet.emit.buffer = buffer;
    for (; packets < UD_TURN_PACKETS && ud_emit(&e->ud, &packet, &to, now_us); packets++)
        send_datagram(e, &packet, to);
    udp_flush(&e->slot->port->own.udp);
    return packets == UD_TURN_PACKETS;
}

static bool endpoint_ud_work(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    struct endpoint_ud *e = endpoint_ud_of(endpoint);
    bool is_driver = role == ENDPOINT_DRIVER;

    ud_check(&e->ud, now_us);
    if (ud_has_output(&e->ud)) {
        if (!roce_port_enter(e->slot->port, is_driver))
            return false;
        e->more = send_datagrams(e, now_us);
        roce_port_leave(e->slot->port);
        atomic_store_explicit(&endpoint->sent_us, now_us, memory_order_relaxed);
    }
    if (e->ud.life.state != CONN_ENDING || e->ud.life.fin_sent)
        return is_driver || !e->more;
    if (is_driver)
        life_fin(&e->ud.life, now_us);
    return is_driver;
}

static uint64_t endpoint_ud_rest(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_ud *e = endpoint_ud_of(endpoint);

    return e->more ? now_us : ud_deadline(&e->ud);
}

static void endpoint_ud_tick(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_ud *e = endpoint_ud_of(endpoint);

    e->more = false;
    ud_tick(&e->ud, now_us);
}

static bool endpoint_ud_owes(const struct endpoint *endpoint)
{
    const struct endpoint_ud *e = endpoint_ud_of_const(endpoint);

    return life_owes(&e->ud.life) || e->more;
}

/* --- in ---------------------------------------------------------------------------------------------------------- */

static void take_datagrams(struct endpoint_ud *e, const struct roce_run *run, uint64_t now_us)
{
    struct icrc_path path = roce_address_path(&run->from, run->from_port, &run->to, run->to_port);
    uint8_t grh[GRH_OCTETS];
    struct bth b;

    for (uint32_t at = 0, octets; at < run->octets;) {
        enum roce_packet_result result =
            roce_packet_next(e->slot->port->host, &path, run, e->ud.attr.pkey, &at, &b, &octets);

        e->wrong_icrc += result == ROCE_PACKET_ICRC;
        if (result != ROCE_PACKET_OK)
            continue;
        grh_write(grh, run->from.octets, run->to.octets, octets);
        ud_rx(&e->ud, &b, grh, now_us);
    }
}

/* Called for the slot by the driver, who does not hold the endpoint. */
static void endpoint_ud_take(struct roce_user *user, const struct roce_run *run)
{
    struct endpoint_ud *e = container_of(user, struct endpoint_ud, user);
    struct endpoint *endpoint = &e->endpoint;

    endpoint_hold(endpoint);
    loop_note_receipt(endpoint->loop, endpoint);
    e->socket = run->socket;
    take_datagrams(e, run, reactor_now_us());
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

static void endpoint_ud_poll(struct endpoint *endpoint)
{
    struct endpoint_ud *e = endpoint_ud_of(endpoint);
    struct roce_port *port = e->slot->port;

    if (!port->host)
        return;
    roce_socket_poll(e->socket && e->socket != &port->host->shared ? e->socket : &port->own);
    if (port->host->shared.udp.fd >= 0)
        roce_socket_poll(&port->host->shared);
}

/* --- for the application ------------------------------------------------------------------------------------------ */

static int accept_no_pair(struct endpoint *endpoint, struct rddp_qp *qp, const struct rddp_conn_attr *attr,
                          uint64_t now_us)
{
    (void)endpoint;
    (void)qp;
    (void)attr;
    (void)now_us;
    return -EINVAL;
}

static int reject_no_pair(struct endpoint *endpoint, const void *private_data, uint16_t length, uint64_t now_us)
{
    (void)endpoint;
    (void)private_data;
    (void)length;
    (void)now_us;
    return -EINVAL;
}

static void endpoint_ud_finish(struct endpoint *endpoint, uint64_t now_us)
{
    life_close(&endpoint_ud_of(endpoint)->ud.life, now_us);
}

/* The number may be used at once again: nothing arrives here any more. */
static void endpoint_ud_detach(struct endpoint *endpoint, uint64_t now_us)
{
    struct endpoint_ud *e = endpoint_ud_of(endpoint);

    e->slot->user = NULL;
    life_detach(&e->ud.life, now_us);
    life_lost(&e->ud.life, FAULT_LOST);
}

static void endpoint_ud_lost(struct endpoint *endpoint, enum fault fault)
{
    life_lost(&endpoint_ud_of(endpoint)->ud.life, fault);
}

static void endpoint_ud_fill_event(const struct endpoint *endpoint, struct rddp_event *event)
{
    (void)endpoint;
    event->private_data_length = 0;
}

static void endpoint_ud_info(const struct endpoint *endpoint, struct rddp_qp_info *info)
{
    const struct endpoint_ud *e = endpoint_ud_of_const(endpoint);

    info->wire = RDDP_WIRE_ROCE;
    info->crc = true;
    info->emss = BTH_MTU_MAX;
    info->ib.not_ready_here = e->ud.not_ready;
    info->ib.wrong_qkey = e->ud.wrong_q_key;
    info->ib.wrong_icrc = e->wrong_icrc;
    (void)roce_port_enter(e->slot->port, true);
    roce_port_count(e->slot->port, &info->ib);
    roce_port_leave(e->slot->port);
}

static void endpoint_ud_close(struct endpoint *endpoint)
{
    struct endpoint_ud *e = endpoint_ud_of(endpoint);

    if (e->slot->user == &e->user)
        e->slot->user = NULL;
}

static const struct endpoint_kind datagrams = {
    .termination = "nothing",
    .work = endpoint_ud_work,
    .rest = endpoint_ud_rest,
    .tick = endpoint_ud_tick,
    .owes = endpoint_ud_owes,
    .poll = endpoint_ud_poll,
    .accept = accept_no_pair,
    .reject = reject_no_pair,
    .finish = endpoint_ud_finish,
    .detach = endpoint_ud_detach,
    .lost = endpoint_ud_lost,
    .fill_event = endpoint_ud_fill_event,
    .info = endpoint_ud_info,
    .close = endpoint_ud_close,
};

static struct endpoint_ud *endpoint_ud_new(struct roce_slot *slot)
{
    struct endpoint_ud *e = calloc(1, sizeof(*e));
    struct sockaddr_storage bound;

    if (!e)
        return NULL;
    udp_local(&slot->port->own.udp, &bound);
    e->family = bound.ss_family;
    e->slot = slot;
    e->user.take = endpoint_ud_take;
    e->endpoint.life = &e->ud.life;
    e->endpoint.is_up = e->endpoint.by_hand = true;
    return e;
}

int endpoint_ud_receive(struct roce_slot *slot, struct rddp_qp *qp, const struct rddp_ib_attr *attr,
                        struct endpoint **endpoint)
{
    const struct ud_attr ud = {
        .q_key = attr->qkey,
        .number = roce_slot_number(slot),
        .pkey = attr->pkey,
        .limits = {.close_us = UD_CLOSE_US},
    };
    struct endpoint_ud *e;
    int error;

    if (!slot->port->host)
        return -ENODEV;
    e = endpoint_ud_new(slot);
    if (!e)
        return -ENOMEM;
    error = endpoint_begin(&e->endpoint, slot->port->loop, &datagrams);
    if (error) {
        free(e);
        return error;
    }
    qp_use_datagrams(&qp->qp);
    ud_init(&e->ud, &ud, &qp->qp, reactor_now_us());
    e->ud.life.news = 0; /* whoever leads it by hand knows that it is established */
    slot->user = &e->user;
    *endpoint = &e->endpoint;
    return 0;
}

void endpoint_ud_send(struct endpoint *endpoint, uint32_t psn)
{
    ud_start(&endpoint_ud_of(endpoint)->ud, psn);
}

void endpoint_ud_set_key(struct endpoint *endpoint, uint32_t q_key)
{
    endpoint_ud_of(endpoint)->ud.attr.q_key = q_key;
}

void endpoint_ud_drain(struct endpoint *endpoint, bool drains)
{
    ud_drain(&endpoint_ud_of(endpoint)->ud, drains, reactor_now_us());
}

void endpoint_ud_restart(struct endpoint *endpoint)
{
    ud_restart(&endpoint_ud_of(endpoint)->ud, reactor_now_us());
}
