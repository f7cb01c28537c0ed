/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rawip.h - packets of the host's own addresses: what comes in is seen beside the kernel, what leaves it routes. */
#ifndef RDDP_TCP_IO_RAWIP_H
#define RDDP_TCP_IO_RAWIP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/span.h"

enum {
    RAWIP_V4,
    RAWIP_V6,
    RAWIP_FAMILIES,
    RAWIP_RANGES =
        64, /* of ports that the kernel's filter tells apart; it passes what lies between if there are more */
    RAWIP_SPANS = 16,
    RAWIP_PORTS = 65536,
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
};

/* Receives nothing yet. 0, or -EPERM without CAP_NET_RAW, -EMFILE, -ENOMEM: there is nothing to close then. */
int rawip_open(struct rawip *r);
void rawip_close(struct rawip *r);

/* TCP segments for this local port, and messages about packets that were too big, are received from here on, and not
 * any more once it was removed as often as it was added. 0, or -ENOMEM, -EOVERFLOW: nothing has changed. */
int rawip_add_port(struct rawip *r, uint16_t port);
void rawip_remove_port(struct rawip *r, uint16_t port);

/* The next IP packet; receive offloads may have joined several of one stream. `checked`: its transport checksum needs
 * no look. Its length; -EAGAIN; -EMSGSIZE: it did not fit and is gone; -EBADMSG: it cannot be what it says, and is
 * gone. */
ssize_t rawip_recv(int fd, void *to, size_t capacity, bool *checked);

/* Sends a whole packet, whose IP header is in the first span; `scope`: of a link-local IPv6 address. 0; -EMSGSIZE:
 * longer than what the way takes; -EAGAIN, -ENOBUFS, or what else the kernel says: it is lost. */
int rawip_send(const struct rawip *r, const struct span *span, uint32_t spans, uint32_t scope);

#endif
