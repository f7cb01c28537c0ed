/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_inner.h - declarations shared by osctp.c and osctp_*.c; no other file includes it. */
#ifndef RDDP_SCTP_IO_OSCTP_INNER_H
#define RDDP_SCTP_IO_OSCTP_INNER_H

#include <pthread.h>
#include <unistd.h>

#include "base/container.h"
#include "loop/reactor.h"
#include "sctp/io/osctp_provider.h"
#include "sctp/io/osctp_order.h"
#include "loop/udp.h"
#include "sctp/osctp.h"

enum { OSCTP_RANDOMS = 64, OSCTP_PORTS = 65536 - OSCTP_PORT_FIRST };

/* What a packet tells of its association. Without padding: it is hashed and compared as octets. */
struct osctp_key {
    uint8_t address[16];
    uint32_t scope;
    uint16_t family, udp_port;      /* up to here the peer's UDP address */
    uint16_t peer_port, local_port; /* SCTP ports */
};

/* Messages that wait for the owner: a ring that grows. */
struct osctp_inbox {
    struct osctp_message *ring;
    uint32_t size, first, count; /* size: 0 or a power of two */
    uint32_t octets;             /* of memory: their data, and OSCTP_ENTRY for each */
};

/* Events of an association that were not taken. They come in this order, with the messages behind `up`. */
struct osctp_events {
    bool up, skipped, shutdown, end;
};

/* Its place in the structures of its port: only osctp_table.c looks inside. */
struct osctp_place {
    struct osctp_key key;
    struct osctp_assoc *chain; /* in the table */
    bool is_found;             /* in the table */
    uint64_t due_us;           /* not later than its deadline */
    uint32_t heap;             /* index in the heap */
};

struct osctp_assoc {
    struct sctp_assoc base;
    struct osctp_port *port;
    struct osctp engine;
    struct osctp_sent *sent;
    struct sockaddr_storage peer; /* UDP address */
    struct osctp_place place;
    struct osctp_inbox inbox;
    struct osctp_order order;
    struct osctp_events news;
    enum sctp_news_kind end; /* if news.end */
    uint16_t skipped_stream; /* if news.skipped */
    bool up, shut, over;     /* the events that have happened */
    bool accepted;
    bool left;           /* its owner has left it, while it waits for the answer to its SHUTDOWN-ACK */
    uint32_t kept;       /* octets of memory that its owner keeps */
    uint32_t counted;    /* what it has added to `held` of its port */
    bool full;           /* a message found no space; the owner is told when there may be some */
    const char *broken;  /* the rule that the peer broke; NULL: none */
    uint32_t freed;      /* octets taken from the inbox since the window was set */
    bool measured;       /* the store fits the round trip */
    bool ready, touched; /* in these lists */
    struct osctp_assoc *next_ready, *next_touched;
    struct osctp_assoc *next; /* in the queue of its port */
};

/* Associations without an owner, the oldest first. */
struct osctp_queue {
    struct osctp_assoc *first, *last;
    uint32_t count;
};

/* Free memory for a packet. */
struct osctp_spare {
    struct osctp_spare *next;
};

struct osctp_port {
    struct sctp_socket base;
    pthread_mutex_t lock;
    struct udp udp;
    struct udp_stage stage;
    struct sctp_attr attr;
    uint32_t packet_max;  /* octets of an SCTP packet */
    uint16_t listen_port; /* 0: it never listened */
    bool listens;
    uint64_t key[2];        /* of hashes */
    uint64_t cookie_key[2]; /* of the MAC of cookies */
    uint32_t random[OSCTP_RANDOMS];
    uint32_t randoms; /* unused ones */
    uint64_t taken[OSCTP_PORTS / 64];
    struct osctp_assoc **heads;  /* the associations by key */
    uint32_t size, found;        /* of `heads`, a power of two; in the table */
    struct osctp_assoc **heap;   /* all associations by due_us, the earliest first */
    uint32_t assocs, heap_size;  /* in the heap; places in it */
    struct osctp_assoc *ready;   /* with news, or with space again */
    struct osctp_assoc *touched; /* something may have to be sent, or told to the owner */
    struct osctp_queue arrived;  /* not accepted */
    struct osctp_queue left;     /* see osctp_assoc.left */
    struct osctp_spare *spare;
    uint32_t spare_octets;
    uint64_t held; /* octets of memory that peers make all associations keep */
    pid_t pid;     /* the process that opened it */
    bool silent;   /* that process was the parent of this one: nothing is received or sent */
    struct osctp_port *next;
};

static inline struct osctp_assoc *osctp_assoc_of(struct sctp_assoc *base)
{
    return container_of(base, struct osctp_assoc, base);
}

static inline struct osctp_port *osctp_port_of(struct sctp_socket *base)
{
    return container_of(base, struct osctp_port, base);
}

/* --- osctp_table.c: the associations of a port, by key and by time. All need the lock of the port. -------------- */

/* Starts with no association. Returns 0 or -ENOMEM. */
int osctp_table_init(struct osctp_port *port);
void osctp_table_fini(struct osctp_port *port);

/* Adds an association with the key in its place. Returns 0 or -ENOMEM. */
int osctp_table_add(struct osctp_assoc *s);
void osctp_table_remove(struct osctp_assoc *s);
/* It is found no more; osctp_table_remove() is still to come. */
void osctp_table_hide(struct osctp_assoc *s);
struct osctp_assoc *osctp_table_find(const struct osctp_port *port, const struct osctp_key *key);

/* Fills in the peer's UDP address, and returns a number for it. */
void osctp_key_address(struct osctp_key *key, const struct sockaddr_storage *peer);
uint64_t osctp_key_number(const struct osctp_port *port, const struct osctp_key *key);

/* Sets a time not later than the deadline. */
void osctp_table_schedule(struct osctp_assoc *s, uint64_t due_us);
/* Returns the association that keeps the most; NULL: there is none. */
struct osctp_assoc *osctp_table_most(const struct osctp_port *port);
/* Returns the association that is due first; NULL: none is due. */
struct osctp_assoc *osctp_table_due(const struct osctp_port *port, uint64_t now_us);

/* --- osctp_assoc.c: what an association receives, and its events -------------------------------------------------- */

/* Makes an association that the engine has yet to begin. NULL: no memory. The caller holds the lock, here and below. */
struct osctp_assoc *osctp_assoc_new(struct osctp_port *port, const struct osctp_key *key,
                                    const struct sockaddr_storage *peer);
extern const struct osctp_user osctp_assoc_user;
/* The octets that it may still receive. */
uint32_t osctp_assoc_window(const struct osctp_assoc *s);

/* Tells the owner what has happened to the association; ends it, for this reason. */
void osctp_assoc_notify(struct osctp_assoc *s);
void osctp_assoc_end(struct osctp_assoc *s, enum sctp_news_kind kind);
void osctp_assoc_mark_ready(struct osctp_assoc *s);
/* Something may have to be sent for it, or told to its owner. */
void osctp_assoc_touch(struct osctp_assoc *s);

/* Frees what waits for missing chunks. */
void osctp_assoc_drop_held(struct osctp_assoc *s);
/* Counts what it keeps, after a change. */
void osctp_assoc_count(struct osctp_assoc *s);
/* Aborts associations, those that keep the most first, until there is memory for `octets` more. Returns false if this
 * one would be next. */
bool osctp_assoc_reserve(struct osctp_assoc *s, uint32_t octets);
/* Takes the first message, of which there is one; frees all. */
struct osctp_message osctp_inbox_pop(struct osctp_inbox *inbox);
void osctp_inbox_fini(struct osctp_inbox *inbox);

/* --- osctp_output.c: what is sent ------------------------------------------------------------------------------ */

/* Sends the packets of an association; does also all else that its state asks for; does so for all that were touched,
 * and sends the batch. */
void osctp_port_output(struct osctp_assoc *s, uint64_t now_us);
void osctp_port_settle_one(struct osctp_assoc *s, uint64_t now_us);
void osctp_port_settle(struct osctp_port *port);

/* --- osctp_owner.c: an association and its owner --------------------------------------------------------------- */

/* As those of struct sctp_provider. */
bool osctp_assoc_next(struct sctp_assoc *base, struct sctp_news *news);
int osctp_assoc_submit(struct sctp_assoc *base, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid,
                       bool more);
void osctp_assoc_keeps(struct sctp_assoc *base, uint32_t octets);
void osctp_assoc_batches(struct sctp_assoc *base);
void osctp_assoc_names(struct sctp_assoc *base, struct sockaddr_storage *local, struct sockaddr_storage *peer);
void osctp_assoc_shutdown(struct sctp_assoc *base);
void osctp_assoc_abort(struct sctp_assoc *base, const char *reason, size_t octets);

/* Its owner leaves, or it never had one: frees it, and aborts it if it is not over. One of a listener that waits for
 * the answer to its SHUTDOWN-ACK is freed when it has come. The caller holds the lock, here and below. */
void osctp_assoc_free(struct osctp_assoc *s);

/* --- osctp_left.c: what is freed, at once or later ------------------------------------------------------------- */

void osctp_queue_push(struct osctp_queue *queue, struct osctp_assoc *s);
/* Takes out the first, of which there is one. */
struct osctp_assoc *osctp_queue_pop(struct osctp_queue *queue);

/* Takes it out of the lists of its port. */
void osctp_assoc_unlink(struct osctp_assoc *s);
/* Frees what waits for its owner, who takes nothing more. */
void osctp_assoc_forget_news(struct osctp_assoc *s);
/* Frees all of it, without a packet. */
void osctp_assoc_discard(struct osctp_assoc *s);
/* The same for one that was left; for the oldest ones until there are `n`. */
void osctp_assoc_reap(struct osctp_assoc *s);
void osctp_port_forget_left(struct osctp_port *port, uint32_t n);

/* --- osctp_port.c: the packets of a socket --------------------------------------------------------------------- */

/* Returns a random number in *number; false: there is none. */
bool osctp_port_random(struct osctp_port *port, uint32_t *number);

/* The attributes of an association at these SCTP ports; without tag and TSN, which need random numbers. */
struct osctp_attr osctp_port_attr(const struct osctp_port *port, uint16_t local_port, uint16_t peer_port);

bool osctp_port_drive(struct sctp_socket *base);

#endif
