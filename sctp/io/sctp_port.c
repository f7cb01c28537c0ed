/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_port.c - an SCTP socket on a loop: distributes events to its associations and runs the timers of the stack. */
#include "sctp/io/sctp_port.h"

#include <errno.h>
#include <stdlib.h>

#include "endpoint/objects.h"

void sctp_port_use(struct sctp_port *port)
{
    port->users++;
}

void sctp_port_leave(struct sctp_port *port)
{
    struct reactor *reactor = &port->loop->reactor;

    if (--port->users)
        return;
    reactor_unwatch(reactor, &port->watch);
    reactor_forget_timer(reactor, &port->tick);
    port->socket->provider->close_socket(port->socket);
    free(port->silent);
    free(port);
}

void sctp_port_schedule(struct sctp_port *port, bool wait)
{
    const struct sctp_provider *provider = port->socket->provider;

    if (!provider->due || !provider->enter(port->socket, wait))
        return;
    reactor_set_timer(&port->loop->reactor, &port->tick, provider->due(port->socket));
    provider->leave(port->socket);
}

/* The port counts as used meanwhile, because the last association may leave it. */
void sctp_port_drive(struct sctp_port *port)
{
    struct sctp_socket *socket = port->socket;
    const struct sctp_provider *provider = socket->provider;
    struct sctp_assoc *sctp;
    void *owner;

    sctp_port_use(port);
    provider->drive(socket);
    while (port->listener && (sctp = provider->accept(socket)))
        port->arrived(port->listener, port, sctp);
    while ((owner = provider->ready(socket)))
        port->turn(owner);
    sctp_port_schedule(port, true);
    sctp_port_leave(port);
}

static void on_readable(struct watch *watch, uint32_t events)
{
    (void)events;
    sctp_port_drive(container_of(watch, struct sctp_port, watch));
}

static void on_tick(struct timer *timer, uint64_t now_us)
{
    (void)now_us;
    sctp_port_drive(container_of(timer, struct sctp_port, tick));
}

int sctp_port_open(struct loop *loop, const struct sctp_provider *provider, const struct sockaddr *local,
                   socklen_t length, const struct sctp_attr *attr, void (*turn)(void *owner), struct sctp_port **out,
                   const char **why)
{
    struct sctp_port *port = calloc(1, sizeof(*port));
    int error = port ? provider->open(local, length, attr, &port->socket, why) : -ENOMEM;

    if (error)
        goto no_port;
    *port = (struct sctp_port){.socket = port->socket, .loop = loop, .users = 1, .turn = turn};
    port->watch = (struct watch){.fd = port->socket->fd, .ready = on_readable};
    port->tick.fire = on_tick;
    error = reactor_add_timer(&loop->reactor, &port->tick);
    if (error)
        goto no_timer;
    error = reactor_watch(&loop->reactor, &port->watch, EPOLLIN);
    if (error)
        goto no_watch;
    sctp_port_schedule(port, true);
    *out = port;
    return 0;

no_watch:
    reactor_forget_timer(&loop->reactor, &port->tick);
no_timer:
    provider->close_socket(port->socket);
no_port:
    free(port);
    return error;
}
