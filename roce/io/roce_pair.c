/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_pair.c - packets of a queue pair, sealed and verified, to and from the ports of its peer. */
#include "roce/io/roce_pair.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/descriptors.h"
#include "roce/io/roce_packet.h"

enum { TURN_PACKETS = 4 * UDP_BATCH_PACKETS /* that a turn sends */ };

/* --- the path ---------------------------------------------------------------------------------------------------- */

/* Peers of our own answer at the port in their number; 0: it is none of ours. */
static uint16_t own_port_of_peer(const struct endpoint_roce *e)
{
    uint32_t port = e->pair.attr.peer_qpn >> ROCE_SLOT_BITS;

    return port >= ROCE_PORT_MIN ? (uint16_t)port : 0;
}

static void set_port(struct endpoint_roce *e, uint16_t port)
{
    roce_address_set_port(&e->to, port);
    e->path.destination_port = port;
    e->memo = (struct icrc_memo){0};
}

int roce_pair_set_path(struct endpoint_roce *e, const struct sockaddr_storage *local,
                       const struct sockaddr_storage *peer, uint32_t peer_qpn)
{
    struct roce_port *port = e->slot->port;
    struct sockaddr_storage bound, to;
    struct roce_address own, other;
    struct roce_socket *home;

    if (!roce_address_read(local, &own) || !roce_address_read(peer, &other) ||
        roce_address_is_v4(&own) != roce_address_is_v4(&other))
        return -EADDRNOTAVAIL;
    home = roce_port_home(port, &own);
    udp_local(&home->udp, &bound);
    if (!roce_address_write(&other, bound.ss_family, ROCE_PORT, roce_address_scope(peer), &to))
        return -EADDRNOTAVAIL;
    e->home = home;
    e->local = own;
    e->peer = other;
    e->to = to;
    e->endpoint.local = *local;
    e->endpoint.peer = *peer;
    e->is_near = roce_address_is_equal(&e->local, &e->peer) || roce_address_is_loopback(&e->peer);
    e->path = roce_address_path(&e->local, port->own.number, &e->peer, ROCE_PORT);
    e->path.memo = &e->memo;
    e->memo = (struct icrc_memo){0};
    e->in = (struct roce_way){0};
    e->sends_together = e->home->udp.cuts;
    e->pair.attr.peer_qpn = peer_qpn;
    if (e->is_near && own_port_of_peer(e))
        set_port(e, own_port_of_peer(e));
    return 0;
}

/* A packet from the port in the peer's number: it is one of ours, and nothing has to be passed on. */
static void learn_port(struct endpoint_roce *e, uint16_t from_port)
{
    if (!e->is_near && !e->is_fixed && from_port == own_port_of_peer(e) && from_port != e->path.destination_port)
        set_port(e, from_port);
}

/* Nothing was acknowledged in time: the port may be closed to us, or a firewall between may want the other one. */
static void try_other_port(struct endpoint_roce *e)
{
    uint16_t own = own_port_of_peer(e);
    bool uses_own = e->path.destination_port != ROCE_PORT;

    if (e->is_near || !own || (e->socket && !uses_own))
        return;
    if (!e->port_before) {
        e->port_before = e->path.destination_port;
        e->undone = e->pair.requester.counters.undone;
    }
    e->is_fixed = uses_own && e->socket;
    set_port(e, uses_own ? ROCE_PORT : own);
}

/* The acknowledgement was only late: what was sent by the first way lies in the peer's socket still, and what went the
 * other way behind it could come first. */
static void confirm_port(struct endpoint_roce *e)
{
    const struct rc_requester *q = &e->pair.requester;

    if (q->counters.undone != e->undone) {
        set_port(e, e->port_before);
        e->is_fixed = false;
    } else if (q->before.max) {
        return;
    }
    e->port_before = 0;
}

void roce_pair_tick(struct endpoint_roce *e, uint64_t now_us)
{
    const struct rc_requester *q = &e->pair.requester;
    uint32_t in_vain = q->tries + q->backoff;

    rc_pair_tick(&e->pair, now_us);
    if (q->tries + q->backoff > in_vain && !q->why)
        try_other_port(e);
}

static struct rc_pair_attr pair_attr(const struct endpoint_roce *e, const struct rddp_qp *qp,
                                     const struct rddp_ib_attr *attr)
{
    return (struct rc_pair_attr){
        .service = qp->type == RDDP_QPT_UC ? BTH_UC : BTH_RC,
        .peer_qpn = attr->peer_qpn,
        .pkey = attr->pkey,
        .access = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC,
        .requester = {.mtu = attr->path_mtu,
                      .psn = attr->sq_psn,
                      .timeout_us = rc_patience_us(attr->timeout),
                      .retries = attr->retry_cnt,
                      .rnr_retries = attr->rnr_retry,
                      .window = UDP_SOCKET_OCTETS / attr->path_mtu},
        .responder = {.psn = attr->rq_psn,
                      .rnr_timer = attr->min_rnr_timer,
                      .reads = attr->max_dest_rd_atomic,
                      .pool = &e->slot->port->kept},
        .limits = e->pair.life.limits,
    };
}

int roce_pair_connect(struct endpoint_roce *e, struct rddp_qp *qp, const struct sockaddr_storage *local,
                      const struct sockaddr_storage *peer, const struct rddp_ib_attr *attr)
{
    struct rc_pair_attr pair = pair_attr(e, qp, attr);
    int error;

    e->memory = calloc(1, rc_pair_size(&pair, &qp->qp));
    if (!e->memory)
        return -ENOMEM;
    error = roce_pair_set_path(e, local, peer, attr->peer_qpn);
    if (error)
        return error;
    qp_use_packets(&qp->qp);
    rc_pair_connect(&e->pair, &pair, &qp->qp, attr->max_rd_atomic, e->memory);
    e->slot->user = &e->user;
    return 0;
}

/* --- the socket of a poller --------------------------------------------------------------------------------------- */

bool roce_pair_stay_out(struct endpoint_roce *e, bool out)
{
    struct reactor *reactor = &e->endpoint.loop->reactor;

    if (out) {
        e->out = roce_pair_polled(e);
        reactor_rest(reactor, &e->out->watch);
    } else if (e->out) {
        reactor_rouse(reactor, &e->out->watch);
        e->out = NULL;
    }
    return true;
}

void roce_pair_leave_socket(struct endpoint_roce *e)
{
    if (e->out && e->slot->port->host && descriptors_are_ours())
        (void)roce_pair_stay_out(e, false);
}

/* --- out --------------------------------------------------------------------------------------------------------- */

bool roce_pair_send(struct endpoint_roce *e, uint64_t now_us)
{
    struct udp *udp = &e->home->udp;
    uint8_t buffer[BTH_MTU_MAX];
    struct rc_packet packet;
    unsigned packets = 0, more;

    packet.emit.buffer = buffer;
    if (e->home == &e->slot->port->own)
        udp_set_source(udp, e->local.octets);
    do {
        if (!rc_pair_emit(&e->pair, &packet, now_us))
            break;
        roce_packet_put(udp, &e->to, &e->path, &packet);
        packets++;
        if (packet.length < e->pair.attr.requester.mtu)
            continue; /* the last of its message */
        more = rc_pair_emit_train(&e->pair, &packet, TURN_PACKETS - packets, now_us);
        roce_packet_put_train(udp, &e->to, &e->path, &packet, more);
        packets += more;
    } while (packets < TURN_PACKETS && rc_pair_has_output(&e->pair, now_us));
    udp_flush(udp);
    e->sends_together = !udp_leaves_singly(udp, &e->to);
    return packets == TURN_PACKETS;
}

bool roce_pair_needs_turn(const struct endpoint_roce *e, uint64_t now_us)
{
    const struct timer *timer = &e->endpoint.timer;
    uint64_t at_us;

    if (e->more || !rc_pair_is_quiet(&e->pair, now_us))
        return true;
    at_us = rc_pair_deadline(&e->pair);
    return at_us != UINT64_MAX && (!timer->place || timer->at_us > at_us);
}

bool roce_pair_may_follow(const struct endpoint_roce *e)
{
    return e->is_near && e->sends_together && own_port_of_peer(e);
}

bool roce_pair_is_answering(struct endpoint_roce *e)
{
    uint32_t before = e->requests;

    if (!e->pair.responder.ack_due || !e->pair.life.qp)
        return false;
    e->requests = e->pair.life.qp->sq.next;
    return e->requests != before;
}

/* --- in ---------------------------------------------------------------------------------------------------------- */

static void take_packet(struct endpoint_roce *e, const struct bth *b, const struct roce_run *run, uint64_t now_us)
{
    e->arrived_us = now_us;
    rc_pair_rx(&e->pair, b, now_us);
    e->socket = run->socket;
    learn_port(e, run->from_port);
}

/* The path of a run, which is the peer's. Another run rarely comes another way. */
static const struct icrc_path *way_of(struct endpoint_roce *e, const struct roce_run *run)
{
    struct roce_way *in = &e->in;

    if (in->from_port == run->from_port && in->to_port == run->to_port && roce_address_is_equal(&in->to, &run->to))
        return &in->path;
    *in = (struct roce_way){.from_port = run->from_port, .to_port = run->to_port, .to = run->to};
    in->path = roce_address_path(&run->from, run->from_port, &run->to, run->to_port);
    in->path.memo = &in->memo;
    return &in->path;
}

enum { ANSWERS = 1, REQUESTS = 2 };

/* The answers of a run, its requests, or both. */
static void take_packets(struct endpoint_roce *e, const struct roce_run *run, unsigned which, uint64_t now_us)
{
    const struct icrc_path *path = way_of(e, run);
    enum roce_packet_result result;
    uint32_t octets;
    struct bth b;

    for (uint32_t at = 0; at < run->octets;) {
        if (!(which & (bth_is_answer(run->at + at) ? ANSWERS : REQUESTS))) {
            at += run->each;
            continue;
        }
        result = roce_packet_next(e->slot->port->host, path, run, e->pair.attr.pkey, &at, &b, &octets);
        e->wrong_icrc += result == ROCE_PACKET_ICRC;
        if (result == ROCE_PACKET_OK)
            take_packet(e, &b, run, now_us);
        if (e->port_before)
            confirm_port(e);
    }
}

/* Was it withheld until it could leave with the request in front of it? What it is about is to be complete when the
 * application sees that request. */
static bool ends_with_acknowledgement(const struct roce_run *run)
{
    return run->octets > run->each && bth_is_answer(run->at + (run->octets - 1) / run->each * run->each);
}

void roce_pair_take(struct endpoint_roce *e, const struct roce_run *run, uint64_t now_us)
{
    if (!roce_address_is_equal(&run->from, &e->peer)) {
        e->wrong_peer += (run->octets + run->each - 1) / run->each;
        return;
    }
    if (ends_with_acknowledgement(run)) {
        take_packets(e, run, ANSWERS, now_us);
        take_packets(e, run, REQUESTS, now_us);
    } else {
        take_packets(e, run, ANSWERS | REQUESTS, now_us);
    }
}

/* --- what was counted ----------------------------------------------------------------------------------------------
 */

struct rddp_ib_counters roce_pair_counters(const struct endpoint_roce *e)
{
    const struct rc_pair *pair = &e->pair;
    struct rddp_ib_counters counters = {
        .resent = pair->requester.counters.resent,
        .undone = pair->requester.counters.undone,
        .timeouts = pair->requester.counters.timeouts,
        .naks = pair->requester.counters.naks,
        .not_ready = pair->requester.counters.not_ready,
        .duplicates = pair->responder.duplicates,
        .gaps = pair->responder.gaps,
        .not_ready_here = pair->responder.not_ready.count,
        .wrong_icrc = e->wrong_icrc,
        .wrong_peer = e->wrong_peer,
    };

    roce_port_count(e->slot->port, &counters);
    return counters;
}

void roce_pair_explain(const struct endpoint_roce *e, char *text, size_t size)
{
    const struct rddp_ib_counters c = roce_pair_counters(e);
    const struct {
        const char *what;
        uint64_t count;
    } counts[] = {
        {"time-outs", c.timeouts},
        {"packets sent again", c.resent},
        {"damaged", c.wrong_icrc},
        {"from another address", c.wrong_peer},
        {"dropped by the socket", c.dropped},
        {"for no queue pair", c.unowned},
        {"passed on", c.passed},
        {"handed over", c.handed},
    };
    uint16_t port = e->path.destination_port;
    int at = e->arrived_us ? snprintf(text, size, "its last packet came %" PRIu64 " ms ago, ours went to port %u",
                                      (reactor_now_us() - e->arrived_us) / 1000, port)
                           : snprintf(text, size, "none of its packets have come, ours went to port %u", port);

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i].count && at >= 0 && (size_t)at < size)
            at += snprintf(text + at, size - (size_t)at, ", %" PRIu64 " %s", counts[i].count, counts[i].what);
}
