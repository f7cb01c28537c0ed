/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arrivals.c - gives accepted connections to the loops in turn. */
#include "drive/arrivals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint/attr.h"
#include "endpoint/endpoint_link.h"
#include "loop/descriptors.h"
#include "tcp/io/link_tcp.h"

enum { LISTENER_PENDING = 4096 }; /* connections of one listener that were not answered */

/* Makes an endpoint of an accepted link, by the driver of its loop. `link` may be NULL with errno set: the connection
 * is dropped. */
static void take_link(struct loop *loop, struct rddp_listener *listener, struct link *link)
{
    struct conn_attr engine = wire_conn_attr(&listener->wire);
    struct endpoint *endpoint = link ? endpoint_new(loop, link) : NULL;

    if (!endpoint) {
        listener->pending--;
        context_log(listener->context, RDDP_LOG_ERROR, "refused a connection: %s", strerror(errno));
        return;
    }
    endpoint->listener = listener;
    endpoint->successor = packet_successor(listener->wire.device);
    conn_init_passive(&endpoint->conn, wire_named(listener->wire.wire), &engine, reactor_now_us());
    link_attach(link);
    if (link->kind->in_order)
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    else
        endpoint_link_event(endpoint, LINK_READABLE); /* data may have arrived with the handshake */
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

static void take_connection(struct loop *loop, struct rddp_listener *listener, int fd)
{
    take_link(loop, listener, link_tcp_new(&loop->reactor, fd, true, listener->wire.aligned));
}

/* Appends an accepted connection to the list of another loop and wakes that loop. */
static void send_on(struct loop *to, struct rddp_listener *listener, int fd)
{
    struct arrival *arrival = malloc(sizeof(*arrival)), *last;

    if (!arrival) {
        close(fd);
        listener->pending--;
        context_log(listener->context, RDDP_LOG_ERROR, "out of memory: refused a connection");
        return;
    }
    *arrival = (struct arrival){.listener = listener, .fd = fd};
    spin_lock(&to->arrivals_lock);
    for (last = to->arrivals; last && last->next; last = last->next)
        continue;
    if (last)
        last->next = arrival;
    else
        to->arrivals = arrival;
    spin_unlock(&to->arrivals_lock);
    loop_wake(to);
}

struct arrival *arrival_take(struct loop *loop, const struct rddp_listener *listener)
{
    struct arrival *arrival, *before = NULL;

    spin_lock(&loop->arrivals_lock);
    for (arrival = loop->arrivals; arrival && listener && arrival->listener != listener; arrival = arrival->next)
        before = arrival;
    if (arrival && before)
        before->next = arrival->next;
    else if (arrival)
        loop->arrivals = arrival->next;
    spin_unlock(&loop->arrivals_lock);
    return arrival;
}

void arrivals_adopt(struct loop *loop)
{
    struct arrival *arrival;

    while (loop->arrivals && (arrival = arrival_take(loop, NULL))) {
        if (arrival->listener->watch.fd < 0) {
            descriptor_close(arrival->fd); /* the listener belongs to the parent, and so does this connection */
            arrival->listener->pending--;
        } else {
            take_connection(loop, arrival->listener, arrival->fd);
        }
        free(arrival);
    }
}

void arrival_give(struct rddp_listener *listener, int fd)
{
    bool stays = listener->wire.device; /* with the loop of its device */
    struct loop *loop = stays ? listener->loop : loop_next(listener->context);

    if (listener->pending >= LISTENER_PENDING) {
        context_log(listener->context, RDDP_LOG_WARN, "refused a connection: %u others already wait for an answer",
                    listener->pending);
        close(fd);
        return;
    }
    listener->pending++;
    if (loop == listener->loop)
        take_connection(loop, listener, fd);
    else
        send_on(loop, listener, fd);
}

bool arrivals_have_space(const struct packet_port *port)
{
    return container_of(port, struct rddp_listener, port)->pending < LISTENER_PENDING;
}

void arrival_from_device(struct packet_port *port, struct link *link)
{
    struct rddp_listener *listener = container_of(port, struct rddp_listener, port);

    listener->pending++;
    take_link(listener->loop, listener, link);
}
