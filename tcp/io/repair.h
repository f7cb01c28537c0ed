/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* repair.h - the state of a TCP connection of the kernel is read for another TCP, while its socket keeps the port
 * (TCP_REPAIR). */
#ifndef RDDP_TCP_IO_REPAIR_H
#define RDDP_TCP_IO_REPAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sequence numbers and windows as the kernel left them. Everything that it has sent is acknowledged. */
struct repair_state {
    uint32_t send_next, receive_next;
    uint32_t window;   /* the peer's, in octets */
    uint32_t edge;     /* octets that it has promised to take, from receive_next on */
    uint32_t mss, mtu; /* as the peer's SYN said; of the path */
    uint8_t scale, own_scale;
    bool sack, stamps, ecn;
    uint32_t stamp;    /* the timestamp that it would send now: milliseconds count on from here */
    uint32_t rtt_us;   /* smoothed; 0: unknown */
    uint32_t received; /* octets that had not been read: in the caller's room, they end at receive_next */
};

/* May this process take connections over? 0; -EPERM without CAP_NET_ADMIN; -EMFILE and the like. */
int repair_allowed(void);

/* Takes over a connected socket: from here on the kernel ignores what comes for it and sends nothing for it, not even
 * when the descriptor is closed, but does not answer other packets for its port either. What was received and not read
 * goes to `to`. 0; -EAGAIN: the peer has not acknowledged everything yet; -ENOTCONN: it is not up, or one end has
 * finished; -ENOBUFS: more than `capacity` was received; -EPERM; -EOPNOTSUPP: the kernel keeps its time otherwise.
 * Except for 0, the connection is the kernel's as before. */
int repair_take(int fd, struct repair_state *state, uint8_t *to, uint32_t capacity);

/* The time to live of its packets: of a socket for both, too, it is that of the family that they are of. */
uint8_t repair_hops(int fd, bool v4);

/* The path MTU as the kernel knows it now, or 0. */
uint32_t repair_mtu(int fd);

#endif
