/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_port.h - the UDP sockets of RoCE on a loop, and which queue pair each packet is for.
 *
 * A host has one UDP port 4791 and many processes. A queue pair number says where the queue pair lives: its upper 16
 * bits are a UDP port of its process, the lower eight a slot there. So each process opens ports of its own, with 256
 * slots each, and one of the sockets that share port 4791. Who receives there what belongs to another passes it on to
 * the owner of the number (roce_passing.h). Peers of our own answer to the port in the number, and nothing is passed
 * on.
 *
 * All of it is guarded by the lock of the loop, except where marked. */
#ifndef RDDP_ROCE_IO_ROCE_PORT_H
#define RDDP_ROCE_IO_ROCE_PORT_H

#include "endpoint/loop.h"
#include "loop/udp.h"
#include "roce/io/roce_address.h"
#include "roce/io/roce_passing.h"
#include "roce/rc_kept.h"

struct rddp_ib_counters;
struct roce_host;

enum {
    ROCE_SLOTS = 256,        /* queue pairs of a port */
    ROCE_SLOT_BITS = 8,      /* of a queue pair number */
    ROCE_PORT_MIN = 1024,    /* numbers below are those of other implementations */
    ROCE_REST_US = 10000000, /* a slot rests that long before it is used again: the life of old packets */
    ROCE_TURNS = 8,          /* calls of a turn that receive */
    ROCE_HOMES = 4,          /* sockets of a port that are bound to one address of this host each */
    ROCE_KEPT = 1024,        /* packets that the queue pairs of a port keep behind gaps: 4 MiB, touched when needed */
    ROCE_SPACES = 8,         /* packet lengths for which the work on identifications is kept */
};

struct roce_socket {
    struct roce_host *host;
    struct udp udp; /* fd is -1: there is none */
    struct watch watch;
    uint16_t number; /* its UDP port */
    unsigned polls;  /* while it was out of the epoll set */
};

/* Packets for one queue pair that arrived together from one peer; all but the last have `each` octets. */
struct roce_run {
    const uint8_t *at;
    uint32_t octets, each;
    struct roce_address from, to; /* as the sender addressed them */
    uint16_t from_port, to_port;
    uint32_t scope;             /* of a link-local address of the sender */
    struct roce_socket *socket; /* that they came in by; NULL: they were passed on */
};

/* Who takes the packets of a slot. By the driver. */
struct roce_user {
    void (*take)(struct roce_user *user, const struct roce_run *run);
};

/* Who takes the packets of queue pair 1, those of the connection manager. By the driver; fini() frees it. */
struct roce_manager {
    void (*take)(struct roce_manager *manager, const struct roce_run *run);
    void (*fini)(struct roce_manager *manager);
};

struct roce_slot {
    struct roce_port *port;
    struct roce_user *user; /* NULL: its packets are dropped */
    uint64_t free_us;       /* when it may be used again; UINT64_MAX: it is in use */
};

struct roce_port {
    struct roce_host *host; /* NULL: fork() left it to the parent */
    struct loop *loop;
    struct roce_socket own;
    struct roce_socket home[ROCE_HOMES]; /* beside it, for the first addresses that connections have: the kernel has */
    uint32_t homes;                      /* less to look up and to say for each packet */
    bool has_no_more;                    /* one could not be opened: no other one is tried */
    struct watch passed;                 /* a socket for what others pass on */
    struct rc_pool kept;                 /* packets that arrived behind a gap; its memory is owned */
    pthread_mutex_t sending; /* guards packets that wait to leave by own and home; any thread, see roce_port_enter() */
    uint32_t used;           /* slots in use, and a manager that sends from here */
    uint64_t rests_us;       /* until when the slot rests that was closed last */
    struct roce_port *next;
    struct roce_slot slot[ROCE_SLOTS];
};

/* Counted since the first port was opened. */
struct roce_counters {
    uint64_t unowned;   /* packets for a queue pair that does not exist */
    uint64_t malformed; /* without whole headers */
    uint64_t passed;    /* passed on to other processes */
    uint64_t received;  /* passed on to us */
};

struct roce_host {
    struct loop *loop;
    struct roce_socket shared; /* at port 4791 */
    struct roce_port *ports;
    struct roce_manager *manager; /* owned; NULL: its packets are dropped */
    unsigned driving;             /* ports stay meanwhile */
    struct udp_stage stage;
    struct roce_passing passing;
    struct roce_counters counters;
    struct icrc_space space[ROCE_SPACES];
};

/* A host of this loop, with a port and the connection manager. By the driver. Returns 0 or the errors of
 * roce_slot_open(). It is gone when no slot and no user of the manager is left: see roce_host_sweep(). */
int roce_host_open(struct loop *loop, struct roce_host **host);

/* Opens a slot with a number that cannot be guessed, on this loop. By the driver. Returns 0 and the slot; -ENOMEM;
 * -EMFILE; -EAGAIN: no random number; or what the system says of a socket. A port stays until none of its slots rests,
 * since another one could get the same numbers, or until the host is gone. */
int roce_slot_open(struct loop *loop, struct roce_slot **slot);
void roce_slot_close(struct roce_slot *slot);

/* The connection manager of this loop is to connect the queue pair of the slot. Returns 0; -EXDEV: the slot is another
 * loop's; -ENODEV: fork() left its sockets to the parent; or the errors of roce_host_open(). */
int roce_slot_join(const struct roce_slot *slot, struct loop *loop);

/* The socket of the port by which packets from this address leave, and by which those to it arrive from now on. By the
 * driver. It stays as long as the port. */
struct roce_socket *roce_port_home(struct roce_port *port, const struct roce_address *local);

/* Its queue pair number, which never changes. */
static inline uint32_t roce_slot_number(const struct roce_slot *slot)
{
    return (uint32_t)slot->port->own.number << ROCE_SLOT_BITS | (uint32_t)(slot - slot->port->slot);
}

/* Takes packets that have arrived at this socket. By the driver, who holds no endpoint. roce_socket_poll(): for a
 * poller, and only one batch most of the time. */
void roce_socket_drive(struct roce_socket *socket);
void roce_socket_poll(struct roce_socket *socket);

/* Takes the port for sending; any thread. Unless `wait`: returns false if another thread has it. */
static inline bool roce_port_enter(struct roce_port *port, bool wait)
{
    return !(wait ? pthread_mutex_lock(&port->sending) : pthread_mutex_trylock(&port->sending));
}

static inline void roce_port_leave(struct roce_port *port)
{
    pthread_mutex_unlock(&port->sending);
}

/* Fills in what the port, and the host, have counted. By a holder of an endpoint at the port, who has entered it. */
void roce_port_count(const struct roce_port *port, struct rddp_ib_counters *counters);

/* Is the ICRC of this packet right? `place`: in what has arrived with it. */
bool roce_host_verifies(struct roce_host *host, const struct icrc_path *path, uint32_t place, const uint8_t *p,
                        uint32_t octets);

/* Closes ports that are not in use, and the host without ports, unless it is driving. */
void roce_host_sweep(struct roce_host *host);

/* The loop ends: connections that the manager still had are forgotten, and all is closed. There are no slots. */
void roce_host_close(struct loop *loop);

/* In a child of fork(): the sockets are the parent's. Slots stay, until they are closed, and nothing arrives there. */
void roce_host_leave(struct loop *loop);

#endif
