/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - what carries a connection's octets: a kernel TCP socket, a pair in memory, a TCP of packets. */
#ifndef RDDP_NET_LINK_H
#define RDDP_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/span.h"
#include "net/loop.h"

struct link;

/* What has come up at a link. Its owner is told, once, and does all that follows. */
enum link_event {
    LINK_UP = 1 << 0,       /* the link's own handshake is over */
    LINK_READABLE = 1 << 1, /* link_receive() has something, or the end */
    LINK_WRITABLE = 1 << 2, /* link_send() takes octets again */
    LINK_ENDED = 1 << 3,    /* the peer has ended its stream, though nobody wants to read */
    LINK_LOST = 1 << 4,     /* of no use any more; what has arrived may still be read */
};

/* What the owner is waiting for. LINK_LOST is told always. */
enum link_want { LINK_WANT_READ = 1 << 0, LINK_WANT_WRITE = 1 << 1, LINK_WANT_END = 1 << 2 };

/* Room for what is read: the first octets at `at`, those behind them at `then`. */
struct link_room {
    uint8_t *at;
    size_t octets;
    uint8_t *then; /* NULL unless the kind reads to two places */
    size_t then_octets;
};

/* The calls of a kind; no call of them waits. Those with a plain wrapper below are described there. */
struct link_kind {
    const char *name;
    bool keeps_units;     /* send() is called for one unit at a time, which travels as packets of its own */
    bool in_order;        /* octets arrive in the order of the stream, and are asked for by receive() */
    bool reads_to_places; /* receive() can fill two places */
    void (*want)(struct link *link, unsigned wants);
    ssize_t (*receive)(struct link *link, const struct link_room *room);
    ssize_t (*send)(struct link *link, const struct span *span, uint32_t spans);
    void (*finish)(struct link *link);
    uint32_t (*segment_size)(struct link *link);
    void (*names)(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer);
    void (*close)(struct link *link);
};

/* The head of every link. */
struct link {
    const struct link_kind *kind;
    struct loop *loop;
    void *owner;
    void (*told)(struct link *link,
                 unsigned events); /* the owner's, by the driver of the loop; it may close the link */
    bool is_up;
    int error; /* a negative errno: why it never came up */
};

/* Which of enum link_want the owner waits for from here on. */
static inline void link_want(struct link *link, unsigned wants)
{
    link->kind->want(link, wants);
}

/* Octets read, 0 at the end of the stream, -EAGAIN, or another negative errno. */
static inline ssize_t link_receive(struct link *link, const struct link_room *room)
{
    return link->kind->receive(link, room);
}

/* Octets taken, -EAGAIN, or another negative errno. Never a signal. */
static inline ssize_t link_send(struct link *link, const struct span *span, uint32_t spans)
{
    return link->kind->send(link, span, spans);
}

/* Ends the outgoing stream. */
static inline void link_finish(struct link *link)
{
    link->kind->finish(link);
}

/* Octets of the largest unit that travels as one packet now. */
static inline uint32_t link_segment_size(struct link *link)
{
    return link->kind->segment_size(link);
}

static inline void link_names(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    link->kind->names(link, local, peer);
}

/* By the driver of its loop. The link is freed, and nothing is told any more. */
static inline void link_close(struct link *link)
{
    link->kind->close(link);
}

#endif
