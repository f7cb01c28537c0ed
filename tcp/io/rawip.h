/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rawip.h - packets of the host's own addresses: what comes in is seen beside the kernel, what leaves it routes. */
#ifndef RDDP_TCP_IO_RAWIP_H
#define RDDP_TCP_IO_RAWIP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    RAWIP_V4,
    RAWIP_V6,
    RAWIP_FAMILIES,
    RAWIP_RANGES =
        64, /* of ports that the kernel's filter tells apart; it passes what lies between if there are more */
    RAWIP_PORTS = 65536,
    RAWIP_BATCH = 32, /* packets that leave in one call */
    RAWIP_READ = 16,  /* packets that come in one call */
    RAWIP_PACKET_MAX = 65536,
};

struct rawip_range {
    uint16_t first, last;
};

/* One packet socket and one raw socket for each family of addresses. */
struct rawip {
    int in[RAWIP_FAMILIES], out[RAWIP_FAMILIES]; /* -1: the host has no such family */
    uint16_t *users;                             /* of each local port */
    struct rawip_range range[RAWIP_RANGES];
    uint32_t ranges;
    uint8_t *packets; /* RAWIP_READ * RAWIP_PACKET_MAX octets, for those that came last */
};

/* A packet that came: receive offloads may have joined several of one stream. `checked`: its transport checksum needs
 * no look. With `octets` 0 it was too long, or cannot be what it says. */
struct rawip_arrival {
    uint8_t *at;
    uint32_t octets;
    bool checked;
};

/* A packet to send. Its IP header is in the first piece. */
struct rawip_packet {
    struct iovec *piece;
    uint32_t pieces;
};

/* Receives nothing yet. 0, or -EPERM without CAP_NET_RAW, -EMFILE, -ENOMEM: there is nothing to close then. */
int rawip_open(struct rawip *r);
void rawip_close(struct rawip *r);

/* TCP segments for this local port, and messages about packets that were too big, are received from here on, and not
 * any more once it was removed as often as it was added. 0, or -ENOMEM, -EOVERFLOW: nothing has changed. */
int rawip_add_port(struct rawip *r, uint16_t port);
void rawip_remove_port(struct rawip *r, uint16_t port);

/* The next IP packets, of `fd`, which is one of `in`. They may be modified, and are overwritten by the next call. Their
 * number, which is less than RAWIP_READ if no more waited; or -EAGAIN, or what else the kernel says. */
int rawip_recv(const struct rawip *r, int fd, struct rawip_arrival arrival[RAWIP_READ]);

/* Sends up to RAWIP_BATCH packets, all between the same two addresses; `scope`: of a link-local IPv6 address. What the
 * kernel does not take is lost, and the others are sent all the same. 0; -EMSGSIZE: some were longer than what the way
 * takes. */
int rawip_send(const struct rawip *r, const struct rawip_packet *packet, uint32_t packets, uint32_t scope);

#endif
