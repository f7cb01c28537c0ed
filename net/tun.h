/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun.h - a TUN device: a link to the kernel's own stack on which packets of addresses that are ours come and go. */
#ifndef RDDP_NET_TUN_H
#define RDDP_NET_TUN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/span.h"

enum { TUN_SPANS = 16, TUN_PIECES = 4, TUN_PACKET_MAX = 65536 };

/* What is known about a packet beside its octets. */
struct tun_note {
    bool checked; /* in: the transport checksum needs no look */
    bool partial; /* out: the device has to finish the checksum at `start` + `offset` */
    uint16_t start, offset;
    uint16_t head, each; /* out, each > 0: `head` octets of headers are for segments of `each` octets of payload */
    bool v6;
};

/* What the device does for us. */
enum tun_offload {
    TUN_CHECKSUMS = 1 << 0, /* the kernel need not compute checksums of what it sends us */
    TUN_SEGMENTS = 1 << 1,  /* and it may send segments of one stream as one packet */
};

/* Opens a device, called `name` or, if that is empty, as the kernel likes: then `name` says how. `offload`:
 * enum tun_offload. A descriptor that does not block, or -EPERM, -EBUSY, -ENOENT, -EMFILE, -ENOMEM. */
int tun_open(char name[IFNAMSIZ], unsigned offload);

/* Gives the kernel's end an address of 4 or 16 octets with a prefix of so many bits, so that the rest of that prefix is
 * behind the device; sets the MTU and brings it up. 0 or a negative errno. */
int tun_configure(const char *name, const uint8_t *address, uint32_t length, uint32_t prefix, uint32_t mtu);

/* Opens the device `name` (NULL: as the kernel likes), and sets it up if `neighbor` is not NULL: the kernel's end gets
 * this IPv4 or IPv6 address. A descriptor, or what the two above say, or -EAFNOSUPPORT. */
int tun_set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu, unsigned offload);

/* The next packet, in up to TUN_PIECES pieces. Its length; -EAGAIN; -EMSGSIZE: it did not fit and is gone. */
ssize_t tun_recv(int fd, const struct iovec *piece, uint32_t pieces, struct tun_note *note);
/* Sends one packet, which lies in up to TUN_SPANS spans. 0, -EAGAIN, or what else the device says. */
int tun_send(int fd, const struct span *span, uint32_t spans, const struct tun_note *note);

#endif
