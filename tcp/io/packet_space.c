/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_space.c - a device has as many links as it may: the one that is missed least gives way to a new one. Otherwise
 * peers that say nothing would keep everybody else out. */
#include "endpoint/objects.h"
#include "tcp/io/packet_device.h"

/* In this order they are given up. */
enum worth {
    WORTH_OVER,    /* in TIME-WAIT */
    WORTH_GONE,    /* the application is done with it, but the peer has not acknowledged the end */
    WORTH_STARTUP, /* the peer has connected, and has not asked for anything */
    WORTH_MORE,
};

/* What got packets of this batch is looked at later. */
static enum worth worth_of(const struct packet_link *l)
{
    const struct endpoint *endpoint = l->link.owner;

    if (l->is_new || l->is_touched)
        return WORTH_MORE;
    if (!endpoint)
        return l->tcp.state == UTCP_TIME_WAIT ? WORTH_OVER : WORTH_GONE;
    if (!endpoint->listener)
        return endpoint->qp ? WORTH_MORE : WORTH_GONE;
    return endpoint->life->state == CONN_WAIT_REQUEST ? WORTH_STARTUP : WORTH_MORE;
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
    loop_forget_timer(&device->progress->loop, &l->timer);
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
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
    if (l->tcp.state != UTCP_TIME_WAIT)
        utcp_abort(&l->tcp);
    packet_flush(l);
    packet_drop(l);
}

bool packet_make_space(struct rddp_device *device)
{
    struct packet_link *least = NULL;
    enum worth worth = WORTH_MORE;

    if (device->link_count < device->attr.connections)
        return true;
    for (struct packet_link *l = device->links; l; l = l->next) {
        enum worth its = worth_of(l);

        if (its < worth || (least && its == worth && silent_since_us(l) <= silent_since_us(least))) {
            least = l;
            worth = its;
        }
    }
    if (least)
        give_up(least);
    return least;
}
