/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_inner.h - usrsctp as a provider of SCTP, for tests alone: an implementation by others, as the peer of our own.
 * In programs that contain these files, `osctp` is another name of it where a stack is chosen. There is one stack per
 * process, and one lock guards it. */
#ifndef RDDP_TESTS_USCTP_INNER_H
#define RDDP_TESTS_USCTP_INNER_H

#include <netinet/in.h>
#include <pthread.h>
#include <usrsctp.h>

#include "base/container.h"
#include "sctp/io/sctp.h"
#include "loop/udp.h"

enum {
    USCTP_TICK_US = 10000,
    USCTP_BACKLOG = 128,    /* associations that wait for accept() */
    USCTP_INBOX = 8 << 20,  /* octets that may wait for the owner of an association; beyond, its socket is not read */
    USCTP_BUFFER = 4 << 20, /* octets that the stack may hold, each way */
    USCTP_BURST = 128,      /* packets that may follow one acknowledgement, if the peer acknowledges batches */
    /* The stack has one space of SCTP ports per process, while peers see one per UDP socket. Ports from
     * USCTP_PORT_FIRST on are allocated in both; a listener's port is translated. */
    USCTP_PORT_FIRST = 49152,
    USCTP_PORTS = 65536 - USCTP_PORT_FIRST,
};

/* An event in the list of its association. */
struct usctp_entry {
    struct sctp_news event;
    struct usctp_entry *next;
};

/* A peer's address at one of our sockets: the stack uses a pointer to it as the address. It may still send there after
 * the socket was closed, so the memory is never freed. */
struct usctp_path {
    struct usctp_port *port; /* NULL: its socket was closed */
    struct sockaddr_storage peer;
    struct usctp_path *next;
    uint32_t init_tsn; /* of the last INIT or INIT-ACK received */
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
    bool full;  /* the stack had no room for a message */
    bool ready; /* linked in the ready list of its port */
    struct usctp *next_ready;
};

struct usctp_port {
    struct sctp_socket base;
    struct udp udp;
    struct sctp_attr attr;
    struct socket *listener;
    uint16_t sctp_port;  /* the listener's port as the peers see it; 0: it never listened */
    uint16_t inner;      /* the listener's port as the stack sees it */
    uint32_t packet_max; /* octets of an SCTP packet */
    uint32_t pending;    /* associations that were not accepted */
    struct usctp_path *paths;
    struct usctp *assocs, *ready;
    struct usctp_port *next;
};

/* The state of the process. */
struct usctp_stack {
    pthread_mutex_t lock; /* guards this structure and every port, path and association */
    bool begun;
    uint64_t ticked_us;
    struct udp_stage stage;
    struct usctp_port *ports;
    struct usctp_port *at_port[USCTP_PORTS]; /* the socket that each port is allocated to */
    uint32_t next_port;
    uint8_t message[SCTP_MTU_MAX];
};
extern struct usctp_stack usctp_stack;

static inline struct usctp *usctp_of(struct sctp_assoc *base)
{
    return container_of(base, struct usctp, base);
}

static inline struct usctp_port *usctp_port_of(struct sctp_socket *base)
{
    return container_of(base, struct usctp_port, base);
}

extern const struct sctp_provider usctp;

/* usctp_stack.c. The caller holds the lock, except for drive(), which takes it. */

/* Starts the stack if necessary. */
void usctp_begin(void);

/* The stack's callback for messages and notifications; `user` is the port. It must not call the stack. */
int usctp_input(struct socket *socket, union sctp_sockstore addr, void *data, size_t n, struct sctp_rcvinfo info,
                int flags, void *user);

/* Returns the path to a peer, creating it if necessary. */
struct usctp_path *usctp_path_to(struct usctp_port *port, const struct sockaddr_storage *peer);

/* Puts the association into the ready list of its port. */
void usctp_mark_ready(struct usctp *s);

/* Frees an association that was unlinked, and its waiting events. */
void usctp_forget(struct usctp *s);

bool usctp_drive(struct sctp_socket *base);

#endif
