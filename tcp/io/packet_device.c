/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_device.c - a device: distributes its packets to links, accepts connections, and ends links that linger. All
 * functions run by the driver of the device's loop. */
#include "tcp/io/packet_device.h"
#include "loop/descriptors.h"
#include "tcp/io/packet_name.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "endpoint/endpoint_link.h"

enum { PORT_FIRST = 49152, PORTS = 16384, KEEP_IDLE_US = 30000000, PATH_MTU_MAX = 65535 };

/* --- links ---------------------------------------------------------------------------------------------------- */

/* A link without an endpoint: what was sent still has to reach the peer, but what the peer sends is useless. */
static void settle_gone(struct packet_link *l)
{
    if (l->is_unwanted || reactor_now_us() >= l->gone_us)
        utcp_abort(&l->tcp);
    packet_flush(l);
    if (l->tcp.state == UTCP_CLOSED)
        packet_drop(l);
}

/* A link that packets have just made: it gets an endpoint, or is closed if it is already over. No endpoint is held. */
static void settle_new(struct packet_link *l)
{
    struct rddp_device *device = l->device;
    struct packet_port *port = device->ports;

    while (port && port->name.port != l->tcp.local.port)
        port = port->next;
    l->is_new = false;
    if (port && l->tcp.state >= UTCP_ESTABLISHED) {
        l->link.is_up = true;
        port->arrived(port, &l->link);
    } else {
        link_close(&l->link);
    }
}

static unsigned packet_news_of(struct packet_link *l)
{
    unsigned news = LINK_READABLE;

    if (!l->link.is_up && l->tcp.state >= UTCP_ESTABLISHED) {
        l->link.is_up = true;
        news |= LINK_UP;
    }
    if (l->wants & LINK_WANT_WRITE && packet_link_is_writable(l))
        news |= LINK_WRITABLE;
    if (l->wants & LINK_WANT_END && (utcp_ended(&l->tcp) || l->tcp.state == UTCP_CLOSED))
        news |= LINK_ENDED;
    if (l->tcp.state == UTCP_CLOSED) {
        l->link.error = l->tcp.error ? l->tcp.error : -ECONNABORTED;
        news |= LINK_LOST;
    }
    return news;
}

/* Handles what follows from packets and time. If the link has an endpoint, the caller holds it. */
static void packet_settle(struct packet_link *l)
{
    struct endpoint *endpoint = l->link.owner;

    if (!endpoint) {
        settle_gone(l);
        return;
    }
    packet_flush(l); /* acknowledgements first, because the peer waits for them */
    if (l->link.is_up || l->tcp.state >= UTCP_ESTABLISHED || l->tcp.state == UTCP_CLOSED)
        endpoint_link_event(endpoint, packet_news_of(l));
    if (!endpoint->closed)
        packet_flush(l);
}

static void packet_on_timer(struct timer *timer, uint64_t now_us)
{
    struct packet_link *l = container_of(timer, struct packet_link, timer);
    struct endpoint *endpoint = l->link.owner;

    (void)now_us;
    if (endpoint)
        endpoint_hold(endpoint);
    utcp_timeout(&l->tcp, reactor_now_us());
    packet_settle(l);
    if (endpoint)
        endpoint_release(endpoint, ENDPOINT_DRIVER);
}

struct packet_link *packet_add(struct rddp_device *device)
{
    struct packet_link *l = NULL;

    if (packet_make_space(device))
        l = packet_link_new(device, &device->loop->reactor);
    else
        errno = EMFILE;
    if (!l)
        return NULL;
    if (reactor_add_timer(&device->loop->reactor, &l->timer)) {
        packet_link_free(l);
        errno = ENOMEM;
        return NULL;
    }
    l->timer.fire = packet_on_timer;
    l->next = device->links;
    device->links = l;
    device->link_count++;
    return l;
}

/* --- packets ------------------------------------------------------------------------------------------------- */

static bool is_at(const struct packet_port *port, const struct utcp_name *name)
{
    static const uint8_t any[16];

    return port->name.port == name->port &&
           (!memcmp(port->name.ip, any, sizeof(any)) || !memcmp(port->name.ip, name->ip, sizeof(any)));
}

static bool packet_listens(void *of, const struct utcp_name *local)
{
    const struct rddp_device *device = of;

    for (const struct packet_port *port = device->ports; port; port = port->next)
        if (is_at(port, local))
            return port->has_space(port);
    return false;
}

static void note_touched(struct rddp_device *device, struct packet_link *l)
{
    l->is_touched = true;
    l->touched = device->touched;
    device->touched = l;
}

/* Called before a packet is processed: holds the endpoint of its link until the end of the batch. */
static uint64_t packet_touch(void *of, struct utcp *t, uint64_t now_us)
{
    struct packet_link *l = container_of(t, struct packet_link, tcp);

    if (l->is_touched)
        return now_us;
    note_touched(of, l);
    if (!l->link.owner)
        return now_us;
    endpoint_hold(l->link.owner);
    return reactor_now_us(); /* a poster may have held it for a while */
}

static struct utcp *accept_link(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    struct packet_link *l;

    (void)remote;
    if (!packet_listens(of, local) || !(l = packet_add(of)))
        return NULL;
    l->is_new = true;
    note_touched(of, l);
    return &l->tcp;
}

static const struct utcp_host_user host_user = {packet_listens, accept_link, packet_touch};

/* Ends a batch: handles all links that got packets, and releases their endpoints. */
static void packet_settle_touched(struct rddp_device *device)
{
    while (device->touched) {
        struct packet_link *l = device->touched;
        struct endpoint *endpoint = l->link.owner;

        device->touched = l->touched;
        l->is_touched = false;
        if (l->is_new)
            settle_new(l);
        else
            packet_settle(l);
        if (endpoint)
            endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
}

static void packet_pump_host(struct rddp_device *device)
{
    struct utcp_packet p;

    while (utcp_host_output(&device->host, &p, reactor_now_us()))
        packet_write(device, &p, p.length);
    reactor_set_timer(&device->loop->reactor, &device->timer, utcp_host_deadline(&device->host));
}

static void packet_on_host_timer(struct timer *timer, uint64_t now_us)
{
    struct rddp_device *device = container_of(timer, struct rddp_device, timer);

    utcp_host_timeout(&device->host, now_us);
    packet_pump_host(device);
}

/* All that came before these links were handed off has been read. */
static void packet_settle_down(struct rddp_device *device)
{
    for (struct packet_link *l = device->links; l && device->settles; l = l->next) {
        if (l->is_settling)
            utcp_settle(&l->tcp);
        l->is_settling = false;
    }
    device->settles = false;
}

/* Returns how many packets were read, fewer than RAWIP_READ if no more waited, or a negative errno. */
static int packet_read(const struct packet_input *input, struct rawip_arrival *arrival)
{
    struct rddp_device *device = input->device;
    struct tun_note note = {.checked = false};
    ssize_t n;

    if (device->attr.hand_off)
        return rawip_recv(&device->rawip, input->watch.fd, arrival);
    n = tun_recv(input->watch.fd, &(struct iovec){device->packet, sizeof(device->packet)}, 1, &note);
    arrival[0] = (struct rawip_arrival){device->packet, n < 0 ? 0 : (uint32_t)n, note.checked};
    return n < 0 && n != -EMSGSIZE ? (int)n : 1;
}

static void packet_take(struct rddp_device *device, const struct rawip_arrival *a)
{
    struct utcp *t = NULL;

    if (a->octets && !packet_is_lost(device))
        t = utcp_host_input(&device->host, a->at, a->octets, a->checked, reactor_now_us());
    if (t && utcp_urgent(t))
        packet_flush(container_of(t, struct packet_link, tcp));
}

/* The TUN device was removed: its connections end. The descriptor stays, because posters may be sending. */
static void packet_lose(struct rddp_device *device, int error)
{
    reactor_unwatch(&device->loop->reactor, &device->input[0].watch);
    device->input[0].watch.ready = NULL;
    context_log(device->loop->context, RDDP_LOG_ERROR, "the device is gone: %s", strerror(-error));
    for (struct packet_link *l = device->links; l; l = l->next) {
        (void)packet_touch(device, &l->tcp, 0);
        utcp_abort(&l->tcp);
    }
}

static void packet_on_packets(struct watch *watch, uint32_t events)
{
    const struct packet_input *input = container_of(watch, struct packet_input, watch);
    struct rddp_device *device = input->device;
    struct rawip_arrival arrival[RAWIP_READ];
    int most = device->attr.hand_off ? RAWIP_READ : 1, n = most;
    uint32_t octets = 0;

    (void)events;
    for (int packets = 0; n == most && packets < PACKET_BATCH && octets < PACKET_BATCH_OCTETS; packets += n) {
        n = packet_read(input, arrival);
        for (int i = 0; i < n; i++) {
            packet_take(device, &arrival[i]);
            octets += arrival[i].octets;
            /* A window ends at a distance from what was read, so a batch must be short beside it. */
            if (octets / PACKET_BATCH_OCTETS != (octets - arrival[i].octets) / PACKET_BATCH_OCTETS)
                packet_settle_touched(device);
        }
    }
    if (n < most)
        packet_settle_down(device);
    if (n < 0 && n != -EAGAIN && !device->attr.hand_off)
        packet_lose(device, n);
    packet_settle_touched(device);
    packet_pump_host(device);
}

/* --- connecting and listening ----------------------------------------------------------------------------- */

/* Neither removed nor left to the parent of this process. */
static bool packet_is_usable(const struct rddp_device *device)
{
    return device->fd >= 0 && device->input[0].watch.ready;
}

/* Chooses a local port that is free towards `remote`. */
static bool packet_choose_port(struct rddp_device *device, struct utcp_name *local, const struct utcp_name *remote)
{
    for (uint32_t i = 0; i < PORTS; i++) {
        local->port = (uint16_t)(PORT_FIRST + device->next_port++ % PORTS);
        if (!utcp_host_find(&device->host, local, remote))
            return true;
    }
    return false;
}

static bool is_listened_to(const struct rddp_device *device, uint16_t port)
{
    for (const struct packet_port *other = device->ports; other; other = other->next)
        if (other->name.port == port)
            return true;
    return false;
}

/* Takes the port of `from`, whose address is the device's or the wildcard. Returns 0 or a negative errno. */
static int packet_take_port(struct rddp_device *device, struct utcp_name *local, const struct utcp_name *remote,
                            const struct utcp_name *from)
{
    static const uint8_t any[sizeof(from->ip)];

    if (memcmp(from->ip, any, sizeof(any)) && memcmp(from->ip, local->ip, sizeof(local->ip)))
        return -EADDRNOTAVAIL;
    if (!from->port)
        return packet_choose_port(device, local, remote) ? 0 : -EADDRINUSE;
    local->port = from->port;
    if (is_listened_to(device, local->port))
        return -EADDRINUSE;
    return utcp_host_find(&device->host, local, remote) ? -EADDRNOTAVAIL : 0;
}

struct link *packet_connect(struct rddp_device *device, const struct sockaddr *peer, socklen_t length,
                            const struct sockaddr *from)
{
    struct utcp_name local = device->own, remote, bound = {.port = 0};
    uint64_t now_us = reactor_now_us();
    struct packet_link *l = NULL;
    int error = packet_is_usable(device) ? packet_name_from(&remote, peer, length) : -ENODEV;

    if (!error && (!remote.port || utcp_is_v4(&local) != utcp_is_v4(&remote)))
        error = remote.port ? -EAFNOSUPPORT : -EINVAL;
    if (!error && from)
        error = packet_name_from(&bound, from, sizeof(struct sockaddr_in6));
    if (!error)
        error = packet_take_port(device, &local, &remote, &bound);
    if (!error && !(l = packet_add(device)))
        error = -errno;
    if (error) {
        errno = -error;
        return NULL;
    }
    l->tcp.attr.isn = utcp_host_isn(&device->host, &local, &remote, now_us);
    l->tcp.attr.stamp_offset = utcp_host_stamp_offset(&device->host, &local, &remote);
    utcp_connect(&l->tcp, &local, &remote);
    utcp_host_add(&device->host, &l->tcp);
    packet_flush(l);
    return &l->link;
}

int packet_listen(struct rddp_device *device, struct packet_port *port)
{
    bool any = !port->name.port;

    if (!packet_is_usable(device))
        return -ENODEV;
    for (uint32_t i = 0; any && i < PORTS && (!i || is_listened_to(device, port->name.port)); i++)
        port->name.port = (uint16_t)(PORT_FIRST + device->next_port++ % PORTS);
    if (is_listened_to(device, port->name.port))
        return -EADDRINUSE;
    port->next = device->ports;
    device->ports = port;
    return 0;
}

void packet_unlisten(struct rddp_device *device, struct packet_port *port)
{
    struct packet_port **at = &device->ports;

    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
}

/* --- the device ------------------------------------------------------------------------------------------------ */

static int packet_init_host(struct rddp_device *device)
{
    struct utcp_host_buffers buffers = {device->bucket, device->half, PACKET_BUCKETS, PACKET_HALVES};
    struct utcp_host_attr attr = {.quiet = device->attr.hand_off};

    utcp_attr_default(&attr.tcp);
    attr.tcp.mtu = device->attr.hand_off ? PATH_MTU_MAX : device->attr.mtu;
    attr.tcp.window = device->attr.window;
    attr.tcp.window_max = device->attr.window_max;
    attr.tcp.partial = !device->attr.checksums && !device->attr.hand_off;
    attr.tcp.keep_idle_us = device->attr.hand_off ? KEEP_IDLE_US : 0;
    if (getrandom(attr.key, sizeof(attr.key), 0) != sizeof(attr.key) ||
        getrandom(&device->next_port, sizeof(device->next_port), 0) != sizeof(device->next_port))
        return -EAGAIN;
    utcp_host_init(&device->host, &attr, &buffers, &host_user, device);
    return 0;
}

/* If packets shall be lost on purpose, the device must not join them: they have to be those of the path. */
static unsigned offload_of(const struct rddp_device *device)
{
    return device->joins ? TUN_CHECKSUMS | TUN_SEGMENTS : device->attr.checksums ? 0 : TUN_CHECKSUMS;
}

static int packet_watch(struct rddp_device *device, struct packet_input *input, int fd)
{
    int error;

    *input = (struct packet_input){.watch = {.fd = fd, .ready = packet_on_packets}, .device = device};
    error = reactor_watch(&device->loop->reactor, &input->watch, EPOLLIN);
    if (error)
        input->watch.ready = NULL;
    return error;
}

static int open_tun(struct rddp_device *device)
{
    const struct rddp_device_attr *attr = &device->attr;

    device->joins = !attr->checksums && !attr->lose;
    device->fd =
        tun_set_up(attr->name, attr->neighbor, attr->prefix, attr->mtu, offload_of(device), &device->tun_before);
    if (device->fd < 0)
        return device->fd;
    int error = tun_check_route(&device->tun_before, attr->address);

    return error ? error : packet_watch(device, &device->input[0], device->fd);
}

static int open_rawip(struct rddp_device *device)
{
    int error = rawip_open(&device->rawip);

    device->is_raw = !error;
    for (int family = 0; family < RAWIP_FAMILIES && !error; family++)
        if (device->rawip.in[family] >= 0)
            error = packet_watch(device, &device->input[family], device->rawip.in[family]);
    return error;
}

int packet_open(struct rddp_device *device)
{
    struct reactor *reactor = &device->loop->reactor;
    int error = packet_init_host(device);

    device->random = device->attr.lose_seed;
    device->fd = -1;
    if (!error)
        error = reactor_add_timer(reactor, &device->timer);
    if (error)
        return error;
    device->timer.fire = packet_on_host_timer;
    return device->attr.hand_off ? open_rawip(device) : open_tun(device);
}

void packet_close(struct rddp_device *device)
{
    struct reactor *reactor = &device->loop->reactor;

    while (device->links) {
        struct packet_link *l = device->links;

        if (l->tcp.state != UTCP_TIME_WAIT)
            utcp_abort(&l->tcp);
        packet_flush(l);
        packet_drop(l);
    }
    if (device->timer.fire)
        reactor_forget_timer(reactor, &device->timer);
    device->timer.fire = NULL;
    for (int i = 0; i < RAWIP_FAMILIES; i++) {
        if (device->input[i].watch.ready)
            reactor_unwatch(reactor, &device->input[i].watch);
        device->input[i].watch.ready = NULL;
    }
    if (device->fd >= 0)
        tun_put_back(&device->tun_before);
    packet_leave(device);
}

/* Where the kernel keeps the places of ours they must not stay kept when the parent gives them up. */
static void leave_places(struct rddp_device *device)
{
    for (struct packet_link *l = device->links; l; l = l->next) {
        if (l->place_fd >= 0)
            descriptor_close(l->place_fd);
        l->place_fd = -1;
    }
}

void packet_leave(struct rddp_device *device)
{
    leave_places(device);
    if (device->is_raw)
        rawip_close(&device->rawip);
    device->is_raw = false;
    if (device->fd >= 0)
        descriptor_close(device->fd);
    device->fd = -1;
}
