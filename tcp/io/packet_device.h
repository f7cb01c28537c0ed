/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_device.h - a device, and the links of connections over the library's own TCP.
 *
 * A link with an endpoint is guarded by the endpoint's bell, a link without one by the lock of the device's loop. The
 * device itself is guarded by that lock, except `random` and sending to `fd`. So the driver holds the endpoint of
 * every link that got packets of a batch until the batch is over, and a poster may send packets of a link that it
 * holds. */
#ifndef RDDP_TCP_IO_PACKET_DEVICE_H
#define RDDP_TCP_IO_PACKET_DEVICE_H

#include <stdatomic.h>

#include <rddp/rddp.h>

#include "endpoint/endpoint.h"
#include "endpoint/member.h"
#include "tcp/io/packet_port.h"
#include "base/container.h"
#include "loop/link.h"
#include "loop/reactor.h"
#include "tcp/io/rawip.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"
#include "tcp/host.h"

enum {
    PACKET_UNITS = 8192, /* units sent and not acknowledged; a power of two */
    PACKET_SENTS = 8192,
    PACKET_OOO_RANGES = 8192,
    PACKET_BUCKETS = 1024,
    PACKET_HALVES = 1024,
    PACKET_BATCH = 64, /* packets that are read before the connections advance */
    PACKET_BATCH_OCTETS = 1 << 18,
    PACKET_CHANCES = 100000,    /* denominator of rddp_device_attr.lose */
    PACKET_GROWN_MAX = 1 << 29, /* octets by which all rings of a device may grow */
};

struct packet_link {
    struct link link;
    struct utcp tcp;
    struct rddp_device *device;
    struct packet_link *next, *touched; /* next: all of the device; touched: the links that got packets of this batch */
    struct timer timer;
    uint64_t gone_us; /* when it is cut off, because it has no endpoint any more; 0: it has one */
    unsigned wants;   /* enum link_want */
    /* is_new: no endpoint yet; is_unwanted: octets arrived that will not be read. */
    bool is_new, is_touched, is_unwanted;

    uint8_t *in; /* octets that wait for their turn, at position modulo in_octets */
    uint64_t in_octets;
    uint64_t read_to, base; /* read_to: octets read during the start-up; base: where framing began, once `framed` */
    bool framed;
    struct reorder *reorder;
    uint64_t placed_early;

    uint8_t *out; /* octets sent and not acknowledged, at position modulo out_octets */
    uint64_t out_octets, written;
    uint64_t grown;     /* octets by which both rings have grown */
    uint64_t *unit_end; /* stream positions where the units end */
    uint32_t unit_head, units;

    void *buffer; /* one mapping for the TCP's tables, `unit_end` and `reorder` */
    size_t buffer_octets;

    int place_fd;     /* handed off: the kernel's socket, which keeps its place; -1: there is none */
    uint32_t scope;   /* of a link-local address */
    bool is_settling; /* copies of what the kernel has acknowledged may wait to be read */
};

/* Where packets of a device come in. */
struct packet_input {
    struct watch watch; /* `ready` is NULL: it is not watched */
    struct rddp_device *device;
};

struct rddp_device {
    struct member member;
    struct loop *loop; /* never changes */
    struct rddp_device_attr attr;
    struct utcp_name own;                      /* its own address */
    struct packet_input input[RAWIP_FAMILIES]; /* a TUN device has one */
    struct rawip rawip;                        /* attr.hand_off: instead of `own`, `fd` and `ports` */
    struct successor successor;                /* attr.hand_off: takes connections over */
    _Atomic uint32_t users;                    /* attr.hand_off: listeners */
    struct timer timer;                        /* of `host` */
    struct utcp_host host;
    struct utcp *bucket[PACKET_BUCKETS];
    struct utcp_half half[PACKET_HALVES];
    struct packet_link *links, *touched;
    uint32_t link_count;
    struct packet_port *ports;
    uint16_t next_port;
    bool joins;              /* the device cuts and joins segments of a stream */
    bool settles;            /* a link is settling */
    bool is_raw;             /* `rawip` is open */
    _Atomic uint64_t random; /* selects the packets to lose on purpose */
    int fd;
    struct tun_before tun_before;
    _Atomic uint64_t grown; /* octets by which the rings of links have grown */
    uint8_t packet[TUN_PACKET_MAX];
};

static inline struct packet_link *packet_link_of(struct link *link)
{
    return container_of(link, struct packet_link, link);
}

/* Has it an address of its own? NULL, and a device that takes over connections of the kernel's, have none. */
static inline bool packet_is_own(const struct rddp_device *device)
{
    return device && !device->attr.hand_off;
}

static inline struct successor *packet_successor(struct rddp_device *device)
{
    return device && device->attr.hand_off ? &device->successor : NULL;
}

/* In a child of fork(): it has left a device that takes connections over to the parent, and cannot take any. */
static inline bool packet_is_left(const struct rddp_device *device)
{
    return device && device->attr.hand_off && !device->is_raw;
}

/* packet_send.c. packet_is_lost(): shall this packet be lost on purpose? packet_write() sends a packet, which the
 * device cuts into segments of `each` octets. packet_flush() sends everything that a link has to send, and sets its
 * timer. */
bool packet_is_lost(struct rddp_device *device);
void packet_write(struct rddp_device *device, const struct utcp_packet *p, uint32_t each);
void packet_flush(struct packet_link *l);

/* packet_link.c. Makes a link that is not connected; NULL: ENOMEM, EMFILE. The caller adds it to the device's list and
 * adds its timer. Call packet_link_free() when no packet can reach it any more. */
struct packet_link *packet_link_new(struct rddp_device *device, struct reactor *reactor);
void packet_link_free(struct packet_link *l);
/* Is there enough room to send, so that the owner should be told? */
bool packet_link_is_writable(const struct packet_link *l);

/* packet_ring.c. Map and unmap the rings. Make that of arriving octets larger if the window has grown, everything
 * before `read_to` having been read; make that of octets to send larger if the path takes more than it holds. */
bool packet_ring_open(struct packet_link *l);
void packet_ring_close(struct packet_link *l);
void packet_ring_grow_in(struct packet_link *l, uint64_t read_to);
bool packet_ring_grow_out(struct packet_link *l);

/* packet_read.c. packet_arrived() is the TCP's callback for arriving octets. The others are
 * link_attach() and link_present(). */
struct utcp_verdict packet_arrived(void *user, const struct utcp_arrival *a);
void packet_attach(struct link *link);
bool packet_present(struct link *link);

/* packet.c. For device.c, by the driver: open and close the device. Returns 0 or a negative errno; call packet_close()
 * once in any case, when no link has an endpoint. */
int packet_open(struct rddp_device *device);
void packet_close(struct rddp_device *device);

/* packet.c. By the driver: makes a link of this device that is not connected; NULL with errno. */
struct packet_link *packet_add(struct rddp_device *device);

/* packet_space.c. By the driver: is there space for one more link? A link that holds its place for nothing gives way.
 * packet_drop() removes and frees a link that has no endpoint. */
bool packet_make_space(struct rddp_device *device);
void packet_drop(struct packet_link *l);

/* packet.c. In a child of fork(), after loop_leave(): no packet is sent from now on. */
void packet_leave(struct rddp_device *device);

/* packet.c. By the driver. packet_connect() returns a link that is connecting to `peer`, or NULL with errno.
 * `from`: NULL, or its own address and the port to connect from; otherwise errno is that of bind(2) and connect(2).
 * packet_listen() starts and packet_unlisten() stops listening at a port; port 0 is replaced by a free one. Returns 0,
 * -EADDRINUSE or -EAFNOSUPPORT; -ENODEV: the device belongs to the parent, or was removed. */
struct link *packet_connect(struct rddp_device *device, const struct sockaddr *peer, socklen_t length,
                            const struct sockaddr *from);
int packet_listen(struct rddp_device *device, struct packet_port *port);
void packet_unlisten(struct rddp_device *device, struct packet_port *port);

#endif
