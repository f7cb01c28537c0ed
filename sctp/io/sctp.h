/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp.h - the interface between an association and a stack of SCTP: messages of one DATA chunk, unordered, and events
 * in order. Each stack is a table of functions, a provider. It
 * never calls up: an event waits until the owner takes it. */
#ifndef RDDP_SCTP_IO_SCTP_H
#define RDDP_SCTP_IO_SCTP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/span.h"

enum {
    SCTP_PORT_UDP = 9899, /* port of UDP encapsulation (RFC 6951) */
    SCTP_MTU = 1500,      /* octets of the path's packets, if nothing else is known */
    SCTP_MTU_MIN = 576,
    SCTP_MTU_MAX = 64000,
    SCTP_INIT_EACH_MS = 1000, /* while connect_ms limits the attempt, an INIT is repeated this often */
    SCTP_STREAMS_MAX = 16,    /* streams requested, each way */
    SCTP_ADDRESSES_MAX = 8,   /* local addresses of an association */
    SCTP_IPV4_HEAD = 20,
    SCTP_IPV6_HEAD = 40,
    SCTP_UDP_HEAD = 8,
};

enum sctp_news_kind {
    SCTP_NEWS_UP, /* INIT and INIT-ACK were exchanged */
    SCTP_NEWS_MESSAGE,
    SCTP_NEWS_SKIPPED,  /* the peer used a stream that does not exist, and that message is lost */
    SCTP_NEWS_SHUTDOWN, /* the peer sends nothing more, or both ends have shut down */
    SCTP_NEWS_ABORTED,  /* aborted by the peer */
    SCTP_NEWS_LOST,     /* no answer for too long */
    SCTP_NEWS_REFUSED,  /* instead of UP: no one listens at the peer's address */
};

/* An event. Its owner frees `data` with sctp_news_free(). */
struct sctp_news {
    enum sctp_news_kind kind;
    uint8_t *data; /* MESSAGE: the message; ABORTED: the reason */
    uint32_t octets;
    uint32_t tsn; /* MESSAGE: of its first chunk; UP: the peer's initial TSN; both may be counted from another origin */
    uint32_t tsns; /* MESSAGE: how many it has, as far as the stack says; 0 counts as 1 */
    uint32_t ppid;
    uint16_t stream;
    bool unordered;
    uint32_t indication;  /* UP: the peer's adaptation indication, 0 if it sent none */
    uint32_t payload_max; /* UP: octets of the largest message */
};

/* What we request. The times are those of SCTP (RFC 9260 16). */
struct sctp_attr {
    uint32_t indication; /* 0: none */
    uint16_t mtu;        /* octets of the path's packets, IP headers included */
    uint16_t udp_port;   /* of the peer, and of a listener; 0: SCTP_PORT_UDP */
    bool raw;            /* directly in IP, without UDP */
    /* Give up after about this many milliseconds if an INIT is not answered; 0: the default of SCTP. */
    uint32_t connect_ms;
    uint16_t local_port; /* SCTP port of the end that connects; 0: the stack picks one */
    bool alone;          /* the socket makes one association: an ICMP error for its packets refuses the association */
    const struct sockaddr_storage *address; /* further local addresses; borrowed until listen() or connect() returns */
    uint32_t addresses;                     /* at most SCTP_ADDRESSES_MAX - 1 */
};

/* Read and set the port of an address of AF_INET or AF_INET6. */
static inline uint16_t sctp_port_of(const struct sockaddr_storage *addr)
{
    return ntohs(addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)addr)->sin6_port
                                             : ((const struct sockaddr_in *)addr)->sin_port);
}

static inline void sctp_set_port(struct sockaddr_storage *addr, uint16_t port)
{
    if (addr->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)addr)->sin_port = htons(port);
}

/* Octets of an address of this family. */
static inline socklen_t sctp_address_length(sa_family_t family)
{
    return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static inline bool sctp_is_wildcard(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

static inline void sctp_news_free(struct sctp_news *news)
{
    free(news->data);
    news->data = NULL;
}

/* A local socket with all its associations, and an association. Each is the first member of the provider's own struct,
 * and belongs to the loop that made it. */
struct sctp_socket {
    const struct sctp_provider *provider;
    int fd; /* to watch for readiness */
};
struct sctp_assoc {
    void *owner; /* what ready() returns; set by the loop before its next call of ready() */
};

/* Functions that return int return 0 or a negative errno. All but enter, submit, due and leave are called by the loop
 * of the socket: it calls drive() when the descriptor is readable or the time of due() has come, and then takes the
 * events with accept(), ready() and next(). */
struct sctp_provider {
    /* Opens a socket at `local`, whose port is the UDP port. Its associations must be closed before it is. If it
     * returns -EPROTONOSUPPORT, *why says why as a sentence. */
    int (*open)(const struct sockaddr *local, socklen_t length, const struct sctp_attr *attr,
                struct sctp_socket **socket, const char **why);
    void (*close_socket)(struct sctp_socket *socket);

    /* listen() accepts associations at this SCTP port; 0: it picks one. unlisten() stops, and aborts the associations
     * that were not accepted. accept() returns the next new association, whose SCTP_NEWS_UP is still to be taken; NULL:
     * there is none. local() stores the address of the socket, with the SCTP port of listen(). */
    int (*listen)(struct sctp_socket *socket, uint16_t sctp_port);
    void (*unlisten)(struct sctp_socket *socket);
    struct sctp_assoc *(*accept)(struct sctp_socket *socket);
    void (*local)(struct sctp_socket *socket, struct sockaddr_storage *local);

    /* Starts an association with the SCTP port in `peer`; the UDP port is attr->udp_port. Its own address is that of
     * the socket, its SCTP port attr->local_port. */
    int (*connect)(struct sctp_socket *socket, const struct sockaddr *peer, struct sctp_assoc **assoc);

    /* Reads the socket, runs the timers of the stack, and sends. Returns true if there may be more to read. */
    bool (*drive)(struct sctp_socket *socket);

    /* ready() returns the next owner whose association has new events, or may have room after -EAGAIN; each once per
     * occasion. NULL: there is none. next() takes the next event; it returns false if there is none. sctp_news_free()
     * frees its data. */
    void *(*ready)(struct sctp_socket *socket);
    bool (*next)(struct sctp_assoc *assoc, struct sctp_news *news);

    /* Locks the stack of the socket, so that many messages cost one lock operation. Between enter() and leave() only
     * submit() and due() for it may be called. enter() returns false if another thread holds the lock and `wait` is
     * false. leave() sends what was submitted. */
    bool (*enter)(struct sctp_socket *socket, bool wait);
    void (*leave)(struct sctp_socket *socket);

    /* Copies a message for the peer. -EAGAIN: the stack is full, and ready() will report when to try again. `more`:
     * another follows at once, and the stack may let this one wait for it. */
    int (*submit)(struct sctp_assoc *assoc, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid,
                  bool more);

    /* Returns the time by which drive() must be called, on the clock of reactor_now_us(). Every call for the socket may
     * change it. NULL: only readiness matters. */
    uint64_t (*due)(struct sctp_socket *socket);

    /* The owner keeps messages of this association, with this many octets of memory in all. NULL: this stack does not
     * count what is kept. */
    void (*keeps)(struct sctp_assoc *assoc, uint32_t octets);

    /* The peer said that its stack sends batches: from now on one acknowledgement for each batch is enough, where RFC
     * 9260 6.2 asks for one for every second packet, and our own batches need not be cut to Max.Burst packets. NULL:
     * this stack sends no batches, and its owner must not say that it does. */
    void (*batches)(struct sctp_assoc *assoc);

    /* End an association: shutdown() when everything is acknowledged, abort() at once with a reason. */
    void (*shutdown)(struct sctp_assoc *assoc);
    void (*abort)(struct sctp_assoc *assoc, const char *reason, size_t octets);

    /* Stores the addresses of both ends, with SCTP ports. The local one is AF_UNSPEC if there is no route to the peer.
     */
    void (*names)(struct sctp_assoc *assoc, struct sockaddr_storage *local, struct sockaddr_storage *peer);

    /* Frees the association; aborts it if it is not over. */
    void (*close)(struct sctp_assoc *assoc);
};

#endif
