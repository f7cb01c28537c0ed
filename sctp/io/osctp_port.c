/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_port.c - the packets of a socket: each goes to its association, or is answered for nobody. */
#include <string.h>
#include <sys/random.h>

#include "sctp/io/osctp_inner.h"
#include "sctp/chunk.h"

enum { FIRST_CHUNK = PACKET_COMMON, PORTS_OCTETS = 4 };

/* Packets that arrive from one address. */
struct osctp_arrival {
    struct osctp_port *port;
    const struct sockaddr_storage *from;
    struct osctp_key key;        /* its address, and the SCTP ports of the last packet */
    struct osctp_assoc *assoc;   /* of the last packet; NULL: none */
    uint8_t ports[PORTS_OCTETS]; /* of the last packet, as they came */
    uint64_t now_us;
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
        .init_retries = ms ? ms / 1000 : OSCTP_INIT_RETRIES,
        .init_max_us = ms ? 1000000 : OSCTP_INIT_MAX_US,
    };
}

/* --- out ----------------------------------------------------------------------------------------------------- */

static void osctp_port_put(struct osctp_port *port, const struct sockaddr_storage *to, const uint8_t *p, uint32_t n)
{
    uint8_t *at = udp_buffer(&port->udp, to, n);

    packet_seal(at, p, n);
    udp_put(&port->udp, n);
}

static void osctp_port_output(struct osctp_assoc *s, uint64_t now_us)
{
    struct osctp_port *port = s->port;
    const uint8_t *p;
    uint32_t n;

    while (!port->silent && osctp_output(&s->engine, &p, &n, now_us)) {
        if (osctp_lasts(&s->engine, p)) {
            udp_lend(&port->udp, &s->peer, p, n);
        } else {
            memcpy(udp_buffer(&port->udp, &s->peer, n), p, n);
            udp_put(&port->udp, n);
        }
    }
}

/* The first measurement decides: later ones include the time that packets wait in queues, our own among them. */
static void fit_store(struct osctp_assoc *s)
{
    uint64_t ms = s->engine.rtt.srtt_us / 1000;

    if (s->measured || !s->engine.up || !s->engine.rtt.known)
        return;
    s->measured = true;
    s->engine.attr.store = ms < OSCTP_STORE / OSCTP_STORE_MS ? (uint32_t)(ms + 1) * OSCTP_STORE_MS : OSCTP_STORE;
}

static void osctp_port_settle_one(struct osctp_assoc *s, uint64_t now_us)
{
    uint64_t due_us;

    if (s->over && s->engine.state != OSCTP_CLOSED)
        return;
    if (s->broken)
        osctp_abort(&s->engine, s->broken, (uint32_t)strlen(s->broken));
    osctp_window(&s->engine, osctp_assoc_window(s));
    osctp_port_output(s, now_us);
    fit_store(s);
    osctp_assoc_tell(s);
    due_us = osctp_deadline(&s->engine);
    if (!s->over && due_us < s->place.due_us)
        osctp_table_schedule(s, due_us);
}

void osctp_port_touch(struct osctp_assoc *s)
{
    if (s->touched)
        return;
    s->touched = true;
    s->next_touched = s->port->touched;
    s->port->touched = s;
}

void osctp_port_settle(struct osctp_port *port)
{
    uint64_t now_us = port->touched ? loop_now_us() : 0;
    struct osctp_assoc *s;

    while ((s = port->touched)) {
        port->touched = s->next_touched;
        s->touched = false;
        osctp_port_settle_one(s, now_us);
    }
    udp_flush(&port->udp);
}

/* --- packets of no association ------------------------------------------------------------------------------- */

static void osctp_port_refuse(const struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    uint8_t reply[OSCTP_ANSWER];
    uint32_t octets = osctp_refuse(p, n, reply);

    if (octets)
        osctp_port_put(a->port, a->from, reply, octets);
}

/* Answers an INIT, or a COOKIE-ECHO that begins no association. Nothing is stored for its sender. */
static void osctp_port_answer(const struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    struct osctp_port *port = a->port;
    struct osctp_attr attr = osctp_port_attr(port, a->key.local_port, a->key.peer_port);
    uint8_t reply[OSCTP_ANSWER];
    uint32_t octets;

    if (!osctp_port_random(port, &attr.tag) || !osctp_port_random(port, &attr.tsn))
        return;
    attr.tag += !attr.tag;
    octets = osctp_answer(&attr, port->cookie_key, osctp_key_number(port, &a->key), p, n, reply, a->now_us);
    if (octets)
        osctp_port_put(port, a->from, reply, octets);
}

/* Begins an association if this is a COOKIE-ECHO with a cookie of ours, and the backlog has space. */
static struct osctp_assoc *osctp_port_begin(const struct osctp_arrival *a, const struct osctp_cookie *cookie)
{
    struct osctp_port *port = a->port;
    struct osctp_attr attr = osctp_port_attr(port, a->key.local_port, a->key.peer_port);
    struct osctp_assoc *s = port->pending < OSCTP_BACKLOG ? osctp_assoc_new(port, &a->key, a->from) : NULL;

    if (!s)
        return NULL;
    s->made_us = cookie->made_us;
    osctp_accept(&s->engine, &attr, cookie, s->sent, &osctp_assoc_user, s, a->now_us);
    if (port->arrived)
        port->last->next_arrived = s;
    else
        port->arrived = s;
    port->last = s;
    port->pending++;
    return s;
}

static bool osctp_port_is_echo(const struct osctp_arrival *a, const uint8_t *p, uint32_t n, struct osctp_cookie *cookie)
{
    return osctp_read_echo(a->port->cookie_key, osctp_key_number(a->port, &a->key), p, n, cookie, a->now_us);
}

/* Returns the association that the packet has begun, or NULL. */
static struct osctp_assoc *osctp_port_stranger(const struct osctp_arrival *a, const uint8_t *p, uint32_t n)
{
    struct osctp_cookie cookie;

    if (!a->port->listens || a->key.local_port != a->port->listen_port) {
        osctp_port_refuse(a, p, n);
        return NULL;
    }
    if (osctp_port_is_echo(a, p, n, &cookie))
        return osctp_port_begin(a, &cookie);
    if (p[FIRST_CHUNK] == CHUNK_INIT || p[FIRST_CHUNK] == CHUNK_COOKIE_ECHO)
        osctp_port_answer(a, p, n);
    else
        osctp_port_refuse(a, p, n);
    return NULL;
}

/* --- in ------------------------------------------------------------------------------------------------------ */

/* A COOKIE-ECHO for an association: the one of its own cookie, which came before, is for the engine. A newer cookie
 * means that the peer has restarted (RFC 9260 5.2.4 A), unless it answers the same INIT (C there) or an old packet
 * returns. Returns the association that the packet is for; NULL: none. */
static struct osctp_assoc *osctp_port_echo(const struct osctp_arrival *a, struct osctp_assoc *s, const uint8_t *p,
                                           uint32_t n)
{
    struct osctp_cookie cookie;
    struct osctp_port *port = a->port;

    if (!osctp_port_is_echo(a, p, n, &cookie))
        return NULL;
    if (cookie.tag == s->engine.attr.tag)
        return cookie.peer_tag == s->engine.peer_tag ? s : NULL;
    if (!port->listens || cookie.peer_tag == s->engine.peer_tag || cookie.made_us <= s->made_us ||
        port->pending >= OSCTP_BACKLOG)
        return NULL;
    osctp_assoc_tell(s);
    osctp_free(&s->engine);
    osctp_assoc_end(s, SCTP_NEWS_LOST);
    return osctp_port_begin(a, &cookie);
}

/* An INIT for an association: at the listener's port the peer has restarted, perhaps. At a port of our own both ends
 * have begun at once: the peer answers our INIT. */
static struct osctp_assoc *osctp_port_familiar(const struct osctp_arrival *a, struct osctp_assoc *s, const uint8_t *p,
                                               uint32_t n)
{
    if (p[FIRST_CHUNK] == CHUNK_COOKIE_ECHO)
        return osctp_port_echo(a, s, p, n);
    if (p[FIRST_CHUNK] != CHUNK_INIT)
        return s;
    if (a->port->listens && a->key.local_port == a->port->listen_port)
        osctp_port_answer(a, p, n);
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

    if (!packet_is_sound(p, n))
        return;
    s = osctp_port_find(a, p);
    s = s ? osctp_port_familiar(a, s, p, n) : osctp_port_stranger(a, p, n);
    a->assoc = s;
    if (!s)
        return;
    osctp_input(&s->engine, p, n, a->now_us);
    if (osctp_urgent(&s->engine)) {
        osctp_port_output(s, a->now_us);
        if (s->port->udp.out_borrows) /* the next packet may end the loan */
            udp_flush(&s->port->udp);
    }
    osctp_port_touch(s);
}

static void osctp_port_receive_batch(struct osctp_port *port, const struct udp_batch *batch, uint64_t now_us)
{
    struct osctp_arrival a = {.port = port, .from = &batch->from, .now_us = now_us};
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
            osctp_port_touch(s);
            due_us = osctp_deadline(&s->engine);
        }
        osctp_table_schedule(s, due_us > now_us ? due_us : now_us + 1);
    }
}

/* An ICMP error counts only until the peer has answered. */
static void osctp_port_check_refused(struct osctp_port *port)
{
    struct osctp_assoc *s = port->assocs ? port->heap[0] : NULL;

    if (!port->udp.refused)
        return;
    port->udp.refused = false;
    if (!s || s->over || s->up || !port->attr.alone)
        return;
    osctp_free(&s->engine);
    osctp_assoc_end(s, SCTP_NEWS_REFUSED);
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
        now_us = loop_now_us();
        for (int i = 0; i < n; i++)
            osctp_port_receive_batch(port, &batch[i], now_us);
        osctp_port_run_timers(port, now_us);
        osctp_port_settle(port);
        osctp_port_check_refused(port);
    }
    pthread_mutex_unlock(&port->lock);
    return n == UDP_BUFFERS;
}
