/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handoff.c - the kernel's TCP connects, accepts and carries the start-up; then its connection is taken over. */
#include "tcp/io/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "endpoint/transfer.h"
#include "tcp/io/hindrance.h"
#include "tcp/io/link_tcp.h"
#include "tcp/io/packet_name.h"
#include "tcp/io/repair.h"

int handoff_check(void)
{
    return repair_allowed();
}

/* The same socket under another number: closing the link leaves it open. */
static int keep_place(struct packet_link *l, const struct link *link)
{
    l->place_fd = fcntl(link_tcp_fd(link), F_DUPFD_CLOEXEC, 0);
    return l->place_fd < 0 ? -errno : 0;
}

static int name_ends(struct packet_link *l, struct link *link, struct utcp_handshake *shake)
{
    struct sockaddr_storage local, peer;
    struct sockaddr_in6 v6;
    int error;

    link_names(link, &local, &peer);
    error = packet_name_from(&shake->local, (struct sockaddr *)&local, sizeof(local));
    if (!error)
        error = packet_name_from(&shake->remote, (struct sockaddr *)&peer, sizeof(peer));
    memcpy(&v6, &peer, sizeof(v6));
    l->scope = peer.ss_family == AF_INET6 ? v6.sin6_scope_id : 0;
    return error;
}

/* The place of its stream is where the connection has read to: what the kernel has acknowledged behind that was either
 * read from it, and waits in the stage, or is read here. */
static void adopt(struct packet_link *l, struct utcp_handshake *shake, const struct repair_state *state,
                  uint32_t received)
{
    uint64_t now_us = reactor_now_us();

    shake->send_next = state->send_next;
    shake->receive_next = state->receive_next - received;
    shake->window = state->window;
    shake->edge = state->edge + received;
    shake->mss = state->mss;
    shake->scale = state->scale;
    shake->own_scale = state->own_scale;
    shake->sack = state->sack;
    shake->stamps = state->stamps;
    shake->ecn = state->ecn;
    if (state->mtu && state->mtu < l->tcp.attr.mtu)
        l->tcp.attr.mtu = state->mtu;
    l->tcp.attr.stamp_offset = state->stamp - (uint32_t)(now_us / 1000);
    utcp_adopt(&l->tcp, shake, now_us);
    utcp_adopt_received(&l->tcp, received, state->rtt_us, now_us);
    l->link.is_up = true;
}

static int handoff_fill(struct packet_link *l, struct endpoint *endpoint)
{
    struct utcp_handshake shake = {.option = false};
    struct repair_state state;
    uint32_t staged = transfer_staged(endpoint);
    int error = name_ends(l, endpoint->link, &shake);

    if (!error)
        error = keep_place(l, endpoint->link);
    if (error)
        return error;
    error = repair_take(l->place_fd, &state, l->in + staged, (uint32_t)(l->in_octets / 2));
    if (error)
        return error;
    transfer_unstage(endpoint, l->in);
    l->tcp.attr.hops = repair_hops(l->place_fd, utcp_is_v4(&shake.remote));
    adopt(l, &shake, &state, staged + state.received);
    return 0;
}

/* A connection of our own would go on without what the application has asked of the kernel. */
static int keeps_to_kernel(const struct endpoint *endpoint)
{
    const char *hindrance = hindrance_of(link_tcp_fd(endpoint->link));

    if (hindrance)
        context_log(endpoint->loop->context, RDDP_LOG_WARN, "its socket has %s, which cannot be handed off", hindrance);
    return hindrance ? -EOPNOTSUPP : 0;
}

static int handoff_take(struct successor *successor, struct endpoint *endpoint, struct link **link)
{
    struct rddp_device *device = container_of(successor, struct rddp_device, successor);
    struct sockaddr_storage local = endpoint->local;
    struct packet_link *l = packet_add(device);
    struct utcp_name name;
    int error = l ? keeps_to_kernel(endpoint) : -errno;

    if (!error)
        error = packet_name_from(&name, (struct sockaddr *)&local, sizeof(local));
    /* Packets are seen here before the kernel stops looking at them. */
    if (!error)
        error = rawip_add_port(&device->rawip, name.port);
    if (error) {
        if (l)
            packet_drop(l);
        return error;
    }
    error = handoff_fill(l, endpoint);
    if (error) {
        if (l->place_fd >= 0)
            close(l->place_fd);
        l->place_fd = -1;
        rawip_remove_port(&device->rawip, name.port);
        packet_drop(l);
        return error;
    }
    l->is_settling = device->settles = true;
    utcp_host_add(&device->host, &l->tcp);
    *link = &l->link;
    return 0;
}

void handoff_init(struct rddp_device *device)
{
    device->successor.take = handoff_take;
}

static const struct endpoint *first_begun(const struct rddp_device *device, const struct endpoint *endpoint)
{
    while (endpoint && endpoint->successor != &device->successor)
        endpoint = endpoint->next;
    return endpoint;
}

bool handoff_is_begun(const struct rddp_device *device)
{
    return first_begun(device, device->loop->endpoints);
}

bool handoff_is_awaited(const struct rddp_device *device)
{
    const struct endpoint *endpoint = first_begun(device, device->loop->endpoints);

    while (endpoint && !endpoint->qp && !endpoint_is_unanswered(endpoint))
        endpoint = first_begun(device, endpoint->next);
    return endpoint;
}
