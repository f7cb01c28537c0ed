/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsock_datagram.h - rsockets for datagrams, over a UD queue pair of rddpe0, and how their files call each other.
 *
 * The protocol is that of librdmacm. Beside its queue pair an rsocket has a UDP socket, whose address is that of both.
 * A message for a destination whose queue pair is not known goes by UDP, behind a greeting that names the queue pair of
 * the sender. Who gets it answers with a greeting alone, and the messages that follow go from queue pair to queue pair,
 * each behind the address of its sender.
 *
 * No thread works for them: the calls that look at an rsocket read its UDP socket, too.
 *
 * As in rsocket.h, a function wants `lock` held, and returns 0 or a positive errno. */
#ifndef VERBS_RSOCK_DATAGRAM_H
#define VERBS_RSOCK_DATAGRAM_H

#include "verbs/rsock/rsocket.h"

enum {
    RD_GRH = 40,          /* octets before each message that a UD queue pair receives */
    RD_MESSAGE = 2048,    /* what a peer takes at once, with what is before it */
    RD_PACKET_MAX = 4096, /* the largest path MTU: no more can come */
    RD_IN = RD_GRH + RD_PACKET_MAX,
    RD_SPARE = 16,          /* places for messages that came by UDP */
    RD_DESTINATIONS = 4096, /* known at once; the one that was not used for longest makes place */
    RD_BUCKETS = 256,
    RD_FRESH_US = 1000000, /* so long the queue pair of a silent destination is believed to be the same */
};

/* --- datagram_wire.c: addresses here are AF_INET or AF_INET6, and those of IPv4 never mapped into IPv6. --- */

enum { RD_ORIGIN_MAX = 24, RD_GREETING_MAX = 28 };

/* The address of its sender, before a message. Returns its octets. */
unsigned rs_origin_encode(uint8_t out[RD_ORIGIN_MAX], const struct sockaddr_storage *address);
/* Returns its octets; 0: there is none. */
unsigned rs_origin_decode(struct sockaddr_storage *address, const uint8_t *from, size_t n);

/* Greetings tell the queue pair of an address by UDP. RS_DATA: a message follows. RS_CONTROL: nothing does. */
struct rs_greeting {
    enum rs_message what;
    uint32_t qpn;
    struct sockaddr_storage address;
};

unsigned rs_greeting_encode(uint8_t out[RD_GREETING_MAX], const struct rs_greeting *greeting);
/* Returns its octets; 0: there is none. */
unsigned rs_greeting_decode(struct rs_greeting *greeting, const uint8_t *from, size_t n);

/* An IPv4 address that is mapped into IPv6 becomes itself; and the other way round for a socket of IPv6. */
void rs_address_plain(struct sockaddr_storage *address);
void rs_address_shown(const struct rsocket *rs, struct sockaddr_storage *address);

/* --- destinations.c --- */

struct rs_destination {
    struct rs_destination *next;     /* of its bucket */
    struct sockaddr_storage address; /* as the application has it */
    struct sockaddr_storage local;   /* ours that leads to it; plain, as `peer` */
    struct sockaddr_storage peer;
    uint8_t origin[RD_ORIGIN_MAX];
    unsigned origin_length;
    uint32_t most;     /* octets of a message */
    uint32_t qpn;      /* 0: not known */
    struct ibv_ah *ah; /* made when the first message goes there */
    bool is_asked;     /* a message went by UDP, and its answer has not come */
    int64_t fresh_until_us;
    uint64_t used; /* when, counted in uses */
};

/* Finds a destination, or makes one. */
int rs_destination_get(struct rsocket *rs, const struct sockaddr_storage *address, struct rs_destination **out);
/* Finds one that there is; NULL. */
struct rs_destination *rs_destination_known(struct rsocket *rs, const struct sockaddr_storage *address);
/* Finds the one that a message names; NULL. */
struct rs_destination *rs_destination_of(struct rsocket *rs, const struct sockaddr_storage *origin);
/* The destination has this queue pair. */
void rs_destination_greeted(struct rs_destination *to, uint32_t qpn);
/* Is there a way to its queue pair, or can it be made? */
bool rs_destination_has_way(struct rsocket *rs, struct rs_destination *to);
void rs_destinations_free(struct rsocket *rs);

/* --- datagrams.c --- */

/* A message that has come: in a slot, behind RD_GRH octets and the address of its sender. */
struct rs_arrival {
    unsigned slot;
    uint32_t length; /* without RD_GRH */
};

struct rs_datagrams {
    int udp;
    int news;          /* readable when UDP or the queue pair has some */
    struct ibv_qp *qp; /* NULL: the application has not begun; then there is nothing below either */
    unsigned in_slots; /* with the spare ones, which come last */
    unsigned out_slots;
    unsigned *free_out, *free_spare;
    unsigned free_outs, free_spares;
    struct rs_arrival *arrivals; /* a ring of in_slots */
    unsigned first_arrival, arrived;
    unsigned looks;
    struct rs_destination *connected; /* NULL: none */
    struct rs_destination *buckets[RD_BUCKETS];
    unsigned destinations;
    uint64_t uses;
};

int rs_datagram_new(struct rsocket *rs);
void rs_datagram_free(struct rsocket *rs);
/* Makes the queue pair, when its sizes are settled. */
int rs_datagram_open(struct rsocket *rs);
void rs_datagram_advance(struct rsocket *rs);
/* Reads what came by UDP. */
void rs_datagram_hear(struct rsocket *rs);
/* Gives the place of the first arrival back. */
void rs_datagram_drop(struct rsocket *rs);
bool rs_datagram_is_open(const struct rsocket *rs);
bool rs_datagram_is_readable(const struct rsocket *rs);
bool rs_datagram_is_writable(const struct rsocket *rs);
bool rs_datagram_is_sent(const struct rsocket *rs);

/* --- datagram_calls.c --- */

int rs_datagram_bind(struct rsocket *rs, const struct sockaddr *address);
int rs_datagram_connect(struct rsocket *rs, const struct sockaddr *address);
/* Return octets, or a negative errno. */
ssize_t rs_datagram_send(struct rsocket *rs, const struct msghdr *msg, int flags);
ssize_t rs_datagram_receive(struct rsocket *rs, struct msghdr *msg, int flags);

#endif
