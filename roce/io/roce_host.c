/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_host.c - receives packets on a loop, gives them to their queue pairs, and passes on what belongs to other
 * processes. */
#include "roce/io/roce_host.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "loop/descriptors.h"
#include "roce/bth.h"
#include "roce/rcm_message.h"

enum {
    ALL_AT_ONCE = 64,   /* polls of a socket that rests, of which one empties it */
    MORE_OCTETS = 8192, /* after such a batch more is likely to wait */
};

/* --- who is it for? ---------------------------------------------------------------------------------------------- */

static struct roce_port *port_of(const struct roce_host *host, uint32_t number)
{
    struct roce_port *port = host->ports;

    while (port && port->own.number != number >> ROCE_SLOT_BITS)
        port = port->next;
    return port;
}

static uint32_t count_packets(const struct roce_run *run)
{
    return (run->octets + run->each - 1) / run->each;
}

static void give_run(struct roce_host *host, uint32_t number, const struct roce_run *run)
{
    struct roce_port *port = number == RCM_QPN ? NULL : port_of(host, number);
    struct roce_user *user = port ? port->slot[number & (ROCE_SLOTS - 1)].user : NULL;

    if (number == RCM_QPN && host->manager) {
        host->manager->take(host->manager, run);
    } else if (user) {
        user->take(user, run);
    } else if (!port && run->socket == &host->shared && number >> ROCE_SLOT_BITS >= ROCE_PORT_MIN) {
        roce_passing_put(&host->passing, (uint16_t)(number >> ROCE_SLOT_BITS), run);
        host->counters.passed += count_packets(run);
    } else {
        host->counters.unowned += count_packets(run);
    }
}

/* Cuts what has arrived together into runs for one queue pair each. */
static void dispatch(struct roce_host *host, const struct roce_run *all)
{
    uint32_t at = 0;

    while (all->octets - at >= BTH_OCTETS + ICRC_OCTETS && all->each >= BTH_OCTETS + ICRC_OCTETS) {
        uint32_t number = bth_destination(all->at + at), end = at;
        struct roce_run run;

        while (all->octets - end >= BTH_OCTETS + ICRC_OCTETS && bth_destination(all->at + end) == number)
            end = all->octets - end > all->each ? end + all->each : all->octets;
        if (!at && end == all->octets) { /* as almost always */
            give_run(host, number, all);
            return;
        }
        run = *all;
        run.at += at;
        run.octets = end - at;
        give_run(host, number, &run);
        at = end;
    }
    host->counters.malformed += at < all->octets;
}

/* --- receiving ---------------------------------------------------------------------------------------------------- */

static void receive_batch(struct roce_socket *socket, const struct udp_batch *batch)
{
    struct roce_run run = {
        .at = batch->at,
        .octets = batch->octets,
        .each = batch->each,
        .from_port = roce_address_port(&batch->from),
        .to_port = socket->number,
        .scope = roce_address_scope(&batch->from),
        .socket = socket,
    };

    memcpy(run.to.octets, batch->to, sizeof(run.to.octets));
    if (roce_address_read(&batch->from, &run.from))
        dispatch(socket->host, &run);
}

void roce_host_begin(struct roce_host *host)
{
    host->driving++;
}

void roce_host_end(struct roce_host *host)
{
    roce_passing_flush(&host->passing);
    host->driving--;
    roce_host_sweep(host);
}

static void drive_turns(struct roce_socket *socket, unsigned turns)
{
    struct roce_host *host = socket->host;
    struct udp_batch batch[UDP_BUFFERS];
    int n = UDP_BUFFERS;

    roce_host_begin(host);
    for (; turns && n == UDP_BUFFERS; turns--) {
        n = udp_recv(&socket->udp, &host->stage, batch);
        for (int i = 0; i < n; i++)
            receive_batch(socket, &batch[i]);
    }
    roce_host_end(host);
}

void roce_socket_drive(struct roce_socket *socket)
{
    drive_turns(socket, ROCE_TURNS);
}

void roce_socket_poll(struct roce_socket *socket)
{
    struct roce_host *host = socket->host;
    struct udp_batch batch;

    if (socket->watch.rests && !(++socket->polls % ALL_AT_ONCE)) { /* no round asks it */
        roce_socket_drive(socket);
        return;
    }
    if (udp_recv_one(&socket->udp, &host->stage, &batch) <= 0)
        return;
    roce_host_begin(host);
    receive_batch(socket, &batch);
    if (socket->watch.rests && batch.octets >= MORE_OCTETS)
        drive_turns(socket, 1);
    roce_host_end(host);
}

void roce_host_take_passed(struct roce_host *host, int fd)
{
    ssize_t n = 0;

    roce_host_begin(host);
    for (unsigned turn = 0; turn < ROCE_TURNS && n >= 0; turn++) {
        struct roce_run run;
        uint32_t at = 0;

        n = roce_passing_receive(fd, host->stage.buffer, PASSING_OCTETS);
        while (n > 0 && roce_passing_read(host->stage.buffer, (uint32_t)n, &at, &run)) {
            host->counters.received += count_packets(&run);
            dispatch(host, &run);
        }
    }
    roce_host_end(host);
}

/* The work for a length is kept until another length of the same place comes. */
bool roce_host_verifies(struct roce_host *host, const struct icrc_path *path, uint32_t place, const uint8_t *p,
                        uint32_t octets)
{
    return icrc_is_right_at(path, (uint16_t)place, p, octets, &host->space[octets / 4 % ROCE_SPACES]);
}

/* --- sockets ------------------------------------------------------------------------------------------------------ */

static void roce_host_on_readable(struct watch *watch, uint32_t events)
{
    (void)events;
    roce_socket_drive(container_of(watch, struct roce_socket, watch));
}

/* Packets that leave as a batch are numbered, those that leave alone are not. */
static void leaves_alone(const struct sockaddr_storage *to, uint8_t *p, uint32_t octets, uint32_t place)
{
    struct roce_address address;

    if (roce_address_read(to, &address) && roce_address_is_v4(&address))
        icrc_renumber(p, octets, (uint16_t)place, 0);
}

static int open_udp(struct udp *udp, sa_family_t family, uint16_t port, unsigned options)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};

    options |= UDP_UNFRAGMENTED | UDP_BOTH_FAMILIES | UDP_WITHOUT_CHECKSUM;
    return family == AF_INET6 ? udp_open_with(udp, (struct sockaddr *)&v6, sizeof(v6), options)
                              : udp_open_with(udp, (struct sockaddr *)&v4, sizeof(v4), options);
}

static int socket_begin(struct roce_host *host, struct roce_socket *socket)
{
    struct sockaddr_storage local;
    int error;

    udp_local(&socket->udp, &local);
    socket->host = host;
    socket->number = roce_address_port(&local);
    socket->udp.alone = leaves_alone;
    socket->watch = (struct watch){.fd = socket->udp.fd, .ready = roce_host_on_readable};
    error = reactor_watch(&host->loop->reactor, &socket->watch, EPOLLIN);
    if (error)
        udp_close(&socket->udp);
    return error;
}

int roce_socket_open(struct roce_host *host, struct roce_socket *socket, uint16_t port, unsigned options)
{
    int error = open_udp(&socket->udp, AF_INET6, port, options);

    if (error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL)
        error = open_udp(&socket->udp, AF_INET, port, options);
    return error ? error : socket_begin(host, socket);
}

int roce_socket_open_beside(struct roce_host *host, struct roce_socket *socket, const struct roce_socket *own,
                            const struct roce_address *address)
{
    struct sockaddr_storage local;
    int error;

    roce_address_name(address, 0, 0, &local);
    error = udp_open_beside(&socket->udp, &own->udp, &local, UDP_UNFRAGMENTED | UDP_WITHOUT_CHECKSUM);
    return error ? error : socket_begin(host, socket);
}

void roce_socket_close(struct roce_socket *socket)
{
    if (socket->udp.fd < 0)
        return;
    reactor_unwatch(&socket->host->loop->reactor, &socket->watch);
    udp_close(&socket->udp);
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static void drop_manager(struct roce_host *host)
{
    if (host->manager)
        host->manager->fini(host->manager);
    host->manager = NULL;
}

static void roce_host_free(struct roce_host *host)
{
    drop_manager(host);
    roce_passing_fini(&host->passing);
    free(host->stage.buffer);
    free(host);
}

/* Without port 4791 only those peers reach us that send to the port in our numbers. */
static void open_shared(struct roce_host *host)
{
    int error = roce_socket_open(host, &host->shared, ROCE_PORT, UDP_IN_GROUP);

    if (!error)
        return;
    host->shared.udp.fd = -1;
    context_log(
        host->loop->context, RDDP_LOG_WARN,
        "UDP port %u cannot be used (%s): only peers that are rddp, too, reach these queue pairs; another user's "
        "process or the kernel's rxe may have it",
        ROCE_PORT, strerror(-error));
}

int roce_host_get(struct loop *loop, struct roce_host **out)
{
    struct roce_host *host = loop->roce;
    int error;

    *out = host;
    if (host)
        return 0;
    host = calloc(1, sizeof(*host));
    if (!host)
        return -ENOMEM;
    host->loop = loop;
    host->shared.udp.fd = -1;
    host->stage.buffer = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_OCTETS);
    error = roce_passing_init(&host->passing);
    if (!error && !host->stage.buffer)
        error = -ENOMEM;
    if (error) {
        roce_host_free(host);
        return error;
    }
    open_shared(host);
    loop->roce = *out = host;
    return 0;
}

void roce_host_free_port(struct roce_port *port)
{
    free(port->kept.cell);
    free(port);
}

static void close_port(struct roce_port *port)
{
    struct reactor *reactor = &port->loop->reactor;

    while (port->homes)
        roce_socket_close(&port->home[--port->homes]);
    roce_socket_close(&port->own);
    if (port->passed.fd >= 0) {
        reactor_unwatch(reactor, &port->passed);
        descriptor_close(port->passed.fd);
    }
    pthread_mutex_destroy(&port->sending);
    roce_host_free_port(port);
}

/* How many ports are not in use? *others: is any in use? */
static uint32_t count_unused(const struct roce_host *host, bool *others)
{
    uint32_t count = 0;

    *others = false;
    for (const struct roce_port *port = host->ports; port; port = port->next) {
        *others |= port->used;
        count += !port->used;
    }
    return count;
}

/* Closes the ports that are not in use, and whose slots have rested until now. */
static void close_unused(struct roce_host *host, uint64_t now_us)
{
    struct roce_port **at = &host->ports, *port;

    while ((port = *at)) {
        if (port->used || port->rests_us > now_us) {
            at = &port->next;
            continue;
        }
        *at = port->next;
        close_port(port);
    }
}

void roce_host_sweep(struct roce_host *host)
{
    bool is_used;

    if (host->driving)
        return;
    if (count_unused(host, &is_used))
        close_unused(host, is_used ? reactor_now_us() : UINT64_MAX);
    if (host->ports)
        return;
    host->loop->roce = NULL;
    roce_socket_close(&host->shared);
    roce_host_free(host);
}

void roce_host_close(struct loop *loop)
{
    if (!loop->roce)
        return;
    drop_manager(loop->roce);
    roce_host_sweep(loop->roce);
}

/* The epoll set is the parent's, too, and was left before; the descriptors are copies. */
static void leave_fd(int *fd)
{
    if (*fd >= 0)
        descriptor_close(*fd);
    *fd = -1;
}

void roce_host_leave(struct loop *loop)
{
    struct roce_host *host = loop->roce;
    struct roce_port *port;

    if (!host)
        return;
    drop_manager(host);
    while ((port = host->ports)) {
        host->ports = port->next;
        port->host = NULL;
        udp_close(&port->own.udp);
        for (uint32_t i = 0; i < port->homes; i++)
            udp_close(&port->home[i].udp);
        leave_fd(&port->passed.fd);
        pthread_mutex_init(&port->sending, NULL);
        if (!port->used)
            close_port(port);
    }
    if (host->shared.udp.fd >= 0)
        udp_close(&host->shared.udp);
    roce_host_free(host);
    loop->roce = NULL;
}
