/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_inner.h - what usctp.c and usctp_stack.c share; nobody else includes it. */
#ifndef RDDP_NET_USCTP_INNER_H
#define RDDP_NET_USCTP_INNER_H

#include <pthread.h>
#include <netinet/in.h>
#include <usrsctp.h>

#include "net/udp.h"
#include "net/usctp.h"
#include "net/usctp_packet.h"

/* Something that came, linked. */
struct usctp_entry {
    struct sctp_news event;
    struct usctp_entry *next;
};

/* A peer's address at one of our sockets: what the stack takes for an address. It may still send there when we are done
 * with it: the memory of paths is used again, and never given back. */
struct usctp_path {
    struct usctp_port *port;      /* NULL: not in use */
    struct sockaddr_storage peer; /* of UDP */
    struct usctp_path *next;
    struct packet_init init; /* the INIT or INIT-ACK that came last */
    uint32_t users;
    uint64_t used_us;
};

struct usctp {
    struct usctp_port *port;
    struct usctp_path *path;
    struct socket *socket;
    struct usctp *next;
    struct usctp_entry *first, **last;
    uint32_t waiting; /* octets in the inbox */
    uint32_t indication;
    uint16_t peer_port, local_port; /* as peers know them */
    uint16_t own_port;              /* one that was given out for it alone, or 0 */
    bool up, over, accepted;
    bool starved; /* something was lost for want of memory */
    bool full;    /* the stack had no room for a message: the owner is told when there may be some */
    bool ready;   /* in the list of its port */
    struct usctp *next_ready;
    void *owner;
};

struct usctp_port {
    struct udp udp;
    struct sctp_attr attr;
    struct socket *listener;
    uint16_t sctp_port; /* of the listener, as peers know it; 0: there never was one */
    uint16_t inner;     /* the same as the stack knows it */
    sa_family_t family;
    struct usctp_path *paths;
    uint32_t idle_paths, pending;
    struct usctp *assocs, *ready;
    uint32_t full; /* associations that are */
    pid_t pid;     /* who opened it */
    bool silent;   /* that was the parent of this process: nothing is read or sent */
    struct usctp_port *next;
};

/* Ports of SCTP are the stack's and one for all of a process, while peers know those of a UDP socket: the ones from
 * USCTP_PORT_FIRST on are given out for both, a listener's is translated. */
enum { USCTP_PORT_FIRST = 49152, USCTP_PORTS = 65536 - USCTP_PORT_FIRST };

/* One of everything. */
struct usctp_stack {
    pthread_mutex_t lock; /* guards all of it, and every port, path and association */
    bool begun;
    uint64_t ticked_us;
    struct udp_stage stage;
    struct usctp_port *ports;
    struct usctp_path *free_paths;
    struct usctp_port *at_port[USCTP_PORTS]; /* whose each is */
    uint32_t next_port;
    uint8_t message[SCTP_MTU_MAX];
};
extern struct usctp_stack usctp_stack;

/* All of these under the lock. */

/* False: no memory. */
bool usctp_begin(void);

/* What the stack says of an association, or a message; `user` is the port. It is called from inside the stack. */
int usctp_input(struct socket *socket, union sctp_sockstore addr, void *data, size_t n, struct sctp_rcvinfo info,
                int flags, void *user);

/* The path to a peer; NULL: no memory. */
struct usctp_path *usctp_path_to(struct usctp_port *port, const struct sockaddr_storage *peer);
void usctp_use_path(struct usctp_path *path);
void usctp_leave_path(struct usctp_path *path);
void usctp_forget_paths(struct usctp_port *port);

/* Its owner is to look at it. */
void usctp_mark_ready(struct usctp *s);

/* Frees an association and what waits for its owner. */
void usctp_forget(struct usctp *s);

#endif
