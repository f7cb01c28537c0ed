/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun_setup.h - a TUN device gets an address, an MTU and a queue, and what was there before comes back at the end. */
#ifndef RDDP_TCP_IO_TUN_SETUP_H
#define RDDP_TCP_IO_TUN_SETUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct nlmsghdr;

/* An address of 4 or 16 octets and the bits of it that are the prefix. */
struct tun_address {
    uint8_t octets[16];
    uint32_t length, prefix;
};

/* How a device was before. All 0: it is none of ours. */
struct tun_before {
    unsigned index;
    bool stays;   /* it was there before, and outlives us */
    bool changed; /* what follows is known, and not so any more */
    bool was_up;
    uint32_t mtu, queue;
    struct tun_address added; /* length 0: none */
};

/* Adds to the kernel's end an address, so that the rest of its prefix is routed to the device; sets the MTU and the
 * queue, and brings the device up. Returns 0 or a negative errno. `before` may be NULL. */
int tun_configure(const char *name, const struct tun_address *address, uint32_t mtu, struct tun_before *before);

/* Opens the device `name` (NULL: the kernel names it) and, if `neighbor` is not NULL, configures it: the kernel's end
 * gets this IPv4 or IPv6 address. Returns a descriptor, -EAFNOSUPPORT, or an errno of tun_open() and tun_configure();
 * then the device is as it was. `before`, for tun_put_back(), may be NULL. */
int tun_set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu, unsigned offload,
               struct tun_before *before);
/* Makes a device that stays what it was. Call it before the descriptor is closed. */
void tun_put_back(const struct tun_before *before);

/* Do packets to this address come to the device? Returns 0. -EADDRINUSE: the address is the host's own, or that of
 * many, or, of a device that was configured here, is routed elsewhere or nowhere. */
int tun_check_route(const struct tun_before *before, const struct sockaddr *address);

/* Sends one request of rtnetlink that asks for an acknowledgement. Returns what the kernel answers: 0 or a negative
 * errno. */
int tun_ask(const struct nlmsghdr *ask);

#endif
