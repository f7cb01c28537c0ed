/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.h - a UDP socket that carries packets in batches: many in one call, where the kernel can cut and join them. */
#ifndef RDDP_NET_UDP_H
#define RDDP_NET_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    UDP_BATCH_OCTETS = 65000, /* that leave in one call, of packets to one peer */
    UDP_BATCH_PACKETS = 64,   /* the kernel cuts no more */
    UDP_BUFFERS = 8,          /* that one call may fill */
    UDP_BUFFER_OCTETS = 65536,
    UDP_SOCKET_OCTETS = 4 << 20, /* asked for the socket's own buffers */
};

struct udp {
    int fd;
    bool cuts;        /* the kernel takes batches (UDP_SEGMENT) */
    bool refused;     /* udp_connect(): the peer's host has said that nobody is there */
    uint64_t dropped; /* packets that the socket did not take */
    uint8_t *out;     /* the batch: UDP_BATCH_OCTETS */
    uint32_t out_octets, out_packets, out_each;
    bool out_closed; /* its last packet was shorter than the others */
    struct sockaddr_storage out_to;
};

/* Room that all sockets of a thread can share. */
struct udp_stage {
    uint8_t *buffer; /* UDP_BUFFERS * UDP_BUFFER_OCTETS */
};

/* Packets from one peer that arrived together: all but the last have `each` octets. */
struct udp_batch {
    uint8_t *at; /* in the stage */
    uint32_t octets, each;
    struct sockaddr_storage from;
    socklen_t from_length;
};

/* A socket bound to `local`. 0 or a negative errno; then nothing is to be closed. */
int udp_open(struct udp *u, const struct sockaddr *local, socklen_t length);
void udp_close(struct udp *u);

/* Packets of others are not received any more. 0 or a negative errno. */
int udp_connect(struct udp *u, const struct sockaddr_storage *peer);

/* Where it is bound. */
void udp_local(const struct udp *u, struct sockaddr_storage *local);

/* Which address of ours the system would send from to `peer`; AF_UNSPEC: no way leads there. */
void udp_source(const struct sockaddr_storage *peer, struct sockaddr_storage *local);

/* Receives up to UDP_BUFFERS batches into the stage; how many, 0 if there is nothing, or a negative errno. An error
 * that some packet of ours has met (ICMP) is none. */
int udp_recv(struct udp *u, const struct udp_stage *stage, struct udp_batch *batch);

/* Room for a packet of `octets` to `to` behind those that wait, which leave first if they have to. udp_put() adds it.
 */
uint8_t *udp_room(struct udp *u, const struct sockaddr_storage *to, uint32_t octets);
void udp_put(struct udp *u, uint32_t octets);

/* What waits leaves. What the socket does not take is lost, as packets may be. */
void udp_flush(struct udp *u);

#endif
