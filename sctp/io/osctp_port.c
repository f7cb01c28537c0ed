/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_port.c - dispatches the packets of a socket to their associations; handles packets out of the blue. */
#include <string.h>
#include <sys/random.h>

#include "sctp/io/osctp_inner.h"
#include "sctp/chunk.h"

enum { FIRST_CHUNK = PACKET_COMMON, PORTS_OCTETS = 4, OSCTP_QUOTED = 64 /* octets of a quoted packet that matter */ };

/* Packets that arrive from one address. */
struct osctp_arrival {
    struct osctp_port *port;
    const struct sockaddr_storage *from;
    struct osctp_key key;        /* its address, and the SCTP ports of the last packet */
    struct osctp_assoc *assoc;   /* of the last packet; NULL: none */
    uint8_t ports[PORTS_OCTETS]; /* of the last packet, as they came */
    uint64_t now_us;
    bool marked; /* they have the mark of congestion */
};

/* --- what associations begin with ---------------------------------------------------------------------------- */

bool osctp_port_random(struct osctp_port *port, uint32_t *number)
{
    if (!port->randoms) {
        if (getrandom(port->random, sizeof(port->random), 0) != sizeof(port->random))
            return false;
        port->randoms = OSCTP_RANDOMS;
    }
    *number = port->random[--port->randoms];
    port->random[port->randoms] = 0;
    return true;
}

struct osctp_attr osctp_port_attr(const struct osctp_port *port, uint16_t local_port, uint16_t peer_port)
{
    uint32_t ms = port->attr.connect_ms;

    return (struct osctp_attr){
        .local_port = local_port,
        .peer_port = peer_port,
        .packet_max = port->packet_max,
        .indication = port->attr.indication,
        .streams = SCTP_STREAMS_MAX,
        .window = OSCTP_INBOX / 2,
        .store = OSCTP_STORE_MS,
        .init_retries = ms ? ms / SCTP_INIT_EACH_MS : OSCTP_INIT_RETRIES,
        .init_max_us = ms ? 1000 * SCTP_INIT_EACH_MS : OSCTP_INIT_MAX_US,
        .ecn = true,
    };
}

/* --- out ----------------------------------------------------------------------------------------------------- */

static void osctp_port_put(struct osctp_port *port, const struct sockaddr_storage *to, const uint8_t *p, uint32_t n)
{
    uint8_t *at = udp_buffer(&port->udp, to, n);

    packet_seal(at, p, n);
    udp_put(&port->udp, n);
}

static bool is_for_listener(const struct osctp_arrival *a)
{
    return a->port->listens && a->key.local_port == a->port->listen_port;
}

/* --- out of the blue (RFC 9260 8.4) ---------------------------------------------------------------------------- */

static void osctp_port_refuse(const struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    uint8_t reply[OSCTP_ANSWER];
    uint32_t octets = osctp_refuse(p, n, reply);

    if (octets)
        osctp_port_put(a->port, a->from, reply, octets);
}

static void osctp_port_answer_as(const struct osctp_arrival *a, const struct osctp_attr *attr, const uint8_t *p,
                                 uint32_t n)
{
    struct osctp_port *port = a->port;
    uint8_t reply[OSCTP_ANSWER];
    uint32_t octets = osctp_answer(attr, port->cookie_key, osctp_key_number(port, &a->key), p, n, reply, a->now_us);

    if (octets)
        osctp_port_put(port, a->from, reply, octets);
}

/* Answers an INIT, or a COOKIE-ECHO that begins no association. Nothing is stored for its sender. */
static void osctp_port_answer(const struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    struct osctp_attr attr = osctp_port_attr(a->port, a->key.local_port, a->key.peer_port);

    if (!osctp_port_random(a->port, &attr.tag) || !osctp_port_random(a->port, &attr.tsn))
        return;
    attr.tag += !attr.tag;
    osctp_port_answer_as(a, &attr, p, n);
}

/* Begins an association if this is a COOKIE-ECHO with a cookie of ours, and the backlog has space. */
static struct osctp_assoc *osctp_port_begin(const struct osctp_arrival *a, const struct osctp_cookie *cookie)
{
    struct osctp_port *port = a->port;
    struct osctp_attr attr = osctp_port_attr(port, a->key.local_port, a->key.peer_port);
    struct osctp_assoc *s = port->arrived.count < OSCTP_BACKLOG ? osctp_assoc_new(port, &a->key, a->from) : NULL;

    if (!s)
        return NULL;
    osctp_accept(&s->engine, &attr, cookie, NULL, &osctp_assoc_user, s, a->now_us);
    osctp_queue_push(&port->arrived, s);
    return s;
}

static bool osctp_port_is_echo(const struct osctp_arrival *a, const uint8_t *p, uint32_t n, struct osctp_cookie *cookie)
{
    return osctp_read_echo(a->port->cookie_key, osctp_key_number(a->port, &a->key), p, n, cookie);
}

/* Returns the association that the packet has begun, or NULL. */
static struct osctp_assoc *osctp_port_out_of_blue(const struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    struct osctp_cookie cookie;

    if (!is_for_listener(a)) {
        osctp_port_refuse(a, p, n);
        return NULL;
    }
    if (osctp_port_is_echo(a, p, n, &cookie) && !osctp_cookie_is_stale(&cookie, a->now_us))
        return osctp_port_begin(a, &cookie);
    if (p[FIRST_CHUNK] == CHUNK_INIT || p[FIRST_CHUNK] == CHUNK_COOKIE_ECHO)
        osctp_port_answer(a, p, n);
    else
        osctp_port_refuse(a, p, n);
    return NULL;
}

/* --- in ------------------------------------------------------------------------------------------------------ */

/* A COOKIE-ECHO at the ports of an association. Returns the association that the packet is for; NULL: none. */
static struct osctp_assoc *osctp_port_echo(const struct osctp_arrival *a, struct osctp_assoc *s, const uint8_t *p,
                                           uint32_t n)
{
    struct osctp_cookie cookie;

    if (!osctp_port_is_echo(a, p, n, &cookie))
        return NULL;
    switch (osctp_collide_echo(&s->engine, &cookie, a->now_us)) {
    case OSCTP_COLLISION_SAME:
        return s;
    case OSCTP_COLLISION_OUTPUT:
        osctp_assoc_touch(s);
        return NULL;
    case OSCTP_COLLISION_STALE:
        osctp_port_answer(a, p, n);
        return NULL;
    case OSCTP_COLLISION_OTHER:
        break;
    default:
        return NULL;
    }
    if (!is_for_listener(a) || a->port->arrived.count >= OSCTP_BACKLOG)
        return NULL;
    osctp_assoc_notify(s);
    osctp_free(&s->engine);
    osctp_assoc_end(s, SCTP_NEWS_LOST);
    return osctp_port_begin(a, &cookie);
}

/* An INIT at the ports of an association. Where we have called, and are not called, the peer cannot begin another. */
static void osctp_port_on_init(const struct osctp_arrival *a, struct osctp_assoc *s, const uint8_t *p, uint32_t n)
{
    enum osctp_collision collision = osctp_collide_init(&s->engine);

    if (collision == OSCTP_COLLISION_OUTPUT)
        osctp_assoc_touch(s);
    else if (collision == OSCTP_COLLISION_SAME)
        osctp_port_answer_as(a, &s->engine.attr, p, n);
    else if (is_for_listener(a))
        osctp_port_answer(a, p, n);
}

/* Does the peer still end the association that was at these ports before (RFC 9260 8.5.1 E)? */
static bool ends_former(const struct osctp_assoc *s, const uint8_t *p)
{
    return p[FIRST_CHUNK] == CHUNK_SHUTDOWN_ACK && !s->engine.up;
}

/* Returns the association that the packet is for; NULL: none. */
static struct osctp_assoc *osctp_port_known(const struct osctp_arrival *a, struct osctp_assoc *s, const uint8_t *p,
                                            uint32_t n)
{
    if (p[FIRST_CHUNK] == CHUNK_COOKIE_ECHO)
        return osctp_port_echo(a, s, p, n);
    if (ends_former(s, p)) {
        osctp_port_refuse(a, p, n);
        return NULL;
    }
    if (p[FIRST_CHUNK] != CHUNK_INIT)
        return s;
    osctp_port_on_init(a, s, p, n);
    return NULL;
}

/* Most packets are for the association of the one before. One that has ended is known no more. */
static struct osctp_assoc *osctp_port_find(struct osctp_arrival *a, const uint8_t *p)
{
    struct osctp_assoc *s = a->assoc;

    if (!s || memcmp(p, a->ports, PORTS_OCTETS) != 0) {
        memcpy(a->ports, p, PORTS_OCTETS);
        a->key.peer_port = packet_source(p);
        a->key.local_port = packet_destination(p);
        s = osctp_table_find(a->port, &a->key);
    }
    if (s && s->engine.state == OSCTP_CLOSED) {
        osctp_port_settle_one(s, a->now_us);
        s = NULL;
    }
    return s;
}

static void osctp_port_receive(struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    struct osctp_assoc *s;

    if (!packet_is_sound(p, n) || !packet_source(p) || !packet_destination(p)) /* no port is 0 (RFC 9260 3.1) */
        return;
    s = osctp_port_find(a, p);
    s = s ? osctp_port_known(a, s, p, n) : osctp_port_out_of_blue(a, p, n);
    a->assoc = s;
    if (!s)
        return;
    if (a->marked)
        osctp_marked(&s->engine);
    osctp_input(&s->engine, p, n, a->now_us);
    if (osctp_urgent(&s->engine)) {
        osctp_port_output(s, a->now_us);
        if (s->port->udp.out_borrows) /* the next packet may end the loan */
            udp_flush(&s->port->udp);
    }
    osctp_assoc_touch(s);
}

static void osctp_port_receive_batch(struct osctp_port *port, const struct udp_batch *batch, uint64_t now_us)
{
    struct osctp_arrival a = {.port = port, .from = &batch->from, .now_us = now_us, .marked = batch->marked};
    uint32_t n;

    osctp_key_address(&a.key, &batch->from);
    for (uint32_t at = 0; at < batch->octets; at += n) {
        n = batch->octets - at < batch->each ? batch->octets - at : batch->each;
        osctp_port_receive(&a, batch->at + at, n);
    }
}

/* --- work ---------------------------------------------------------------------------------------------------- */

/* Deadlines that were put off since they were scheduled are scheduled again. */
static void osctp_port_run_timers(struct osctp_port *port, uint64_t now_us)
{
    struct osctp_assoc *s;

    while ((s = osctp_table_due(port, now_us))) {
        uint64_t due_us = osctp_deadline(&s->engine);

        if (due_us <= now_us) {
            osctp_timeout(&s->engine, now_us);
            osctp_assoc_touch(s);
            due_us = osctp_deadline(&s->engine);
        }
        osctp_table_schedule(s, due_us > now_us ? due_us : now_us + 1);
    }
}

/* An ICMP error counts only until the peer has answered, and if it quotes a packet of ours. */
static void osctp_port_check_refused(struct osctp_port *port)
{
    struct osctp_assoc *s = port->assocs && port->attr.alone ? port->heap[0] : NULL;
    uint8_t quoted[OSCTP_QUOTED];
    uint32_t n;

    while ((n = udp_refused(&port->udp, quoted, sizeof(quoted)))) {
        if (!s || s->over || s->up || !osctp_is_quoted(&s->engine, quoted, n))
            continue;
        osctp_free(&s->engine);
        osctp_assoc_end(s, SCTP_NEWS_REFUSED);
    }
}

bool osctp_port_drive(struct sctp_socket *base)
{
    struct osctp_port *port = osctp_port_of(base);
    struct udp_batch batch[UDP_BUFFERS];
    uint64_t now_us;
    int n = 0;

    pthread_mutex_lock(&port->lock);
    if (!port->silent) {
        n = udp_recv(&port->udp, &port->stage, batch);
        now_us = reactor_now_us();
        for (int i = 0; i < n; i++)
            osctp_port_receive_batch(port, &batch[i], now_us);
        osctp_port_run_timers(port, now_us);
        osctp_port_settle(port);
        osctp_port_check_refused(port);
    }
    pthread_mutex_unlock(&port->lock);
    return n == UDP_BUFFERS;
}
