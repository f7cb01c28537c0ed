/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_port.c - opens ports, and slots of them for queue pairs. */
#include "roce/io/roce_port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <rddp/rddp.h>

#include "base/container.h"
#include "roce/io/roce_cm.h"
#include "roce/io/roce_host.h"

enum { PORT_TRIES = 64 }; /* ports whose name for passing on may be taken */

/* --- ports ------------------------------------------------------------------------------------------------------- */

static void on_passed(struct watch *watch, uint32_t events)
{
    struct roce_port *port = container_of(watch, struct roce_port, passed);

    (void)events;
    roce_host_take_passed(port->host, watch->fd);
}

/* Binds both sockets of a port. -EADDRINUSE: try another one. */
static int bind_port(struct roce_host *host, struct roce_port *port)
{
    int error = roce_socket_open(host, &port->own, 0, 0);

    if (error)
        return error;
    port->passed = (struct watch){.fd = -EADDRINUSE, .ready = on_passed};
    if (port->own.number >= ROCE_PORT_MIN)
        port->passed.fd = roce_passing_open(port->own.number);
    error = port->passed.fd < 0 ? port->passed.fd : reactor_watch(&host->loop->reactor, &port->passed, EPOLLIN);
    if (!error)
        return 0;
    if (port->passed.fd >= 0)
        close(port->passed.fd);
    roce_socket_close(&port->own);
    return error;
}

/* The memory for kept packets costs nothing before it is touched. */
static struct roce_port *roce_port_new(void)
{
    struct roce_port *port = calloc(1, sizeof(*port));
    void *memory = malloc(rc_pool_size(ROCE_KEPT));

    if (!port || !memory) {
        free(memory);
        free(port);
        return NULL;
    }
    rc_pool_init(&port->kept, memory, ROCE_KEPT);
    return port;
}

static int roce_port_make(struct roce_host *host, struct roce_port **out)
{
    struct roce_port *port = roce_port_new();
    int error = port ? -EADDRINUSE : -ENOMEM;

    for (unsigned i = 0; i < PORT_TRIES && error == -EADDRINUSE; i++)
        error = bind_port(host, port);
    if (error) {
        if (port)
            roce_host_free_port(port);
        return error;
    }
    port->host = host;
    port->loop = host->loop;
    pthread_mutex_init(&port->sending, NULL);
    for (unsigned i = 0; i < ROCE_SLOTS; i++)
        port->slot[i].port = port;
    port->next = host->ports;
    host->ports = *out = port;
    return 0;
}

struct roce_socket *roce_port_home(struct roce_port *port, const struct roce_address *local)
{
    int error;

    for (uint32_t i = 0; i < port->homes; i++)
        if (!memcmp(port->home[i].udp.at, local->octets, sizeof(local->octets)))
            return &port->home[i];
    if (!port->host || port->homes == ROCE_HOMES || port->has_no_more || roce_address_is_link_local(local))
        return &port->own;
    error = roce_socket_open_beside(port->host, &port->home[port->homes], &port->own, local);
    port->has_no_more = error && error != -EADDRNOTAVAIL;
    return error ? &port->own : &port->home[port->homes++];
}

int roce_host_open(struct loop *loop, struct roce_host **out)
{
    struct roce_host *host;
    struct roce_port *port;
    int error = roce_host_get(loop, &host);

    if (error)
        return error;
    if (!host->ports)
        error = roce_port_make(host, &port);
    if (!error && !host->manager)
        error = roce_cm_attach(host);
    if (error)
        roce_host_sweep(host);
    else
        *out = host;
    return error;
}

void roce_port_count(const struct roce_port *port, struct rddp_ib_counters *counters)
{
    const struct roce_host *host = port->host;

    counters->dropped = port->own.udp.dropped;
    for (uint32_t i = 0; i < port->homes; i++)
        counters->dropped += port->home[i].udp.dropped;
    if (!host)
        return;
    counters->unowned = host->counters.unowned + host->passing.unowned;
    counters->passed = host->counters.passed;
    counters->handed = host->counters.received;
}

/* --- slots ------------------------------------------------------------------------------------------------------- */

/* A free slot of this port, searched from a random one on. NULL: all are in use, or rest. */
static struct roce_slot *find_slot(struct roce_port *port, uint8_t from, uint64_t now_us)
{
    for (unsigned i = 0; i < ROCE_SLOTS; i++) {
        struct roce_slot *slot = &port->slot[(from + i) % ROCE_SLOTS];

        if (slot->free_us <= now_us)
            return slot;
    }
    return NULL;
}

/* The one that has rested longest. NULL: all are in use. */
static struct roce_slot *find_resting(const struct roce_host *host)
{
    struct roce_slot *found = NULL;

    for (struct roce_port *port = host->ports; port; port = port->next)
        for (unsigned i = 0; i < ROCE_SLOTS; i++) {
            struct roce_slot *slot = &port->slot[i];

            if (slot->free_us != UINT64_MAX && (!found || slot->free_us < found->free_us))
                found = slot;
        }
    return found;
}

/* Ports whose slots rest keep descriptors: if there are no more of those, a slot rests no longer. */
static int find_any(struct roce_host *host, struct roce_slot **slot)
{
    uint64_t now_us = reactor_now_us();
    struct roce_port *port;
    uint8_t from;
    int error;

    if (getrandom(&from, sizeof(from), 0) != sizeof(from))
        return -EAGAIN;
    *slot = NULL;
    for (port = host->ports; port && !*slot; port = port->next)
        *slot = find_slot(port, from, now_us);
    if (*slot)
        return 0;
    error = roce_port_make(host, &port);
    *slot = error == -EMFILE ? find_resting(host) : !error ? find_slot(port, from, now_us) : NULL;
    return *slot ? 0 : error;
}

int roce_slot_open(struct loop *loop, struct roce_slot **slot)
{
    struct roce_host *host;
    int error = roce_host_open(loop, &host);

    if (error)
        return error;
    error = find_any(host, slot);
    if (error) {
        roce_host_sweep(host);
        return error;
    }
    (*slot)->free_us = UINT64_MAX;
    (*slot)->port->used++;
    return 0;
}

int roce_slot_join(const struct roce_slot *slot, struct loop *loop)
{
    struct roce_host *host;

    if (!slot->port->host)
        return -ENODEV;
    return slot->port->loop == loop ? roce_host_open(loop, &host) : -EXDEV;
}

void roce_slot_close(struct roce_slot *slot)
{
    struct roce_port *port = slot->port;

    slot->user = NULL;
    slot->free_us = port->rests_us = reactor_now_us() + ROCE_REST_US;
    port->used--;
    if (port->host)
        roce_host_sweep(port->host);
    else if (!port->used)
        roce_host_free_port(port);
}
