/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.h - a UDP socket that sends and receives packets in batches: many per call if the kernel can cut and join
 * them. */
#ifndef RDDP_LOOP_UDP_H
#define RDDP_LOOP_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    UDP_BATCH_OCTETS = 65000, /* octets of a batch, which leaves in one call to one peer */
    UDP_BATCH_PACKETS = 64,   /* the kernel cuts no more packets from a batch */
    UDP_BUFFERS = 8,          /* buffers that one call may fill */
    UDP_BUFFER_OCTETS = 65536,
    UDP_SOCKET_OCTETS = 4 << 20, /* requested size of the socket's own buffers */
    UDP_ADDRESS = 16,            /* octets of an address: IPv6, or IPv4 mapped (RFC 4291 2.5.5.2) */
};

enum udp_option {
    UDP_IN_GROUP = 1 << 0,      /* other sockets of this user may have the same port (SO_REUSEPORT) */
    UDP_BOTH_FAMILIES = 1 << 1, /* a socket of IPv6 takes IPv4, too */
    /* DF is set, and the identification of IPv4 is 0, or the place of the packet in its batch: see udp_place(). In one
     * that is connected Linux counts it from a random number on. */
    UDP_UNFRAGMENTED = 1 << 2,
    /* Packets of IPv6 arrive that have no checksum of UDP, because they have one of their own (RFC 6935): rxe's do. */
    UDP_WITHOUT_CHECKSUM = 1 << 3,
    /* It is bound to one address of this host: nothing has to be asked about where packets were sent to, nor be said
     * about where they come from. Marks of congestion are not looked at. */
    UDP_AT_ADDRESS = 1 << 4,
};

struct udp {
    int fd;
    bool cuts;               /* the kernel cuts batches (UDP_SEGMENT) */
    bool errors;             /* after udp_connect(): udp_refused() may have something to tell */
    uint8_t at[UDP_ADDRESS]; /* with UDP_AT_ADDRESS: that address */
    uint64_t dropped;        /* packets that the socket did not accept */
    uint8_t *out;            /* memory for packets of the batch being collected: UDP_BATCH_OCTETS */
    struct iovec packet[UDP_BATCH_PACKETS];
    uint32_t out_octets, out_packets, out_each; /* of the batch */
    uint32_t out_used;                          /* octets of `out` */
    bool out_borrows;                           /* some packets are in the caller's memory */
    bool out_ect;                               /* its packets are ECN-capable */
    bool out_closed;                            /* its last packet is shorter than the others, so no more can follow */
    struct sockaddr_storage out_to;
    uint8_t out_source[UDP_ADDRESS]; /* as of udp_set_source() */
    struct sockaddr_storage uncut;   /* the last peer whose route refused a batch: its packets are sent one by one */
    /* A packet that was put at this place of a batch leaves alone, at place 0. NULL: it need not know. */
    void (*alone)(const struct sockaddr_storage *to, uint8_t *p, uint32_t octets, uint32_t place);
};

/* Receive buffers that all sockets of a thread can share. */
struct udp_stage {
    uint8_t *buffer; /* UDP_BUFFERS * UDP_BUFFER_OCTETS */
};

/* Packets from one peer that arrived together: all but the last have `each` octets. `octets` is 0 if they were
 * truncated, or came from port 0, which has no answer, or were sent to a broadcast or multicast address. */
struct udp_batch {
    uint8_t *at; /* in the stage */
    uint32_t octets, each;
    bool marked;             /* with CE: the path is congested (RFC 3168) */
    uint8_t to[UDP_ADDRESS]; /* the address that they were sent to */
    struct sockaddr_storage from;
    socklen_t from_length;
};

/* Opens a socket bound to `local`. Returns 0 or a negative errno; after an error nothing needs to be closed. */
int udp_open(struct udp *u, const struct sockaddr *local, socklen_t length);
int udp_open_with(struct udp *u, const struct sockaddr *local, socklen_t length,
                  unsigned options); /* enum udp_option */
void udp_close(struct udp *u);

/* The same with UDP_AT_ADDRESS at the port of `other`, which has all addresses: packets to this one come to the new
 * socket from now on. The port in `local` says nothing. -EXDEV: the calling thread may be in another network namespace
 * than `other`. */
int udp_open_beside(struct udp *u, const struct udp *other, const struct sockaddr_storage *local, unsigned options);

/* Restricts the socket to packets of this peer, and collects ICMP errors for ours. Returns 0 or a negative errno. */
int udp_connect(struct udp *u, const struct sockaddr_storage *peer);

/* Takes an ICMP error that says that no one listens at the peer's port, and stores the beginning of our packet that it
 * quotes, which anyone may have invented. Returns its octets; 0: there is no such error, and no other one waits. */
uint32_t udp_refused(struct udp *u, uint8_t *p, uint32_t size);

/* Stores the local address. */
void udp_local(const struct udp *u, struct sockaddr_storage *local);

/* Stores the local address that the system would use to send to `peer`. Returns 0 or a negative errno, and AF_UNSPEC
 * then: there is no route. */
int udp_source(const struct sockaddr_storage *peer, struct sockaddr_storage *local);

/* Returns the octets of an IP packet that fits into the route to `peer`, or a negative errno. */
int udp_route_mtu(const struct sockaddr_storage *peer);

/* Receives up to UDP_BUFFERS batches into the stage. Returns their number; 0: none now; or a negative errno. An ICMP
 * error for a packet that we sent is not an error here. */
int udp_recv(struct udp *u, const struct udp_stage *stage, struct udp_batch *batch);

/* The same for one batch. A poller pays less for it: recvmmsg() looks for another one before it returns. */
int udp_recv_one(struct udp *u, const struct udp_stage *stage, struct udp_batch *batch);

/* Returns room for a packet of `octets` to `to`, behind the packets that wait; sends those first if they cannot be in
 * one batch with it. udp_put() then adds the packet. NULL: `octets` exceeds UDP_BATCH_OCTETS. */
uint8_t *udp_buffer(struct udp *u, const struct sockaddr_storage *to, uint32_t octets);
void udp_put(struct udp *u, uint32_t octets);

/* Before udp_put(): the place of the packet in its batch, counted from 0. */
uint32_t udp_place(const struct udp *u);

/* Packets leave from this address from now on, until it is all zeros: then the system selects one. */
void udp_set_source(struct udp *u, const uint8_t source[UDP_ADDRESS]);

/* The same for a packet that stays where it is until udp_flush(). `ect`: it is ECN-capable, and leaves with ECT(0).
 * Returns false if `octets` exceeds UDP_BATCH_OCTETS. */
bool udp_lend(struct udp *u, const struct sockaddr_storage *to, const uint8_t *p, uint32_t octets, bool ect);

/* Do packets to this peer leave one by one, since the kernel cuts no batches for it? */
bool udp_leaves_singly(const struct udp *u, const struct sockaddr_storage *to);

/* Sends the packets that wait. Packets that the socket does not accept are lost and counted in `dropped`. */
void udp_flush(struct udp *u);

/* Drops the packets that wait. */
void udp_forget(struct udp *u);

#endif
