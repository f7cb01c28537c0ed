/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_provider.c - associations of our own SCTP: open, listen, accept, connect, end. */
#include "sctp/io/osctp_provider.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "sctp/io/osctp_inner.h"

/* For osctp_abandon() alone. */
static struct {
    pthread_mutex_t lock;
    struct osctp_port *first;
} osctp_ports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void osctp_port_abandon(struct osctp_port *port)
{
    port->silent = true;
    udp_forget(&port->udp);
}

void osctp_abandon(bool ours)
{
    pid_t own = getpid();

    for (struct osctp_port *port = osctp_ports.first; port && !ours; port = port->next)
        if (port->pid != own)
            osctp_port_abandon(port);
    if (!ours)
        return;
    pthread_mutex_lock(&osctp_ports.lock);
    for (struct osctp_port *port = osctp_ports.first; port; port = port->next) {
        pthread_mutex_lock(&port->lock);
        osctp_port_abandon(port);
        pthread_mutex_unlock(&port->lock);
    }
    pthread_mutex_unlock(&osctp_ports.lock);
}

/* --- sockets ------------------------------------------------------------------------------------------------- */

static void osctp_port_enlist(struct osctp_port *port)
{
    pthread_mutex_lock(&osctp_ports.lock);
    port->next = osctp_ports.first;
    osctp_ports.first = port;
    pthread_mutex_unlock(&osctp_ports.lock);
}

static void osctp_port_delist(const struct osctp_port *port)
{
    struct osctp_port **at = &osctp_ports.first;

    pthread_mutex_lock(&osctp_ports.lock);
    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
    pthread_mutex_unlock(&osctp_ports.lock);
}

/* Rounded down to whole words; a batch of UDP holds at least one packet. */
static uint32_t osctp_packet_max(const struct sctp_attr *attr, sa_family_t family)
{
    uint32_t head = SCTP_UDP_HEAD + (family == AF_INET6 ? SCTP_IPV6_HEAD : SCTP_IPV4_HEAD);
    uint32_t octets = (attr->mtu ? attr->mtu : SCTP_MTU) - head;
    uint32_t most = (uint32_t)OSCTP_PACKET_MAX < UDP_BATCH_OCTETS ? OSCTP_PACKET_MAX : UDP_BATCH_OCTETS;

    return (octets < most ? octets : most) & ~3U;
}

/* The rest of a socket whose UDP is open. */
static int osctp_port_init(struct osctp_port *port)
{
    uint64_t keys[4];
    int error = osctp_table_init(port);

    if (error)
        return error;
    port->stage.buffer = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_OCTETS);
    if (!port->stage.buffer)
        error = -ENOMEM;
    else if (getrandom(keys, sizeof(keys), 0) != sizeof(keys))
        error = -EAGAIN;
    if (error) {
        free(port->stage.buffer);
        osctp_table_fini(port);
        return error;
    }
    memcpy(port->key, keys, sizeof(port->key));
    memcpy(port->cookie_key, keys + 2, sizeof(port->cookie_key));
    pthread_mutex_init(&port->lock, NULL);
    return 0;
}

static int osctp_port_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr,
                           struct sctp_socket **out, const char **why)
{
    struct osctp_port *port;
    int error;

    if (attr->raw) {
        *why = "rddp's own SCTP goes over UDP alone: ask for a UDP port";
        return -EPROTONOSUPPORT;
    }
    if (attr->mtu && (attr->mtu < SCTP_MTU_MIN || attr->mtu > SCTP_MTU_MAX))
        return -EINVAL;
    port = calloc(1, sizeof(*port));
    if (!port)
        return -ENOMEM;
    port->base.provider = &osctp;
    port->attr = *attr;
    port->pid = getpid();
    port->packet_max = osctp_packet_max(attr, local->sa_family);
    error = udp_open(&port->udp, local, length);
    if (error) {
        free(port);
        return error;
    }
    error = osctp_port_init(port);
    if (error) {
        udp_close(&port->udp);
        free(port);
        return error;
    }
    port->base.fd = port->udp.fd;
    osctp_port_enlist(port);
    *out = &port->base;
    return 0;
}

/* The associations that were not accepted are aborted. */
static void osctp_port_unlisten(struct sctp_socket *base)
{
    struct osctp_port *port = osctp_port_of(base);

    pthread_mutex_lock(&port->lock);
    port->listens = false;
    while (port->arrived.count)
        osctp_assoc_free(osctp_queue_pop(&port->arrived));
    pthread_mutex_unlock(&port->lock);
}

static void osctp_port_close_socket(struct sctp_socket *base)
{
    struct osctp_port *port = osctp_port_of(base);

    osctp_port_unlisten(base);
    osctp_port_forget_left(port, 0);
    assert(!port->assocs);
    osctp_port_delist(port);
    for (struct osctp_spare *spare; (spare = port->spare);) {
        port->spare = spare->next;
        free(spare);
    }
    osctp_table_fini(port);
    free(port->stage.buffer);
    udp_close(&port->udp);
    pthread_mutex_destroy(&port->lock);
    free(port);
}

static void osctp_port_local(struct sctp_socket *base, struct sockaddr_storage *local)
{
    udp_local(&osctp_port_of(base)->udp, local);
    sctp_set_port(local, osctp_port_of(base)->listen_port);
}

/* --- SCTP ports ---------------------------------------------------------------------------------------------- */

/* Returns false if it is taken. */
static bool osctp_port_take(struct osctp_port *port, uint16_t number)
{
    uint32_t at = (uint32_t)number - OSCTP_PORT_FIRST;
    uint64_t bit = 1ULL << at % 64;

    if (number < OSCTP_PORT_FIRST)
        return true;
    if (port->taken[at / 64] & bit)
        return false;
    port->taken[at / 64] |= bit;
    return true;
}

static void osctp_port_give_back(struct osctp_port *port, uint16_t number)
{
    if (number >= OSCTP_PORT_FIRST)
        port->taken[(number - OSCTP_PORT_FIRST) / 64] &= ~(1ULL << (number - OSCTP_PORT_FIRST) % 64);
}

/* Takes a free one, the first behind a random one. */
static int osctp_port_pick(struct osctp_port *port, uint16_t *number)
{
    uint32_t random;

    if (!osctp_port_random(port, &random))
        return -EAGAIN;
    for (uint32_t i = 0; i < OSCTP_PORTS; i++) {
        *number = (uint16_t)(OSCTP_PORT_FIRST + (random + i) % OSCTP_PORTS);
        if (osctp_port_take(port, *number))
            return 0;
    }
    return -EADDRINUSE;
}

/* --- the passive end ----------------------------------------------------------------------------------------- */

static int osctp_port_listen(struct sctp_socket *base, uint16_t sctp_port)
{
    struct osctp_port *port = osctp_port_of(base);
    int error = 0;

    pthread_mutex_lock(&port->lock);
    if (port->listen_port)
        error = -EADDRINUSE;
    else if (!sctp_port)
        error = osctp_port_pick(port, &sctp_port);
    else if (!osctp_port_take(port, sctp_port))
        error = -EADDRINUSE;
    if (!error) {
        port->listen_port = sctp_port;
        port->listens = true;
    }
    pthread_mutex_unlock(&port->lock);
    return error;
}

static struct sctp_assoc *osctp_port_accept(struct sctp_socket *base)
{
    struct osctp_port *port = osctp_port_of(base);
    struct osctp_assoc *s = NULL;

    pthread_mutex_lock(&port->lock);
    if (port->arrived.count) {
        s = osctp_queue_pop(&port->arrived);
        s->accepted = true;
        osctp_assoc_mark_ready(s);
    }
    pthread_mutex_unlock(&port->lock);
    return s ? &s->base : NULL;
}

/* --- the active end ------------------------------------------------------------------------------------------ */

static int osctp_port_start(struct osctp_port *port, struct osctp_key *key, const struct sockaddr_storage *to,
                            struct osctp_assoc **out)
{
    struct osctp_attr attr;
    struct osctp_assoc *s;
    int error = 0;

    key->local_port = port->attr.local_port;
    if (!key->local_port)
        error = osctp_port_pick(port, &key->local_port);
    else if (!osctp_port_take(port, key->local_port))
        error = -EADDRINUSE;
    if (error)
        return error;
    attr = osctp_port_attr(port, key->local_port, key->peer_port);
    s = NULL;
    if (osctp_port_random(port, &attr.tag) && osctp_port_random(port, &attr.tsn))
        s = osctp_assoc_new(port, key, to);
    if (!s) {
        osctp_port_give_back(port, key->local_port);
        return -ENOMEM;
    }
    attr.tag += !attr.tag;
    s->accepted = true;
    osctp_connect(&s->engine, &attr, NULL, &osctp_assoc_user, s, reactor_now_us());
    osctp_assoc_touch(s);
    osctp_port_settle(port);
    *out = s;
    return 0;
}

static int osctp_port_connect(struct sctp_socket *base, const struct sockaddr *peer, struct sctp_assoc **assoc)
{
    struct osctp_port *port = osctp_port_of(base);
    struct sockaddr_storage to = {0};
    struct osctp_assoc *s = NULL;
    struct osctp_key key;
    uint16_t sctp_port;
    int error = 0;

    if (peer->sa_family != AF_INET && peer->sa_family != AF_INET6)
        return -EAFNOSUPPORT;
    memcpy(&to, peer, sctp_address_length(peer->sa_family));
    sctp_port = sctp_port_of(&to);
    if (!sctp_port)
        return -ECONNREFUSED; /* as TCP does: no port is 0 */
    sctp_set_port(&to, port->attr.udp_port ? port->attr.udp_port : SCTP_PORT_UDP);
    osctp_key_address(&key, &to);
    key.peer_port = sctp_port;
    pthread_mutex_lock(&port->lock);
    if (port->attr.alone)
        error = udp_connect(&port->udp, &to);
    if (!error)
        error = osctp_port_start(port, &key, &to, &s);
    pthread_mutex_unlock(&port->lock);
    *assoc = s ? &s->base : NULL;
    return error;
}

/* --- the owner ----------------------------------------------------------------------------------------------- */

static void *osctp_port_ready(struct sctp_socket *base)
{
    struct osctp_port *port = osctp_port_of(base);
    struct osctp_assoc *s;
    void *owner = NULL;

    pthread_mutex_lock(&port->lock);
    while (!owner && (s = port->ready)) {
        port->ready = s->next_ready;
        s->ready = false;
        owner = s->base.owner;
    }
    pthread_mutex_unlock(&port->lock);
    return owner;
}

static uint64_t osctp_port_due(struct sctp_socket *base)
{
    const struct osctp_port *port = osctp_port_of(base);

    return port->assocs && !port->silent ? port->heap[0]->place.due_us : OSCTP_NEVER;
}

static bool osctp_port_enter(struct sctp_socket *base, bool wait)
{
    pthread_mutex_t *lock = &osctp_port_of(base)->lock;

    return wait ? !pthread_mutex_lock(lock) : !pthread_mutex_trylock(lock);
}

static void osctp_port_leave(struct sctp_socket *base)
{
    osctp_port_settle(osctp_port_of(base));
    pthread_mutex_unlock(&osctp_port_of(base)->lock);
}

static void osctp_assoc_close(struct sctp_assoc *base)
{
    struct osctp_assoc *s = osctp_assoc_of(base);
    struct osctp_port *port = s->port;

    pthread_mutex_lock(&port->lock);
    if (s->place.key.local_port != port->listen_port)
        osctp_port_give_back(port, s->place.key.local_port);
    osctp_assoc_free(s);
    pthread_mutex_unlock(&port->lock);
}

const struct sctp_provider osctp = {
    .open = osctp_port_open,
    .close_socket = osctp_port_close_socket,
    .local = osctp_port_local,
    .listen = osctp_port_listen,
    .unlisten = osctp_port_unlisten,
    .accept = osctp_port_accept,
    .connect = osctp_port_connect,
    .drive = osctp_port_drive,
    .ready = osctp_port_ready,
    .next = osctp_assoc_next,
    .enter = osctp_port_enter,
    .leave = osctp_port_leave,
    .submit = osctp_assoc_submit,
    .due = osctp_port_due,
    .keeps = osctp_assoc_keeps,
    .batches = osctp_assoc_batches,
    .shutdown = osctp_assoc_shutdown,
    .abort = osctp_assoc_abort,
    .names = osctp_assoc_names,
    .close = osctp_assoc_close,
};
