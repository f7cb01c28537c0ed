/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_stack.c - the stack of usrsctp in this process: its packets, timers, paths to peers, and notifications. */
#ifdef RDDP_USRSCTP

#include "sctp/io/usctp_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loop/reactor.h"
#include "sctp/io/usctp_bundle.h"

enum { TICK_MS = USCTP_TICK_US / 1000, TICKS_MAX = 100, CHUNKS_QUEUED = 32768, RTO_INITIAL_MS = 1000 };

struct usctp_stack usctp_stack = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- packets out --------------------------------------------------------------------------------------------- */

static void flush_all(void)
{
    for (struct usctp_port *port = usctp_stack.ports; port; port = port->next)
        usctp_send(port);
}

/* --- notifications ------------------------------------------------------------------------------------------- */

void usctp_mark_ready(struct usctp *s)
{
    if (s->ready || !s->accepted)
        return;
    s->ready = true;
    s->next_ready = s->port->ready;
    s->port->ready = s;
}

struct usctp_entry *usctp_get_entry(struct usctp_port *port)
{
    struct usctp_entry *entry = port->spare;

    if (!entry)
        return calloc(1, sizeof(*entry));
    port->spare = entry->next;
    port->spares--;
    *entry = (struct usctp_entry){.next = NULL};
    return entry;
}

void usctp_put_entry(struct usctp_port *port, struct usctp_entry *entry)
{
    if (port->spares >= USCTP_SPARES) {
        free(entry);
        return;
    }
    entry->next = port->spare;
    port->spare = entry;
    port->spares++;
}

static struct usctp_entry *usctp_stack_tell(struct usctp *s, enum sctp_news_kind kind)
{
    struct usctp_entry *news = usctp_get_entry(s->port);

    usctp_mark_ready(s);
    if (!news) {
        s->starved = s->over = true;
        return NULL;
    }
    news->event.kind = kind;
    *s->last = news;
    s->last = &news->next;
    return news;
}

static void came_up(struct usctp *s)
{
    struct usctp_entry *news = s->up ? NULL : usctp_stack_tell(s, SCTP_NEWS_UP);

    s->up = true;
    if (news)
        news->event.tsn = s->path->init.tsn;
}

static void went_down(struct usctp *s, enum sctp_news_kind kind, const uint8_t *chunk, size_t n)
{
    struct usctp_entry *news = s->over ? NULL : usctp_stack_tell(s, kind);
    size_t length;
    const uint8_t *reason = packet_reason(chunk, n, &length);

    s->over = true;
    if (!news || kind != SCTP_NEWS_ABORTED || !reason)
        return;
    news->event.data = malloc(length ? length : 1);
    if (!news->event.data)
        return;
    memcpy(news->event.data, reason, length);
    news->event.octets = (uint32_t)length;
}

static void changed(struct usctp *s, const struct sctp_assoc_change *change, size_t n)
{
    size_t head = offsetof(struct sctp_assoc_change, sac_info), info = n > head ? n - head : 0;

    switch (change->sac_state) {
    case SCTP_COMM_UP:
        came_up(s);
        break;
    case SCTP_COMM_LOST:
        /* The notification contains the peer's ABORT; without one the path failed. */
        went_down(s, info ? SCTP_NEWS_ABORTED : SCTP_NEWS_LOST, change->sac_info, info);
        break;
    case SCTP_SHUTDOWN_COMP:
        went_down(s, SCTP_NEWS_SHUTDOWN, NULL, 0);
        break;
    case SCTP_CANT_STR_ASSOC:
        went_down(s, info ? SCTP_NEWS_ABORTED : SCTP_NEWS_LOST, change->sac_info, info);
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
        usctp_stack_tell(s, SCTP_NEWS_SHUTDOWN);
}

/* Returns the association of a socket. A new association belongs to the listener until it is accepted. NULL: it is
 * unknown, and the backlog is full, nobody listens, or there is no memory. */
static struct usctp *usctp_stack_find(struct usctp_port *port, struct socket *socket, const union sctp_sockstore *addr)
{
    struct usctp *s = port->assocs;

    while (s && s->socket != socket)
        s = s->next;
    if (s || port->pending >= USCTP_BACKLOG || !port->listener)
        return s;
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    *s = (struct usctp){
        .base.provider = &usctp, .port = port, .socket = socket, .path = addr->sconn.sconn_addr, .next = port->assocs};
    s->peer_port = ntohs(addr->sconn.sconn_port);
    s->last = &s->first;
    usctp_use_path(s->path);
    port->pending++;
    port->assocs = s;
    return s;
}

/* `data` belongs to us. The stack must not be called from here. */
int usctp_input(struct socket *socket, union sctp_sockstore addr, void *data, size_t n, struct sctp_rcvinfo info,
                int flags, void *user)
{
    struct usctp *s = data && user ? usctp_stack_find(user, socket, &addr) : NULL;
    struct usctp_entry *news;

    if (s && flags & MSG_NOTIFICATION) {
        notified(s, data, n);
    } else if (s && !s->over && (news = usctp_stack_tell(s, SCTP_NEWS_MESSAGE))) {
        news->event.data = data;
        news->event.octets = (uint32_t)n;
        news->event.tsn = info.rcv_tsn;
        news->event.ppid = ntohl(info.rcv_ppid);
        news->event.stream = info.rcv_sid;
        news->event.unordered = info.rcv_flags & SCTP_UNORDERED;
        s->waiting += (uint32_t)n;
        return 1;
    }
    free(data);
    return 1;
}

void usctp_forget(struct usctp *s)
{
    struct usctp_entry *news;

    while ((news = s->first)) {
        s->first = news->next;
        free(news->event.data);
        free(news);
    }
    free(s);
}

/* --- the stack itself ---------------------------------------------------------------------------------------- */

bool usctp_begin(void)
{
    if (usctp_stack.begun)
        return true;
    usctp_stack.stage.buffer = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_OCTETS);
    if (!usctp_stack.stage.buffer)
        return false;
    usctp_stack.pack.at = usctp_stack.packet;
    usrsctp_init_nothreads(0, usctp_output, NULL);
    usrsctp_enable_crc32c_offload();
    usrsctp_sysctl_set_sctp_sendspace(USCTP_SEND_MS);
    usrsctp_sysctl_set_sctp_recvspace(USCTP_BUFFER);
    usrsctp_sysctl_set_sctp_max_chunks_on_queue(CHUNKS_QUEUED);
    /* RFC 9260 16. Its own 3 s would become the RTT if the first INIT is lost, and then an RTO of 10 s, of which it may
     * miss one: it looks at another clock for whether it has waited long enough. */
    usrsctp_sysctl_set_sctp_rto_initial_default(RTO_INITIAL_MS);
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_sysctl_set_sctp_pr_enable(0);     /* an abandoned message would leave a gap for ever */
    usrsctp_sysctl_set_sctp_asconf_enable(0); /* use only the addresses that were configured */
    usrsctp_sysctl_set_sctp_auth_enable(0);
    usrsctp_sysctl_set_sctp_reconfig_enable(0);
    usrsctp_sysctl_set_sctp_nrsack_enable(0);
    usctp_stack.ticked_us = loop_now_us();
    usctp_stack.begun = true;
    return true;
}

static void usctp_stack_tick(void)
{
    uint64_t ticks = (loop_now_us() - usctp_stack.ticked_us) / USCTP_TICK_US;

    if (!ticks)
        return;
    usctp_stack.ticked_us += ticks * USCTP_TICK_US;
    for (ticks = ticks < TICKS_MAX ? ticks : TICKS_MAX; ticks; ticks--)
        usrsctp_handle_timers(TICK_MS);
}

/* --- ports and paths ----------------------------------------------------------------------------------------- */

/* The stack knows a path's memory for an address of ours, and does not forget it: it would do that on a thread of its
 * own, some ticks later, under locks that a child of fork() then finds taken by nobody. Most paths that there ever were
 * at once is how many it knows. */
static void forget_path(struct usctp_port *port, struct usctp_path **at)
{
    struct usctp_path *path = *at;

    *at = path->next;
    port->idle_paths--;
    path->port = NULL;
    path->next = usctp_stack.free_paths;
    usctp_stack.free_paths = path;
}

static struct usctp_path *new_path(void)
{
    struct usctp_path *path = usctp_stack.free_paths;

    if (!path) {
        path = calloc(1, sizeof(*path));
        if (path)
            usrsctp_register_address(path);
        return path;
    }
    usctp_stack.free_paths = path->next;
    memset(path, 0, sizeof(*path));
    return path;
}

/* Forgets the path that has been idle longest. */
static void forget_oldest(struct usctp_port *port)
{
    struct usctp_path **oldest = NULL;

    for (struct usctp_path **at = &port->paths; *at; at = &(*at)->next)
        if (!(*at)->users && (!oldest || (*at)->used_us < (*oldest)->used_us))
            oldest = at;
    if (oldest)
        forget_path(port, oldest);
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a6->sin6_port == b6->sin6_port && memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

/* Moves the path to the front, because the next packet is probably for it too. */
struct usctp_path *usctp_path_to(struct usctp_port *port, const struct sockaddr_storage *peer)
{
    struct usctp_path **at = &port->paths, *path;

    while (*at && !same_address(&(*at)->peer, peer))
        at = &(*at)->next;
    path = *at;
    if (path) {
        *at = path->next;
    } else {
        if (port->idle_paths >= USCTP_PATHS)
            forget_oldest(port);
        path = new_path();
        if (!path)
            return NULL;
        path->port = port;
        path->peer = *peer;
        port->idle_paths++;
    }
    path->next = port->paths;
    port->paths = path;
    return path;
}

void usctp_use_path(struct usctp_path *path)
{
    path->port->idle_paths -= path->users++ == 0;
}

void usctp_leave_path(struct usctp_path *path)
{
    path->port->idle_paths += --path->users == 0;
}

void usctp_forget_paths(struct usctp_port *port)
{
    while (port->paths)
        forget_path(port, &port->paths);
}

/* --- work ---------------------------------------------------------------------------------------------------- */

/* Is the packet for this socket? Then translates the port to the stack's. */
static bool find_port(const struct usctp_port *port, uint16_t *sctp_port)
{
    if (*sctp_port == port->sctp_port && port->sctp_port) {
        *sctp_port = port->inner;
        return true;
    }
    return *sctp_port >= USCTP_PORT_FIRST && *sctp_port != port->inner &&
           usctp_stack.at_port[*sctp_port - USCTP_PORT_FIRST] == port;
}

static void usctp_stack_refuse(struct usctp_path *path, const uint8_t *p, uint32_t n)
{
    uint8_t refusal[PACKET_REFUSAL];

    if (!packet_refuse(p, n, refusal))
        return;
    memcpy(udp_buffer(&path->port->udp, &path->peer, sizeof(refusal)), refusal, sizeof(refusal));
    udp_put(&path->port->udp, sizeof(refusal));
}

/* Is this a packet for the stack? Drops it if the CRC is wrong; records the fields of an INIT, which the stack does not
 * report. Who sent an INIT has yet to say whether it sends batches. */
static bool usctp_stack_admit(struct usctp_path *path, uint8_t *p, uint32_t n)
{
    uint16_t sctp_port;

    if (!packet_is_sound(p, n))
        return false;
    path->used_us = usctp_stack.ticked_us;
    sctp_port = packet_destination(p);
    if (!find_port(path->port, &sctp_port)) {
        usctp_stack_refuse(path, p, n);
        return false;
    }
    packet_set_destination(p, sctp_port);
    if (packet_read_init(p, n, &path->init))
        path->batches = false;
    return true;
}

/* Several packets at once: without the I bit the stack would take them for one, of which it acknowledges every second.
 * That is enough if more are at hand. */
static void usctp_stack_end(struct usctp_path *path, struct bundle *bundle, bool more)
{
    if (bundle->packets > 1 && !more)
        packet_ask_ack(bundle->at);
    if (bundle->packets)
        usrsctp_conninput(path, bundle->at, bundle->octets, 0);
    *bundle = (struct bundle){0};
}

/* Packets behind a gap are processed one by one, because their sender counts the SACKs that report it. `more`: the next
 * batch is at hand. */
static void usctp_stack_receive(struct usctp_path *path, const struct udp_batch *batch, bool more)
{
    struct bundle bundle = {0};
    uint32_t n;

    for (uint32_t at = 0; at < batch->octets; at += n) {
        uint8_t *p = batch->at + at;

        n = batch->octets - at < batch->each ? batch->octets - at : batch->each;
        if (!usctp_stack_admit(path, p, n))
            continue;
        if (path->batches && !path->gaps && bundle_add(&bundle, p, n))
            continue;
        usctp_stack_end(path, &bundle, false);
        if (!path->batches || path->gaps || !bundle_add(&bundle, p, n))
            usrsctp_conninput(path, p, n, 0);
    }
    usctp_stack_end(path, &bundle, more);
}

/* An ICMP error counts only until the peer has answered. */
static void check_refused(struct usctp_port *port)
{
    struct usctp *s = port->assocs;

    if (!port->udp.refused)
        return;
    port->udp.refused = false;
    if (s && !s->up && port->attr.alone)
        went_down(s, SCTP_NEWS_REFUSED, NULL, 0);
}

/* Wakes associations that found the stack full: the peer may have acknowledged messages. */
static void check_full(struct usctp_port *port)
{
    for (struct usctp *s = port->assocs; s && port->full; s = s->next)
        if (s->full) {
            s->full = false;
            port->full--;
            usctp_mark_ready(s);
        }
}

static bool usctp_stack_is_full(const struct usctp_port *port)
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
    if (!usctp_stack_is_full(port) && !port->silent)
        n = udp_recv(&port->udp, &usctp_stack.stage, batch);
    for (int i = 0; i < n; i++) {
        struct usctp_path *path = batch[i].octets ? usctp_path_to(port, &batch[i].from) : NULL;

        if (path)
            usctp_stack_receive(path, &batch[i], i + 1 < n && same_address(&batch[i].from, &batch[i + 1].from));
    }
    usctp_stack_tick();
    flush_all();
    check_refused(port);
    check_full(port);
    pthread_mutex_unlock(&usctp_stack.lock);
    return n == UDP_BUFFERS;
}

void *usctp_ready(struct sctp_socket *base)
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
    return s ? s->owner : NULL;
}

#endif
