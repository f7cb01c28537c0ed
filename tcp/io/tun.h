/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun.h - a TUN device: a link to the kernel's stack for packets from and to addresses of our own. */
#ifndef RDDP_TCP_IO_TUN_H
#define RDDP_TCP_IO_TUN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/span.h"

enum { TUN_SPANS = 16, TUN_PIECES = 4, TUN_PACKET_MAX = 65536 };

/* Properties of a packet that its octets do not show. */
struct tun_note {
    bool checked; /* in: the transport checksum was verified or need not be */
    bool partial; /* out: the device must complete the checksum at `start` + `offset` */
    uint16_t start, offset;
    /* Out, if each > 0: the packet is to be cut into segments of `each` octets of payload, behind `head` octets of
     * headers. */
    uint16_t head, each;
    bool v6;
};

/* Work that the device does for us. */
enum tun_offload {
    TUN_CHECKSUMS = 1 << 0, /* the kernel need not compute checksums of packets that it sends us */
    TUN_SEGMENTS = 1 << 1,  /* and may send several segments of a stream as one packet */
};

/* Opens the device `name`, or if that is empty a new one that the kernel names; stores the name in `name`. `offload`:
 * enum tun_offload. Returns a non-blocking descriptor, or -EPERM, -EBUSY, -ENOENT, -EMFILE, -ENOMEM. */
int tun_open(char name[IFNAMSIZ], unsigned offload);

/* Receives the next packet into up to TUN_PIECES pieces, which together hold TUN_PACKET_MAX octets. Returns its length;
 * -EAGAIN; -EMSGSIZE: it has no virtio header; or another negative errno. */
ssize_t tun_recv(int fd, const struct iovec *piece, uint32_t pieces, struct tun_note *note);
/* Sends one packet from up to TUN_SPANS spans. Returns 0, -EAGAIN, -EMSGSIZE (too many spans), or another negative
 * errno. */
int tun_send(int fd, const struct span *span, uint32_t spans, const struct tun_note *note);

#endif
