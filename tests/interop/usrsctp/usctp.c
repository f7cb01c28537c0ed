/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp.c - associations of usrsctp: open, accept, send, close. */
#include "tests/interop/usrsctp/usctp_inner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sctp/packet.h"

static int usctp_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr,
                      struct sctp_socket **out, const char **why)
{
    uint32_t head = SCTP_UDP_HEAD + (local->sa_family == AF_INET6 ? SCTP_IPV6_HEAD : SCTP_IPV4_HEAD);
    struct usctp_port *p = calloc(1, sizeof(*p));
    int error;

    (void)why;
    if (!p)
        return -ENOMEM;
    pthread_mutex_lock(&usctp_stack.lock);
    usctp_begin();
    error = udp_open(&p->udp, local, length);
    if (!error) {
        p->base.provider = &usctp;
        p->base.fd = p->udp.fd;
        p->attr = *attr;
        p->packet_max = (attr->mtu ? attr->mtu : SCTP_MTU) - head;
        p->next = usctp_stack.ports;
        usctp_stack.ports = p;
        *out = &p->base;
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    if (error)
        free(p);
    return error;
}

/* Closes the listener and the associations that were not accepted. */
static void close_listener(struct usctp_port *port)
{
    struct usctp **at = &port->assocs, *s;

    if (port->listener)
        usrsctp_close(port->listener);
    port->listener = NULL;
    port->pending = 0;
    while ((s = *at)) {
        if (s->accepted) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        usctp_forget(s);
    }
    udp_flush(&port->udp);
}

static void usctp_unlisten(struct sctp_socket *base)
{
    pthread_mutex_lock(&usctp_stack.lock);
    close_listener(usctp_port_of(base));
    pthread_mutex_unlock(&usctp_stack.lock);
}

static void usctp_close_socket(struct sctp_socket *base)
{
    struct usctp_port *port = usctp_port_of(base);
    struct usctp_port **at = &usctp_stack.ports;

    pthread_mutex_lock(&usctp_stack.lock);
    close_listener(port);
    assert(!port->assocs);
    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
    for (uint32_t i = 0; i < USCTP_PORTS; i++)
        if (usctp_stack.at_port[i] == port)
            usctp_stack.at_port[i] = NULL;
    for (struct usctp_path *path = port->paths; path; path = path->next)
        path->port = NULL;
    udp_close(&port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
    free(port);
}

static void usctp_local(struct sctp_socket *base, struct sockaddr_storage *local)
{
    udp_local(&usctp_port_of(base)->udp, local);
    sctp_set_port(local, usctp_port_of(base)->sctp_port);
}

/* --- sockets ------------------------------------------------------------------------------------------------- */

static int set_all(struct socket *socket, const struct usctp_port *port)
{
    static const uint16_t types[] = {SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION, SCTP_SHUTDOWN_EVENT};
    struct sctp_setadaptation adaptation = {.ssb_adaptation_ind = port->attr.indication};
    struct sctp_paddrparams path = {.spp_flags = SPP_PMTUD_DISABLE};
    struct sctp_initmsg init = {.sinit_num_ostreams = SCTP_STREAMS_MAX, .sinit_max_instreams = SCTP_STREAMS_MAX};
    struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1};
    struct sctp_assoc_value in_turn = {.assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = SCTP_SS_FIRST_COME};
    uint32_t on = 1;
    int error = 0;

    /* spp_pathmtu counts only the octets left for chunks. */
    path.spp_pathmtu = port->packet_max - PACKET_COMMON;
    if (port->attr.connect_ms) {
        init.sinit_max_attempts = (uint16_t)(port->attr.connect_ms / 1000 + 1);
        init.sinit_max_init_timeo = 1000;
    }
    for (unsigned i = 0; !error && i < sizeof(types) / sizeof(types[0]); i++) {
        event.se_type = types[i];
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof(event));
    }
    if (!error && port->attr.indication)
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_ADAPTATION_LAYER, &adaptation, sizeof(adaptation));
    if (!error)
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path));
    if (!error)
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof(init));
    if (!error)
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_DISABLE_FRAGMENTS, &on, sizeof(on));
    if (!error)
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on));
    /* TSNs in the order of submission, whatever the streams: otherwise a message would overtake a Write. */
    if (!error)
        error = usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_PLUGGABLE_SS, &in_turn, sizeof(in_turn));
    return error ? -errno : usrsctp_set_non_blocking(socket, 1) ? -errno : 0;
}

/* Binds to the next SCTP port that is free in the process. */
static int bind_somewhere(struct socket *socket, struct usctp_port *port, void *path, uint16_t *sctp_port)
{
    struct sockaddr_conn local = {.sconn_family = AF_CONN, .sconn_addr = path};

    for (uint32_t i = 0; i < USCTP_PORTS; i++) {
        uint32_t at = usctp_stack.next_port++ % USCTP_PORTS;

        local.sconn_port = htons((uint16_t)(USCTP_PORT_FIRST + at));
        if (usctp_stack.at_port[at] || usrsctp_bind(socket, (struct sockaddr *)&local, sizeof(local)))
            continue;
        usctp_stack.at_port[at] = port;
        *sctp_port = (uint16_t)(USCTP_PORT_FIRST + at);
        return 0;
    }
    return -EADDRINUSE;
}

/* Without a path the socket is bound to no particular one: the first packet of the peer decides. */
static int new_socket(struct usctp_port *port, void *path, struct socket **socket, uint16_t *sctp_port)
{
    int error;

    *socket = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, usctp_input, NULL, 0, port);
    if (!*socket)
        return -errno;
    error = set_all(*socket, port);
    if (!error)
        error = bind_somewhere(*socket, port, path, sctp_port);
    if (error)
        usrsctp_close(*socket);
    return error;
}

static void give_port_back(uint16_t sctp_port)
{
    if (sctp_port)
        usctp_stack.at_port[sctp_port - USCTP_PORT_FIRST] = NULL;
}

static int usctp_listen(struct sctp_socket *base, uint16_t sctp_port)
{
    struct usctp_port *port = usctp_port_of(base);
    struct socket *socket;
    uint16_t inner;
    int error;

    pthread_mutex_lock(&usctp_stack.lock);
    error = port->sctp_port ? -EADDRINUSE : new_socket(port, NULL, &socket, &inner);
    if (!error && usrsctp_listen(socket, USCTP_BACKLOG)) {
        error = -errno;
        usrsctp_close(socket);
        give_port_back(inner);
    }
    if (!error) {
        port->listener = socket;
        port->inner = inner;
        port->sctp_port = sctp_port ? sctp_port : inner;
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    return error;
}

/* The stack's queue tells that an association is complete; our list tells which one. */
static struct sctp_assoc *usctp_accept(struct sctp_socket *base)
{
    struct usctp_port *port = usctp_port_of(base);
    struct socket *socket = NULL;
    struct usctp *s = NULL;

    pthread_mutex_lock(&usctp_stack.lock);
    if (port->listener)
        socket = usrsctp_accept(port->listener, NULL, NULL);
    for (s = socket ? port->assocs : NULL; s && s->socket != socket;)
        s = s->next;
    if (s) {
        s->accepted = true;
        s->local_port = port->sctp_port;
        port->pending--;
        usctp_mark_ready(s);
        usrsctp_set_non_blocking(socket, 1);
    } else if (socket) {
        usrsctp_close(socket); /* usctp_find() had no room for it */
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    return s ? &s->base : NULL;
}

static int usctp_start(struct usctp_port *port, const struct sockaddr_storage *peer, uint16_t sctp_port,
                       struct usctp *s)
{
    struct sockaddr_conn to = {.sconn_family = AF_CONN, .sconn_port = htons(sctp_port)};
    int error;

    s->path = usctp_path_to(port, peer);
    if (port->attr.alone && (error = udp_connect(&port->udp, peer)))
        return error;
    error = new_socket(port, s->path, &s->socket, &s->own_port);
    if (error)
        return error;
    s->local_port = s->own_port;
    to.sconn_addr = s->path;
    s->next = port->assocs;
    port->assocs = s;
    if (usrsctp_connect(s->socket, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) {
        error = -errno;
        port->assocs = s->next;
        usrsctp_close(s->socket);
        give_port_back(s->own_port);
    }
    return error;
}

static int usctp_connect(struct sctp_socket *base, const struct sockaddr *peer, struct sctp_assoc **assoc)
{
    struct usctp_port *port = usctp_port_of(base);
    uint16_t sctp_port;
    struct usctp *s = calloc(1, sizeof(*s));
    struct sockaddr_storage to = {0};
    int error;

    if (!s)
        return -ENOMEM;
    memcpy(&to, peer, sctp_address_length(peer->sa_family));
    sctp_port = sctp_port_of(&to);
    sctp_set_port(&to, port->attr.udp_port ? port->attr.udp_port : SCTP_PORT_UDP);
    *s = (struct usctp){.port = port, .peer_port = sctp_port, .accepted = true};
    s->last = &s->first;
    pthread_mutex_lock(&usctp_stack.lock);
    error = usctp_start(port, &to, sctp_port, s);
    udp_flush(&port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
    if (error)
        free(s);
    else
        *assoc = &s->base;
    return error;
}

/* --- events and messages ------------------------------------------------------------------------------------- */

/* Returns the octets of the largest message of an association that has come up, 0 if it is gone. */
static uint32_t usctp_payload_max(struct usctp *s)
{
    struct sctp_status status = {0};
    socklen_t length = sizeof(status);

    if (usrsctp_getsockopt(s->socket, IPPROTO_SCTP, SCTP_STATUS, &status, &length))
        return 0;
    return status.sstat_fragmentation_point;
}

static bool usctp_next(struct sctp_assoc *base, struct sctp_news *event)
{
    struct usctp *s = usctp_of(base);
    struct usctp_entry *entry;

    pthread_mutex_lock(&usctp_stack.lock);
    entry = s->first;
    if (entry) {
        s->first = entry->next;
        if (!s->first)
            s->last = &s->first;
        *event = entry->event;
        if (event->kind == SCTP_NEWS_MESSAGE)
            s->waiting -= event->octets;
        if (event->kind == SCTP_NEWS_UP) {
            event->indication = s->indication;
            event->payload_max = usctp_payload_max(s);
        }
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    free(entry);
    return entry != NULL;
}

static int usctp_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream,
                        uint32_t ppid, bool more)
{
    struct usctp *s = usctp_of(base);
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = SCTP_UNORDERED, .snd_ppid = htonl(ppid)};
    uint32_t n = 0;
    ssize_t sent;
    int error;

    (void)more;
    for (uint32_t i = 0; i < spans; i++) {
        if (span[i].length > sizeof(usctp_stack.message) - n)
            return -EMSGSIZE;
        if (span[i].length)
            memcpy(usctp_stack.message + n, span[i].at, span[i].length);
        n += span[i].length;
    }
    sent = usrsctp_sendv(s->socket, usctp_stack.message, n, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
    error = sent < 0 ? -errno : 0;
    /* If the association has ended, the waiting event tells more than the errno. */
    if (!error || (error != -EWOULDBLOCK && error != -ENOBUFS && !s->first))
        return error;
    s->full = true;
    return -EAGAIN;
}

/* --- the stack for one caller, the end -------------------------------------------------------------------------- */

static uint64_t usctp_due(struct sctp_socket *base)
{
    (void)base;
    return usctp_stack.ticked_us + USCTP_TICK_US;
}

static bool usctp_enter(struct sctp_socket *base, bool wait)
{
    (void)base;
    return wait ? !pthread_mutex_lock(&usctp_stack.lock) : !pthread_mutex_trylock(&usctp_stack.lock);
}

static void usctp_leave(struct sctp_socket *base)
{
    udp_flush(&usctp_port_of(base)->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
}

static void *usctp_ready(struct sctp_socket *base)
{
    struct usctp_port *port = usctp_port_of(base);
    struct usctp *s;

    pthread_mutex_lock(&usctp_stack.lock);
    s = port->ready;
    if (s) {
        port->ready = s->next_ready;
        s->ready = false;
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    return s ? s->base.owner : NULL;
}

static void usctp_batches(struct sctp_assoc *base)
{
    struct usctp *s = usctp_of(base);
    struct sctp_assoc_value burst = {.assoc_id = SCTP_CURRENT_ASSOC, .assoc_value = USCTP_BURST};

    pthread_mutex_lock(&usctp_stack.lock);
    usrsctp_setsockopt(s->socket, IPPROTO_SCTP, SCTP_MAX_BURST, &burst, sizeof(burst));
    pthread_mutex_unlock(&usctp_stack.lock);
}

static void usctp_shutdown(struct sctp_assoc *base)
{
    struct usctp *s = usctp_of(base);
    pthread_mutex_lock(&usctp_stack.lock);
    usrsctp_shutdown(s->socket, SHUT_WR);
    udp_flush(&s->port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
}

static void usctp_abort(struct sctp_assoc *base, const char *reason, size_t octets)
{
    struct usctp *s = usctp_of(base);
    struct sctp_sndinfo info = {.snd_flags = SCTP_ABORT};

    pthread_mutex_lock(&usctp_stack.lock);
    s->over = true;
    usrsctp_sendv(s->socket, reason, octets, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
    udp_flush(&s->port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
}

static void usctp_names(struct sctp_assoc *base, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    struct usctp *s = usctp_of(base);
    *peer = s->path->peer;
    if (!udp_source(peer, local))
        sctp_set_port(local, s->local_port);
    sctp_set_port(peer, s->peer_port);
}

static void usctp_close(struct sctp_assoc *base)
{
    struct usctp *s = usctp_of(base);
    struct usctp **at = &s->port->assocs;
    struct linger at_once = {.l_onoff = 1};

    pthread_mutex_lock(&usctp_stack.lock);
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->ready) {
        for (at = &s->port->ready; *at != s;)
            at = &(*at)->next_ready;
        *at = s->next_ready;
    }
    /* Without this a callback of the closed socket would find no association and make a new one. */
    usrsctp_set_ulpinfo(s->socket, NULL);
    usrsctp_setsockopt(s->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    usrsctp_close(s->socket);
    udp_flush(&s->port->udp);
    give_port_back(s->own_port);
    pthread_mutex_unlock(&usctp_stack.lock);
    usctp_forget(s);
}

const struct sctp_provider usctp = {
    .open = usctp_open,
    .close_socket = usctp_close_socket,
    .local = usctp_local,
    .listen = usctp_listen,
    .unlisten = usctp_unlisten,
    .accept = usctp_accept,
    .connect = usctp_connect,
    .drive = usctp_drive,
    .ready = usctp_ready,
    .next = usctp_next,
    .enter = usctp_enter,
    .leave = usctp_leave,
    .submit = usctp_submit,
    .due = usctp_due,
    .batches = usctp_batches,
    .shutdown = usctp_shutdown,
    .abort = usctp_abort,
    .names = usctp_names,
    .close = usctp_close,
};
