/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_space.c - evicts the least valuable link of a full device to admit a new one, so that silent peers do not keep
 * out all others. */
#include "endpoint/objects.h"
#include "tcp/io/packet_device.h"

/* In this order they are given up. */
enum eviction {
    EVICT_CLOSED,  /* in TIME-WAIT */
    EVICT_LINGERS, /* the application is done with it, but the peer has not acknowledged the end */
    EVICT_STARTUP, /* the peer has connected, and has not asked for anything */
    EVICT_NEVER,
};

/* Links with packets in this batch are settled later. */
static enum eviction eviction_of(const struct packet_link *l)
{
    const struct endpoint *endpoint = l->link.owner;

    if (l->is_new || l->is_touched)
        return EVICT_NEVER;
    if (!endpoint)
        return l->tcp.state == UTCP_TIME_WAIT ? EVICT_CLOSED : EVICT_LINGERS;
    if (!endpoint_is_unanswered(endpoint))
        return endpoint->qp ? EVICT_NEVER : EVICT_LINGERS;
    return endpoint->life->state == CONN_WAIT_REQUEST ? EVICT_STARTUP : EVICT_NEVER;
}

/* Since when the peer has been silent. */
static uint64_t silent_since_us(const struct packet_link *l)
{
    return l->tcp.rx.last_us;
}

static void take_out(struct packet_link **list, struct packet_link *l)
{
    while (*list != l)
        list = &(*list)->next;
    *list = l->next;
}

void packet_drop(struct packet_link *l)
{
    struct rddp_device *device = l->device;

    if (l->place_fd >= 0)
        rawip_remove_port(&device->rawip, l->tcp.local.port);
    utcp_host_remove(&device->host, &l->tcp);
    reactor_forget_timer(&device->loop->reactor, &l->timer);
    take_out(&device->links, l);
    device->link_count--;
    packet_link_free(l);
}

static void give_up(struct packet_link *l)
{
    struct endpoint *endpoint = l->link.owner;

    if (endpoint) {
        endpoint_hold(endpoint);
        endpoint_abort(endpoint);
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    if (l->tcp.state != UTCP_TIME_WAIT)
        utcp_abort(&l->tcp);
    packet_flush(l);
    packet_drop(l);
}

bool packet_make_space(struct rddp_device *device)
{
    struct packet_link *least = NULL;
    enum eviction first = EVICT_NEVER;

    if (device->link_count < device->attr.connections)
        return true;
    for (struct packet_link *l = device->links; l; l = l->next) {
        enum eviction its = eviction_of(l);

        if (its < first || (least && its == first && silent_since_us(l) <= silent_since_us(least))) {
            least = l;
            first = its;
        }
    }
    if (least)
        give_up(least);
    return least;
}
