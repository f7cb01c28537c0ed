/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - carries a connection's octets: a kernel TCP socket (link_tcp.h) or the TCP of a device
 * (tcp/io/packet_link.c).
 *
 * One thread at a time uses a link: the holder of its endpoint's doorbell, or before there is an endpoint the driver of
 * the loop. Only the driver of the loop closes it. */
#ifndef RDDP_LOOP_LINK_H
#define RDDP_LOOP_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/span.h"
#include "loop/reactor.h"

struct link;

/* What happened at a link. Each event is reported to the owner once, who must then do everything that follows from it.
 */
enum link_event {
    LINK_UP = 1 << 0,       /* the link's own handshake succeeded */
    LINK_READABLE = 1 << 1, /* link_receive() has octets, or the end of the stream */
    LINK_WRITABLE = 1 << 2, /* link_send() accepts octets again */
    LINK_ENDED = 1 << 3,    /* the peer ended its stream; reported even if the owner does not want to read */
    LINK_LOST = 1 << 4,     /* the link failed; octets that arrived before can still be read */
};

/* The events that the owner waits for. LINK_LOST is always reported. */
enum link_want { LINK_WANT_READ = 1 << 0, LINK_WANT_WRITE = 1 << 1, LINK_WANT_END = 1 << 2 };

/* Where to read to: the first octets to `at`, the next ones to `then`. */
struct link_buffers {
    uint8_t *at;
    size_t octets;
    uint8_t *then; /* NULL unless the kind has reads_to_places */
    size_t then_octets;
};

/* What a kind that is not in_order has counted. */
struct link_counts {
    uint64_t placed_early; /* octets that were placed before octets in front of them had arrived */
    uint64_t kept_max;     /* the most octets that ever waited for their turn */
    uint64_t sent_again;   /* segments that were retransmitted */
};

/* The operations of a kind; none of them waits. See the wrappers below. */
struct link_kind {
    const char *name;
    bool keeps_units; /* send() is called with one unit at a time, which starts a packet of its own */
    bool in_order;    /* octets are read in stream order, with receive(); otherwise the kind has the next three */
    bool (*present)(struct link *link);
    void (*attach)(struct link *link);
    void (*count)(struct link *link, struct link_counts *counts);
    bool reads_to_places; /* receive() can fill two places in one call */
    void (*want)(struct link *link, unsigned wants);
    void (*rest)(struct link *link, bool rests); /* NULL: it cannot. Or as reactor_rest() and reactor_rouse() */
    ssize_t (*receive)(struct link *link, const struct link_buffers *buffers);
    ssize_t (*send)(struct link *link, const struct span *span, uint32_t spans);
    void (*finish)(struct link *link);
    uint32_t (*segment_size)(struct link *link);
    void (*names)(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer);
    void (*close)(struct link *link);
};

/* The common part of every link. */
struct link {
    const struct link_kind *kind;
    struct reactor *reactor;
    void *owner;
    /* The owner's callback, called by the driver of the loop; it may close the link. */
    void (*on_event)(struct link *link, unsigned events);
    bool is_up;
    int error; /* a negative errno: why the handshake failed, or how a link that was up ended; 0: not known */
};

/* Sets the events that the owner waits for from now on. */
static inline void link_want(struct link *link, unsigned wants)
{
    link->kind->want(link, wants);
}

static inline bool link_can_rest(const struct link *link)
{
    return link->kind->rest;
}

static inline void link_rest(struct link *link, bool rests)
{
    link->kind->rest(link, rests);
}

/* Reads octets. Returns their number; 0: the end of the stream; -EAGAIN: none now; or another negative errno. */
static inline ssize_t link_receive(struct link *link, const struct link_buffers *buffers)
{
    return link->kind->receive(link, buffers);
}

/* Instead of reading: gives the owner what has arrived, in any order. Returns whether anything did. */
static inline bool link_present(struct link *link)
{
    return link->kind->present(link);
}

/* After the owner's connection was initialised: lends it what octets in any order need. */
static inline void link_attach(struct link *link)
{
    if (link->kind->attach)
        link->kind->attach(link);
}

static inline void link_count(struct link *link, struct link_counts *counts)
{
    *counts = (struct link_counts){0};
    if (link->kind->count)
        link->kind->count(link, counts);
}

/* Sends octets. Returns how many were accepted; -EAGAIN: none now; or another negative errno. Raises no SIGPIPE. */
static inline ssize_t link_send(struct link *link, const struct span *span, uint32_t spans)
{
    return link->kind->send(link, span, spans);
}

/* Ends the outgoing stream. Octets sent before still leave. */
static inline void link_finish(struct link *link)
{
    link->kind->finish(link);
}

/* Returns the octets of the largest unit that fits into one packet now. */
static inline uint32_t link_segment_size(struct link *link)
{
    return link->kind->segment_size(link);
}

/* Stores the two addresses. */
static inline void link_names(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    link->kind->names(link, local, peer);
}

/* Frees the link. Called by the driver of its loop; no event is reported afterwards. */
static inline void link_close(struct link *link)
{
    link->kind->close(link);
}

#endif
