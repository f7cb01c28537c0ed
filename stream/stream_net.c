/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_net.c - a TUN device, its packets to streams and theirs to it, ports that are listened to. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "stream/inner.h"
#include "base/container.h"
#include "loop/descriptors.h"

enum { MTU_MIN = 1280, MTU_MAX = 65535, WINDOW_MIN = 4096 };

void rddp_stream_net_attr_init(struct rddp_stream_net_attr *attr)
{
    *attr = (struct rddp_stream_net_attr){.mtu = 1500,
                                          .window = 1 << 20,
                                          .window_max = 1 << 24,
                                          .streams = 1024,
                                          .option_kind = TCPOPT_KIND,
                                          .lose_seed = 1};
}

static bool stream_net_listens(void *of, const struct utcp_name *local)
{
    const struct rddp_stream_net *net = of;

    for (uint32_t i = 0; i < net->ports; i++)
        if (net->port[i].port == local->port)
            return net->port[i].waiting < net->port[i].backlog;
    return false;
}

static struct utcp *accept_stream(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    struct rddp_stream_net *net = of;
    struct rddp_stream *s;
    int error;

    (void)remote;
    if (!stream_net_listens(of, local) || !(s = stream_new(net, &error)))
        return NULL;
    s->port = local->port;
    for (uint32_t i = 0; i < net->ports; i++)
        net->port[i].waiting += net->port[i].port == local->port;
    return &s->tcp;
}

static const struct utcp_host_user host_user = {.listens = stream_net_listens, .accept = accept_stream};

static void stream_net_pump_host(struct rddp_stream_net *net)
{
    struct utcp_packet p;

    while (utcp_host_output(&net->host, &p, reactor_now_us()))
        stream_send_packet(net, &p, p.length);
    reactor_set_timer(&net->reactor, &net->timer, utcp_host_deadline(&net->host));
}

static void stream_net_on_host_timer(struct timer *timer, uint64_t now_us)
{
    struct rddp_stream_net *net = container_of(timer, struct rddp_stream_net, timer);

    utcp_host_timeout(&net->host, now_us);
    stream_net_pump_host(net);
}

static void stream_net_touch(struct rddp_stream_net *net, struct rddp_stream *s)
{
    if (!s->is_touched) {
        s->is_touched = true;
        s->touched = net->touched;
        net->touched = s;
    }
    if (utcp_urgent(&s->tcp))
        stream_pump(s);
}

static void stream_net_settle_touched(struct rddp_stream_net *net)
{
    while (net->touched) {
        struct rddp_stream *s = net->touched;

        net->touched = s->touched;
        s->is_touched = false;
        stream_pump(s);
    }
}

/* All streams fail. */
static void stream_net_lose(struct rddp_stream_net *net)
{
    if (net->is_watched)
        reactor_unwatch(&net->reactor, &net->watch);
    net->is_watched = false;
    net->is_gone = true;
    for (struct rddp_stream *s = net->streams; s; s = s->next) {
        utcp_abort(&s->tcp);
        s->tcp.error = -ENODEV;
    }
}

bool stream_net_check(struct rddp_stream_net *net)
{
    bool is_ours = reactor_is_ours(&net->reactor);

    if (!net->is_gone && !is_ours)
        stream_net_lose(net);
    return is_ours;
}

void stream_net_receive(struct rddp_stream_net *net)
{
    struct iovec piece[3];
    struct tun_note note;
    uint32_t octets = 0;

    for (net->batch = 0; net->batch < STREAM_BATCH && octets < STREAM_BATCH_OCTETS; net->batch++) {
        ssize_t n = tun_recv(net->fd, piece, stream_guess(net, piece), &note);
        struct utcp *t;

        if (n < 0 && n != -EAGAIN && n != -EMSGSIZE)
            stream_net_lose(net);
        if (n < 0) {
            net->empty_us = reactor_now_us();
            break;
        }
        octets += (uint32_t)n;
        if (stream_loses(net))
            continue;
        stream_guess_read(net, (size_t)n, note.checked);
        t = utcp_host_input(&net->host, net->packet, (uint32_t)n, note.checked, reactor_now_us());
        net->guess.length = 0;
        if (t)
            stream_net_touch(net, container_of(t, struct rddp_stream, tcp));
    }
    if (!net->batch)
        return;
    stream_net_settle_touched(net);
    stream_net_pump_host(net);
}

static void stream_net_on_packets(struct watch *watch, uint32_t events)
{
    (void)events;
    stream_net_receive(container_of(watch, struct rddp_stream_net, watch));
}

static int open_device(struct rddp_stream_net *net)
{
    const struct rddp_stream_net_attr *attr = &net->attr;

    net->fd = tun_set_up(attr->device, attr->neighbor, attr->prefix, attr->mtu, attr->checksums ? 0 : TUN_CHECKSUMS,
                         &net->before);
    if (net->fd < 0)
        return net->fd;
    return attr->address ? tun_check_route(&net->before, attr->address) : 0;
}

static int check_attr(const struct rddp_stream_net_attr *attr)
{
    bool v6 = attr->neighbor && attr->neighbor->sa_family == AF_INET6;

    if (attr->address && attr->address->sa_family != AF_INET && attr->address->sa_family != AF_INET6)
        return -EINVAL;
    if (attr->mtu < MTU_MIN || attr->mtu > MTU_MAX || attr->window < WINDOW_MIN || attr->window > UTCP_WINDOW_MAX ||
        attr->window_max > UTCP_WINDOW_MAX || !attr->streams || !attr->option_kind || attr->lose > STREAM_CHANCES ||
        (attr->device && strlen(attr->device) >= IFNAMSIZ))
        return -EINVAL;
    if (attr->neighbor && ((!v6 && attr->neighbor->sa_family != AF_INET) || attr->prefix > (v6 ? 128 : 32)))
        return -EINVAL;
    return 0;
}

static int stream_net_init_host(struct rddp_stream_net *net)
{
    struct utcp_host_buffers buffers = {net->bucket, net->half, STREAM_BUCKETS, STREAM_HALVES};
    struct utcp_host_attr attr = {.quiet = false};

    utcp_attr_default(&attr.tcp);
    attr.tcp.mtu = net->attr.mtu;
    attr.tcp.window = net->attr.window;
    attr.tcp.window_max = net->attr.window_max;
    attr.tcp.option_kind = net->attr.no_option ? 0 : net->attr.option_kind;
    attr.tcp.partial = !net->attr.checksums;
    if (getrandom(attr.key, sizeof(attr.key), 0) != sizeof(attr.key) ||
        getrandom(&net->next_port, sizeof(net->next_port), 0) != sizeof(net->next_port))
        return -EAGAIN;
    utcp_host_init(&net->host, &attr, &buffers, &host_user, net);
    return 0;
}

static void stream_net_fini(struct rddp_stream_net *net)
{
    bool is_ours = reactor_is_ours(&net->reactor);

    if (net->timer.fire)
        reactor_forget_timer(&net->reactor, &net->timer);
    if (net->is_watched)
        reactor_unwatch(&net->reactor, &net->watch);
    reactor_fini(&net->reactor);
    if (net->fd >= 0) {
        tun_put_back(&net->before);
        if (is_ours)
            close(net->fd);
    }
    descriptors_part(net->joined);
    free(net);
}

int stream_net_watch(struct rddp_stream_net *net)
{
    int error = net->is_watched || net->is_gone ? 0 : reactor_watch(&net->reactor, &net->watch, EPOLLIN);

    net->is_watched = !error && !net->is_gone;
    return error;
}

static int stream_net_init(struct rddp_stream_net *net)
{
    int error = reactor_init(&net->reactor);

    if (!error)
        error = stream_net_init_host(net);
    if (!error)
        error = open_device(net);
    if (!error)
        error = reactor_add_timer(&net->reactor, &net->timer);
    if (error)
        return error;
    net->timer.fire = stream_net_on_host_timer;
    net->watch = (struct watch){.fd = net->fd, .ready = stream_net_on_packets};
    return stream_net_watch(net);
}

struct rddp_stream_net *rddp_stream_net_open(const struct rddp_stream_net_attr *attr)
{
    struct rddp_stream_net *net = calloc(1, sizeof(*net));
    int error = net ? check_attr(attr) : -ENOMEM;

    error = error ? error : descriptors_join();
    if (error >= 0) {
        net->joined = error;
        net->attr = *attr;
        net->random = attr->lose_seed;
        net->fd = -1;
        error = stream_net_init(net);
        if (!error)
            return net;
        stream_net_fini(net);
    } else {
        free(net);
    }
    errno = -error;
    return NULL;
}

int rddp_stream_net_close(struct rddp_stream_net *net)
{
    struct rddp_stream *s = net->streams, *next;

    for (; s; s = s->next)
        if (s->accepted)
            return -EBUSY;
    for (s = net->streams; s; s = next) {
        next = s->next;
        rddp_stream_close(s);
    }
    stream_net_fini(net);
    return 0;
}

int rddp_stream_listen(struct rddp_stream_net *net, uint16_t port, uint32_t backlog)
{
    if (!port || !backlog)
        return -EINVAL;
    for (uint32_t i = 0; i < net->ports; i++)
        if (net->port[i].port == port)
            return -EADDRINUSE;
    if (net->ports == STREAM_PORTS)
        return -ENOSPC;
    net->port[net->ports].port = port;
    net->port[net->ports++].backlog = backlog;
    return 0;
}

struct rddp_stream *rddp_stream_accept(struct rddp_stream_net *net)
{
    struct rddp_stream *oldest = NULL;

    for (struct rddp_stream *s = net->streams; s; s = s->next)
        if (!s->accepted)
            oldest = s; /* new ones come first in the list */
    if (!oldest) {
        errno = EAGAIN;
        return NULL;
    }
    oldest->accepted = true;
    for (uint32_t i = 0; i < net->ports; i++)
        net->port[i].waiting -= net->port[i].port == oldest->port;
    return oldest;
}
