/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - a device, and the links of connections whose TCP is ours: what their files share.
 *
 * A link is guarded by the doorbell of its endpoint, and by the token of the device's loop while it has none; the
 * device itself by that token. So the driver holds the endpoint of every link that a batch of packets is for until the
 * batch is over, and a poster may send packets of a link that he holds. */
#ifndef RDDP_API_PACKET_H
#define RDDP_API_PACKET_H

#include <stdatomic.h>

#include <rddp/rddp.h>

#include "api/endpoint.h"
#include "api/member.h"
#include "base/container.h"
#include "net/link.h"
#include "net/loop.h"
#include "net/tun.h"
#include "utcp/host.h"

enum {
    PACKET_UNITS = 8192, /* sent and not acknowledged; a power of two */
    PACKET_SENTS = 8192,
    PACKET_HELDS = 8192,
    PACKET_BUCKETS = 1024,
    PACKET_HALVES = 1024,
    PACKET_BATCH = 64,
    PACKET_CHANCES = 100000, /* of which `lose` are lost */
};

struct packet_link {
    struct link link;
    struct utcp tcp;
    struct rddp_device *device;
    struct packet_link *next, *touched; /* of the device; of those that a batch of packets was for */
    struct timer timer;
    uint64_t gone_us;                     /* it has no endpoint any more, and is cut off then; 0: it has one */
    unsigned wants;                       /* enum link_want */
    bool is_new, is_touched, is_unwanted; /* new: no endpoint yet; unwanted: octets came that nobody will read */

    uint8_t *in; /* octets that wait for their turn, at their positions */
    uint64_t in_octets;
    uint64_t read_to, base; /* read in order, of the start-up; framing begins at `base`, once `framed` */
    bool framed;
    struct early *early;
    uint64_t placed_early;

    uint8_t *out; /* sent and not acknowledged, at their positions */
    uint64_t out_octets, written;
    uint64_t *unit_end; /* where in the stream each unit ends */
    uint32_t unit_head, units;

    void *buffer; /* of what the engine works in, and `unit_end` */
    size_t room_octets;
};

/* Who listens. `arrived` is called by the driver with a link that is up, and owns it from there on. */
struct packet_port {
    struct utcp_name name; /* the address is all 0: any */
    struct packet_port *next;
    bool (*has_room)(const struct packet_port *port);
    void (*arrived)(struct packet_port *port, struct link *link);
};

struct rddp_device {
    struct member member;
    struct progress *progress; /* never changes */
    struct rddp_device_attr attr;
    struct utcp_name own;
    struct watch watch;
    struct timer timer; /* the host's */
    struct utcp_host host;
    struct utcp *bucket[PACKET_BUCKETS];
    struct utcp_half half[PACKET_HALVES];
    struct packet_link *links, *touched;
    uint32_t link_count;
    struct packet_port *ports;
    uint16_t next_port;
    bool joins;              /* the device takes segments of one stream as one packet, and brings them so */
    _Atomic uint64_t random; /* of packets that are lost on purpose */
    int fd;
    uint8_t packet[TUN_PACKET_MAX];
};

static inline struct packet_link *packet_link_of(struct link *link)
{
    return container_of(link, struct packet_link, link);
}

/* packet_name.c. Addresses in the engine's form and back; -EAFNOSUPPORT. */
int packet_name_from(struct utcp_name *name, const struct sockaddr *from, socklen_t length);
void packet_name_to(const struct utcp_name *name, struct sockaddr_storage *to);

/* packet_send.c. Is this packet to be lost on purpose? One that leaves, of segments of
 * `each` octets; all that a link has to say, and its timer. */
bool packet_is_lost(struct rddp_device *device);
void packet_write(struct rddp_device *device, const struct utcp_packet *p, uint32_t each);
void packet_flush(struct packet_link *l);

/* packet_link.c. A link that is not connected, or NULL: no memory. Its timer is the caller's to add. Ends with
 * packet_link_free(), for which no packet of it may come any more. */
struct packet_link *packet_link_new(struct rddp_device *device, struct loop *loop);
void packet_link_free(struct packet_link *l);
void packet_info(struct link *link, struct rddp_qp_info *info);
/* Has it room for more to send, so that it is worth telling? */
bool packet_link_is_writable(const struct packet_link *l);

/* packet_read.c. What its engine does with octets that arrive; a new endpoint on such a link; one turn of what arrived.
 * The last returns whether anything did. */
struct utcp_verdict packet_arrived(void *user, const struct utcp_arrival *a);
void packet_begin(struct endpoint *endpoint);
bool packet_receive(struct endpoint *endpoint);

/* packet.c. By the driver, for device.c: 0 or a negative errno; packet_close() is called once in either case, when no
 * link has an endpoint. */
int packet_open(struct rddp_device *device);
void packet_close(struct rddp_device *device);

/* packet.c. In a child of fork(), after progress_leave(): from here on no packet leaves. */
void packet_leave(struct rddp_device *device);

/* packet.c. By the driver. A link that is on its way to `peer`, or NULL and errno; a port is listened to (0 is replaced
 * by a free one), and is not any more. 0, -EADDRINUSE, -EAFNOSUPPORT; -ENODEV: the device is with the parent. */
struct link *packet_connect(struct rddp_device *device, const struct sockaddr *peer, socklen_t length);
int packet_listen(struct rddp_device *device, struct packet_port *port);
void packet_unlisten(struct rddp_device *device, struct packet_port *port);

#endif
