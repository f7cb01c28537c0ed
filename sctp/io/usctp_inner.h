/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_inner.h - declarations shared by usctp.c, usctp_data.c and usctp_stack.c; no other file includes it. */
#ifndef RDDP_SCTP_IO_USCTP_INNER_H
#define RDDP_SCTP_IO_USCTP_INNER_H

#include <pthread.h>
#include <netinet/in.h>
#include <usrsctp.h>

#include "base/container.h"
#include "loop/udp.h"
#include "sctp/io/usctp.h"
#include "sctp/io/usctp_pack.h"
#include "sctp/packet.h"

enum { USCTP_SPARES = 4096 };

/* An event in the list of its association. */
struct usctp_entry {
    struct sctp_news event;
    struct usctp_entry *next;
};

/* A peer's address at one of our sockets: the stack uses a pointer to it as the address. The stack may still send there
 * after we have forgotten it, so the memory is reused for other paths and never freed. */
struct usctp_path {
    struct usctp_port *port;      /* NULL: unused */
    struct sockaddr_storage peer; /* UDP address */
    struct usctp_path *next;
    struct packet_init init; /* the last INIT or INIT-ACK received */
    bool batches;            /* the peer sends batches, and one acknowledgement for each is enough */
    bool gaps;               /* our last SACK to it reported gaps */
    uint32_t users;
    uint64_t used_us;
};

struct usctp {
    struct sctp_assoc base;
    struct usctp_port *port;
    struct usctp_path *path;
    struct socket *socket;
    struct usctp *next;
    struct usctp_entry *first, **last;
    uint32_t waiting; /* octets of messages that wait for the owner */
    uint32_t indication;
    uint16_t peer_port, local_port; /* as the peers see them */
    uint16_t own_port;              /* the port allocated for this association alone; 0: none */
    bool up, over, accepted;
    bool starved; /* an event was lost because of lack of memory */
    bool full;    /* the stack had no room for a message; the owner is told when there may be room */
    bool delays;  /* the stack delays messages that do not fill a packet */
    bool ready;   /* linked in the ready list of its port */
    struct usctp *next_ready;
    void *owner;
};

struct usctp_port {
    struct sctp_socket base;
    struct udp udp;
    struct sctp_attr attr;
    struct socket *listener;
    uint16_t sctp_port;  /* the listener's port as the peers see it; 0: it never listened */
    uint16_t inner;      /* the listener's port as the stack sees it */
    uint32_t packet_max; /* octets of an SCTP packet */
    struct usctp_path *paths;
    uint32_t idle_paths, pending;
    struct usctp *assocs, *ready;
    struct usctp_entry *spare; /* entries to use again */
    uint32_t spares;           /* at most USCTP_SPARES */
    uint32_t full;             /* associations with `full` set */
    pid_t pid;                 /* the process that opened it */
    bool silent;               /* that process was the parent of this one: nothing is received or sent */
    struct usctp_port *next;
};

static inline struct usctp *usctp_of(struct sctp_assoc *base)
{
    return container_of(base, struct usctp, base);
}

static inline struct usctp_port *usctp_port_of(struct sctp_socket *base)
{
    return container_of(base, struct usctp_port, base);
}

/* The stack has one space of SCTP ports per process, while peers see one per UDP socket. Ports from USCTP_PORT_FIRST on
 * are allocated in both; a listener's port is translated. */
enum { USCTP_PORT_FIRST = 49152, USCTP_PORTS = 65536 - USCTP_PORT_FIRST };

/* The state of the process. */
struct usctp_stack {
    pthread_mutex_t lock; /* guards this structure and every port, path and association */
    bool begun;
    uint64_t ticked_us;
    struct udp_stage stage;
    struct usctp_port *ports;
    struct usctp_path *free_paths;
    struct usctp_port *at_port[USCTP_PORTS]; /* the socket that each port is allocated to */
    uint32_t next_port;
    uint8_t message[SCTP_MTU_MAX];
    struct pack pack; /* of the packets that leave, for the path `packed` */
    struct usctp_path *packed;
    uint8_t packet[SCTP_MTU_MAX];
};
extern struct usctp_stack usctp_stack;

/* The caller holds the lock, except where noted. */

/* Starts the stack if necessary. False: no memory. */
bool usctp_begin(void);

/* The stack's callback for packets; `addr` is the path. usctp_send() sends the packets that wait in the port's batch.
 */
int usctp_output(void *addr, void *buffer, size_t length, uint8_t tos, uint8_t set_df);
void usctp_send(struct usctp_port *port);

/* The stack's callback for messages and notifications; `user` is the port. It must not call the stack. */
int usctp_input(struct socket *socket, union sctp_sockstore addr, void *data, size_t n, struct sctp_rcvinfo info,
                int flags, void *user);

/* Returns the path to a peer, creating it if necessary; NULL: no memory. */
struct usctp_path *usctp_path_to(struct usctp_port *port, const struct sockaddr_storage *peer);
void usctp_use_path(struct usctp_path *path);
void usctp_leave_path(struct usctp_path *path);
void usctp_forget_paths(struct usctp_port *port);

/* Puts the association into the ready list of its port. */
void usctp_mark_ready(struct usctp *s);

/* As those of struct sctp_provider; all but submit take the lock themselves. */
bool usctp_drive(struct sctp_socket *base);
void *usctp_ready(struct sctp_socket *base);
bool usctp_next(struct sctp_assoc *base, struct sctp_news *event);
int usctp_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid,
                 bool more);

/* Takes an entry from those to use again, all zero, or from memory; NULL: no memory. usctp_put_entry() puts it back. */
struct usctp_entry *usctp_get_entry(struct usctp_port *port);
void usctp_put_entry(struct usctp_port *port, struct usctp_entry *entry);

/* Frees an association and its waiting events. The caller has unlinked it and need not hold the lock. */
void usctp_forget(struct usctp *s);

#endif
