/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_stack.c - the stack of usrsctp in a test program: its packets, timers, paths to peers, and notifications. */
#include "tests/interop/usrsctp/usctp_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "loop/reactor.h"
#include "sctp/chunk.h"
#include "sctp/packet.h"

enum { TICK_MS = USCTP_TICK_US / 1000, TICKS_MAX = 100, CHUNKS_QUEUED = 32768, RTO_INITIAL_MS = 1000, INIT_TSN = 16 };

struct usctp_stack usctp_stack = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- notifications ------------------------------------------------------------------------------------------- */

void usctp_mark_ready(struct usctp *s)
{
    if (s->ready || !s->accepted)
        return;
    s->ready = true;
    s->next_ready = s->port->ready;
    s->port->ready = s;
}

static struct sctp_news *usctp_add_event(struct usctp *s, enum sctp_news_kind kind)
{
    struct usctp_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        abort();
    entry->event.kind = kind;
    *s->last = entry;
    s->last = &entry->next;
    usctp_mark_ready(s);
    return &entry->event;
}

static void came_up(struct usctp *s)
{
    if (!s->up)
        usctp_add_event(s, SCTP_NEWS_UP)->tsn = s->path->init_tsn;
    s->up = true;
}

static void went_down(struct usctp *s, enum sctp_news_kind kind, const uint8_t *chunk, size_t n)
{
    struct sctp_news *news = s->over ? NULL : usctp_add_event(s, kind);
    size_t length;
    const uint8_t *reason = packet_reason(chunk, n, &length);

    s->over = true;
    if (!news || kind != SCTP_NEWS_ABORTED || !reason)
        return;
    news->data = malloc(length ? length : 1);
    if (!news->data)
        abort();
    memcpy(news->data, reason, length);
    news->octets = (uint32_t)length;
}

static void changed(struct usctp *s, const struct sctp_assoc_change *change, size_t n)
{
    size_t head = offsetof(struct sctp_assoc_change, sac_info), info = n > head ? n - head : 0;

    switch (change->sac_state) {
    case SCTP_COMM_UP:
        came_up(s);
        break;
    case SCTP_COMM_LOST:
    case SCTP_CANT_STR_ASSOC:
        /* The notification contains the peer's ABORT; without one the path failed. */
        went_down(s, info ? SCTP_NEWS_ABORTED : SCTP_NEWS_LOST, change->sac_info, info);
        break;
    case SCTP_SHUTDOWN_COMP:
        went_down(s, SCTP_NEWS_SHUTDOWN, NULL, 0);
        break;
    default: /* a restart: the peer is no longer the one that was connected */
        went_down(s, SCTP_NEWS_LOST, NULL, 0);
    }
}

static void notified(struct usctp *s, const void *data, size_t n)
{
    const union sctp_notification *note = data;

    if (n < sizeof(note->sn_header))
        return;
    if (note->sn_header.sn_type == SCTP_ASSOC_CHANGE && n >= offsetof(struct sctp_assoc_change, sac_info))
        changed(s, &note->sn_assoc_change, n);
    else if (note->sn_header.sn_type == SCTP_ADAPTATION_INDICATION && n >= sizeof(note->sn_adaptation_event))
        s->indication = note->sn_adaptation_event.sai_adaptation_ind;
    else if (note->sn_header.sn_type == SCTP_SHUTDOWN_EVENT)
        usctp_add_event(s, SCTP_NEWS_SHUTDOWN);
}

/* Returns the association of a socket. A new association belongs to the listener until it is accepted. NULL: it is
 * unknown, and the backlog is full or there is no listener. */
static struct usctp *usctp_find(struct usctp_port *port, struct socket *socket, const union sctp_sockstore *addr)
{
    struct usctp *s = port->assocs;

    while (s && s->socket != socket)
        s = s->next;
    if (s || port->pending >= USCTP_BACKLOG || !port->listener)
        return s;
    s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    *s = (struct usctp){
        .port = port,
        .socket = socket,
        .path = addr->sconn.sconn_addr,
        .peer_port = ntohs(addr->sconn.sconn_port),
        .next = port->assocs,
    };
    s->last = &s->first;
    port->pending++;
    port->assocs = s;
    return s;
}

/* `data` belongs to us. The stack must not be called from here. */
int usctp_input(struct socket *socket, union sctp_sockstore addr, void *data, size_t n, struct sctp_rcvinfo info,
                int flags, void *user)
{
    struct usctp *s = data && user ? usctp_find(user, socket, &addr) : NULL;
    struct sctp_news *news;

    if (s && flags & MSG_NOTIFICATION) {
        notified(s, data, n);
    } else if (s && !s->over) {
        news = usctp_add_event(s, SCTP_NEWS_MESSAGE);
        news->data = data;
        news->octets = (uint32_t)n;
        news->tsn = info.rcv_tsn;
        news->ppid = ntohl(info.rcv_ppid);
        news->stream = info.rcv_sid;
        news->unordered = info.rcv_flags & SCTP_UNORDERED;
        s->waiting += (uint32_t)n;
        return 1;
    }
    free(data);
    return 1;
}

void usctp_forget(struct usctp *s)
{
    struct usctp_entry *entry;

    while ((entry = s->first)) {
        s->first = entry->next;
        sctp_news_free(&entry->event);
        free(entry);
    }
    free(s);
}

/* --- the stack itself ---------------------------------------------------------------------------------------- */

/* Sends a packet of the stack to a path. If it is lost, SCTP retransmits it. */
static int usctp_output(void *addr, void *buffer, size_t length, uint8_t tos, uint8_t set_df)
{
    struct usctp_path *path = addr;

    (void)tos;
    (void)set_df;
    if (!path->port || length < PACKET_COMMON || length > UDP_BATCH_OCTETS)
        return EINVAL;
    if (packet_source(buffer) == path->port->inner)
        put16(buffer, path->port->sctp_port);
    packet_seal(udp_buffer(&path->port->udp, &path->peer, (uint32_t)length), buffer, length);
    udp_put(&path->port->udp, (uint32_t)length);
    return 0;
}

void usctp_begin(void)
{
    if (usctp_stack.begun)
        return;
    usctp_stack.stage.buffer = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_OCTETS);
    if (!usctp_stack.stage.buffer)
        abort();
    usrsctp_init_nothreads(0, usctp_output, NULL);
    usrsctp_enable_crc32c_offload();
    usrsctp_sysctl_set_sctp_sendspace(USCTP_BUFFER);
    usrsctp_sysctl_set_sctp_recvspace(USCTP_BUFFER);
    usrsctp_sysctl_set_sctp_max_chunks_on_queue(CHUNKS_QUEUED);
    /* RFC 9260 16. Its own 3 s would become the RTT if the first INIT is lost, and then an RTO of 10 s, of which it may
     * miss one: it looks at another clock for whether it has waited long enough. */
    usrsctp_sysctl_set_sctp_rto_initial_default(RTO_INITIAL_MS);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_sysctl_set_sctp_pr_enable(0);
    usrsctp_sysctl_set_sctp_asconf_enable(0);
    usrsctp_sysctl_set_sctp_auth_enable(0);
    usrsctp_sysctl_set_sctp_reconfig_enable(0);
    usrsctp_sysctl_set_sctp_nrsack_enable(0);
    usctp_stack.ticked_us = reactor_now_us();
    usctp_stack.begun = true;
}

static void usctp_tick(void)
{
    uint64_t ticks = (reactor_now_us() - usctp_stack.ticked_us) / USCTP_TICK_US;

    if (!ticks)
        return;
    usctp_stack.ticked_us += ticks * USCTP_TICK_US;
    for (ticks = ticks < TICKS_MAX ? ticks : TICKS_MAX; ticks; ticks--)
        usrsctp_handle_timers(TICK_MS);
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

    if (a->ss_family != b->ss_family || sctp_port_of(a) != sctp_port_of(b))
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

struct usctp_path *usctp_path_to(struct usctp_port *port, const struct sockaddr_storage *peer)
{
    struct usctp_path *path = port->paths;

    while (path && !same_address(&path->peer, peer))
        path = path->next;
    if (path)
        return path;
    path = calloc(1, sizeof(*path));
    if (!path)
        abort();
    usrsctp_register_address(path);
    *path = (struct usctp_path){.port = port, .peer = *peer, .next = port->paths};
    port->paths = path;
    return path;
}

/* --- work ---------------------------------------------------------------------------------------------------- */

/* Is the packet for this socket? Then translates the port to the stack's. */
static bool find_port(const struct usctp_port *port, uint8_t *p)
{
    uint16_t to = packet_destination(p);

    if (to == port->sctp_port && port->sctp_port) {
        put16(p + 2, port->inner);
        return true;
    }
    return to >= USCTP_PORT_FIRST && to != port->inner && usctp_stack.at_port[to - USCTP_PORT_FIRST] == port;
}

/* Records the initial TSN of an INIT or INIT-ACK, which the stack does not report. */
static void usctp_receive(struct usctp_path *path, uint8_t *p, uint32_t n)
{
    const uint8_t *chunk = p + PACKET_COMMON;

    if (!packet_is_sound(p, n) || !find_port(path->port, p))
        return;
    if (n >= PACKET_COMMON + CHUNK_INIT_HEAD && (chunk[0] == CHUNK_INIT || chunk[0] == CHUNK_INIT_ACK))
        path->init_tsn = get32(chunk + INIT_TSN);
    usrsctp_conninput(path, p, n, 0);
}

static void usctp_receive_batch(struct usctp_path *path, const struct udp_batch *batch)
{
    uint32_t n;

    for (uint32_t at = 0; at < batch->octets; at += n) {
        n = batch->octets - at < batch->each ? batch->octets - at : batch->each;
        usctp_receive(path, batch->at + at, n);
    }
}

/* An ICMP error counts only until the peer has answered. */
static void check_refused(struct usctp_port *port)
{
    struct usctp *s = port->assocs;
    uint8_t quoted[64];

    while (udp_refused(&port->udp, quoted, sizeof(quoted)))
        if (s && !s->up && port->attr.alone)
            went_down(s, SCTP_NEWS_REFUSED, NULL, 0);
}

/* Wakes associations that found the stack full: the peer may have acknowledged messages. */
static void check_full(struct usctp_port *port)
{
    for (struct usctp *s = port->assocs; s; s = s->next) {
        if (s->full)
            usctp_mark_ready(s);
        s->full = false;
    }
}

static bool usctp_is_full(const struct usctp_port *port)
{
    for (const struct usctp *s = port->assocs; s; s = s->next)
        if (s->waiting > USCTP_INBOX)
            return true;
    return false;
}

bool usctp_drive(struct sctp_socket *base)
{
    struct usctp_port *port = usctp_port_of(base);
    struct udp_batch batch[UDP_BUFFERS];
    int n = 0;

    pthread_mutex_lock(&usctp_stack.lock);
    if (!usctp_is_full(port))
        n = udp_recv(&port->udp, &usctp_stack.stage, batch);
    for (int i = 0; i < n; i++)
        if (batch[i].octets)
            usctp_receive_batch(usctp_path_to(port, &batch[i].from), &batch[i]);
    usctp_tick();
    for (struct usctp_port *any = usctp_stack.ports; any; any = any->next)
        udp_flush(&any->udp);
    check_refused(port);
    check_full(port);
    pthread_mutex_unlock(&usctp_stack.lock);
    return n == UDP_BUFFERS;
}
