/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp.c - associations of usrsctp: open, accept, send, close. */
#include "net/usctp.h"

#ifdef RDDP_USRSCTP

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/usctp_inner.h"

enum { IPV4_HEAD = 20, IPV6_HEAD = 40, UDP_HEAD = 8 };

bool usctp_is_there(void)
{
    return true;
}

void usctp_abandon(void)
{
    pid_t ours = getpid();

    for (struct usctp_port *port = usctp_stack.ports; port; port = port->next)
        if (port->pid != ours) {
            port->silent = true;
            port->udp.out_octets = port->udp.out_packets = 0;
        }
}

int usctp_open(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr, struct usctp_port **port)
{
    struct usctp_port *p = calloc(1, sizeof(*p));
    int error = p ? 0 : -ENOMEM;

    pthread_mutex_lock(&usctp_stack.lock);
    if (!error && !usctp_begin())
        error = -ENOMEM;
    if (!error)
        error = udp_open(&p->udp, local, length);
    if (!error) {
        p->attr = *attr;
        p->pid = getpid();
        p->family = local->sa_family;
        p->next = usctp_stack.ports;
        usctp_stack.ports = p;
        *port = p;
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
        usctp_leave_path(s->path);
        usctp_forget(s);
    }
}

void usctp_unlisten(struct usctp_port *port)
{
    pthread_mutex_lock(&usctp_stack.lock);
    close_listener(port);
    udp_flush(&port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
}

void usctp_close_port(struct usctp_port *port)
{
    struct usctp_port **at = &usctp_stack.ports;

    pthread_mutex_lock(&usctp_stack.lock);
    close_listener(port);
    assert(!port->assocs);
    udp_flush(&port->udp);
    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
    for (uint32_t i = 0; i < USCTP_PORTS; i++)
        if (usctp_stack.at_port[i] == port)
            usctp_stack.at_port[i] = NULL;
    usctp_forget_paths(port);
    udp_close(&port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
    free(port);
}

int usctp_fd(const struct usctp_port *port)
{
    return port->udp.fd;
}

void usctp_local(const struct usctp_port *port, struct sockaddr_storage *local)
{
    udp_local(&port->udp, local);
}

/* --- sockets ------------------------------------------------------------------------------------------------- */

static int set_all(struct socket *socket, const struct usctp_port *port)
{
    static const uint16_t types[] = {SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION, SCTP_SHUTDOWN_EVENT};
    uint32_t mtu = port->attr.mtu ? port->attr.mtu : SCTP_MTU;
    struct sctp_setadaptation adaptation = {.ssb_adaptation_ind = port->attr.indication};
    struct sctp_paddrparams path = {.spp_flags = SPP_PMTUD_DISABLE};
    struct sctp_initmsg init = {.sinit_num_ostreams = SCTP_STREAMS_MAX, .sinit_max_instreams = SCTP_STREAMS_MAX};
    struct sctp_event event = {.se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1};
    uint32_t on = 1;
    int error = 0;

    /* spp_pathmtu counts only the octets left for chunks. */
    path.spp_pathmtu = mtu - (port->family == AF_INET6 ? IPV6_HEAD : IPV4_HEAD) - UDP_HEAD - PACKET_COMMON;
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

int usctp_listen(struct usctp_port *port, uint16_t sctp_port)
{
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

uint16_t usctp_listen_port(const struct usctp_port *port)
{
    return port->sctp_port;
}

/* The stack's queue tells that an association is complete; our list tells which one. */
struct usctp *usctp_accept(struct usctp_port *port)
{
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
        usrsctp_close(socket); /* usctp_stack_find() had no room for it */
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    return s;
}

static int usctp_start(struct usctp_port *port, const struct sockaddr_storage *peer, uint16_t sctp_port,
                       struct usctp *s)
{
    struct sockaddr_conn to = {.sconn_family = AF_CONN, .sconn_port = htons(sctp_port)};
    int error;

    s->path = usctp_path_to(port, peer);
    if (!s->path)
        return -ENOMEM;
    if (port->attr.alone && (error = udp_connect(&port->udp, peer)))
        return error;
    error = new_socket(port, s->path, &s->socket, &s->own_port);
    if (error)
        return error;
    s->local_port = s->own_port;
    to.sconn_addr = s->path;
    usctp_use_path(s->path);
    s->next = port->assocs;
    port->assocs = s;
    if (usrsctp_connect(s->socket, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) {
        error = -errno;
        port->assocs = s->next;
        usrsctp_close(s->socket);
        usctp_leave_path(s->path);
        give_port_back(s->own_port);
    }
    return error;
}

int usctp_connect(struct usctp_port *port, const struct sockaddr *peer, struct usctp **assoc)
{
    uint16_t udp_port = htons(port->attr.udp_port ? port->attr.udp_port : SCTP_PORT_UDP), sctp_port;
    struct usctp *s = calloc(1, sizeof(*s));
    struct sockaddr_storage to = {0};
    int error;

    if (!s)
        return -ENOMEM;
    if (peer->sa_family == AF_INET6) {
        memcpy(&to, peer, sizeof(struct sockaddr_in6));
        sctp_port = ntohs(((struct sockaddr_in6 *)&to)->sin6_port);
        ((struct sockaddr_in6 *)&to)->sin6_port = udp_port;
    } else {
        memcpy(&to, peer, sizeof(struct sockaddr_in));
        sctp_port = ntohs(((struct sockaddr_in *)&to)->sin_port);
        ((struct sockaddr_in *)&to)->sin_port = udp_port;
    }
    *s = (struct usctp){.port = port, .peer_port = sctp_port, .accepted = true};
    s->last = &s->first;
    pthread_mutex_lock(&usctp_stack.lock);
    error = usctp_start(port, &to, sctp_port, s);
    udp_flush(&port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
    if (error)
        free(s);
    else
        *assoc = s;
    return error;
}

/* --- events and messages ------------------------------------------------------------------------------------- */

static uint32_t usctp_payload_max(struct usctp *s)
{
    struct sctp_status status = {0};
    socklen_t length = sizeof(status);

    if (usrsctp_getsockopt(s->socket, IPPROTO_SCTP, SCTP_STATUS, &status, &length))
        return 0;
    return status.sstat_fragmentation_point;
}

bool usctp_next(struct usctp *s, struct sctp_news *event)
{
    struct usctp_entry *news;

    pthread_mutex_lock(&usctp_stack.lock);
    news = s->first;
    if (news) {
        s->first = news->next;
        if (!s->first)
            s->last = &s->first;
        *event = news->event;
        if (event->kind == SCTP_NEWS_MESSAGE)
            s->waiting -= event->octets;
        if (event->kind == SCTP_NEWS_UP) {
            event->indication = s->indication;
            event->payload_max = usctp_payload_max(s);
        }
    }
    if (!news && s->starved) {
        *event = (struct sctp_news){.kind = SCTP_NEWS_LOST};
        s->starved = false;
        pthread_mutex_unlock(&usctp_stack.lock);
        return true;
    }
    pthread_mutex_unlock(&usctp_stack.lock);
    free(news);
    return news != NULL;
}

void usctp_free(struct sctp_news *event)
{
    free(event->data);
    event->data = NULL;
}

int usctp_submit(struct usctp *s, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid)
{
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = SCTP_UNORDERED, .snd_ppid = htonl(ppid)};
    uint32_t n = 0;
    ssize_t sent;
    int error = 0;

    for (uint32_t i = 0; i < spans && !error; i++) {
        if (span[i].length > sizeof(usctp_stack.message) - n)
            error = -EMSGSIZE;
        else if (span[i].length)
            memcpy(usctp_stack.message + n, span[i].at, span[i].length);
        n += span[i].length;
    }
    if (!error) {
        sent = usrsctp_sendv(s->socket, usctp_stack.message, n, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
        error = sent < 0 ? -errno : 0;
    }
    /* If the association has ended, the waiting event tells more than the errno. */
    if (!error || (error != -EWOULDBLOCK && error != -ENOBUFS && !s->first))
        return error;
    s->port->full += !s->full;
    s->full = true;
    return -EAGAIN;
}

void usctp_flush(struct usctp_port *port)
{
    udp_flush(&port->udp);
}

bool usctp_enter(bool wait)
{
    return wait ? !pthread_mutex_lock(&usctp_stack.lock) : !pthread_mutex_trylock(&usctp_stack.lock);
}

void usctp_leave(void)
{
    pthread_mutex_unlock(&usctp_stack.lock);
}

void usctp_own(struct usctp *s, void *owner)
{
    pthread_mutex_lock(&usctp_stack.lock);
    s->owner = owner;
    if (s->first)
        usctp_mark_ready(s);
    pthread_mutex_unlock(&usctp_stack.lock);
}

void usctp_shutdown(struct usctp *s)
{
    pthread_mutex_lock(&usctp_stack.lock);
    usrsctp_shutdown(s->socket, SHUT_WR);
    udp_flush(&s->port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
}

void usctp_abort(struct usctp *s, const char *reason, size_t octets)
{
    struct sctp_sndinfo info = {.snd_flags = SCTP_ABORT};

    pthread_mutex_lock(&usctp_stack.lock);
    s->over = true;
    usrsctp_sendv(s->socket, reason, octets, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
    udp_flush(&s->port->udp);
    pthread_mutex_unlock(&usctp_stack.lock);
}

static void usctp_set_port(struct sockaddr_storage *addr, uint16_t sctp_port)
{
    if (addr->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)addr)->sin6_port = htons(sctp_port);
    else
        ((struct sockaddr_in *)addr)->sin_port = htons(sctp_port);
}

void usctp_names(const struct usctp *s, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    *peer = s->path->peer;
    udp_source(peer, local);
    usctp_set_port(local, s->local_port);
    usctp_set_port(peer, s->peer_port);
}

void usctp_close(struct usctp *s)
{
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
    s->port->full -= s->full;
    /* Without this a callback of the closed socket would find no association and make a new one. */
    usrsctp_set_ulpinfo(s->socket, NULL);
    usrsctp_setsockopt(s->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    usrsctp_close(s->socket);
    udp_flush(&s->port->udp);
    usctp_leave_path(s->path);
    give_port_back(s->own_port);
    pthread_mutex_unlock(&usctp_stack.lock);
    usctp_forget(s);
}

#endif
