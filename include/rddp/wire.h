/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - how the two ends of a connection talk, as an application asks for it; rddp.h includes it. */
#ifndef RDDP_WIRE_H
#define RDDP_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rddp_device;

enum rddp_wire {
    RDDP_WIRE_IWARP, /* MPA + DDP + RDMAP over TCP (RFC 5044, 5041, 5040) */
    /* RDMA/TCP segments (J. Williams, September 2000): see doc/segments.md. Always with a CRC; no private data, no
     * reject, no Send with Invalidate; remote addresses below 4 GiB. */
    RDDP_WIRE_RDMATCP,
    /* SCTP messages, in UDP or directly in IP (draft-stewart-otis-sctp-ddp-rdma, RFC 6951): see
     * doc/sctp-negotiation.md. The port of an address is the SCTP port. Always with a CRC; no atomics. */
    RDDP_WIRE_SCTP,
    /* InfiniBand's transport in UDP packets (RoCE version 2): network cards and Linux's rxe. Always with a CRC. */
    RDDP_WIRE_ROCE,
};

/* What an end of RDDP_WIRE_SCTP indicates when the association begins (sctp-ddp-rdma.txt 2.1). Unless both ends
 * indicate RDMA_AND_NEGOTIATION or RDMA_NEGOTIATION there are no private data, Reads, immediate data or invalidation,
 * and a Send is a message of one chunk. If the peer indicates nothing, both ends use RDDP_SCTP_NONE. */
enum rddp_sctp_adaptation {
    RDDP_SCTP_NONE,                 /* plain messages: Sends */
    RDDP_SCTP_DDP,                  /* Writes to the buffers of streams (rkey is the stream), Sends */
    RDDP_SCTP_DDP_WITH_TAG,         /* Writes, Sends */
    RDDP_SCTP_RDMA_ONLY,            /* Writes */
    RDDP_SCTP_RDMA_AND_NEGOTIATION, /* the default: everything except atomics */
    RDDP_SCTP_RDMA_NEGOTIATION,     /* everything except what would be placed at the peer: Writes, Reads, and atomics */
};

/* Which SCTP carries an association. Each can talk to the others. */
enum rddp_sctp_provider {
    RDDP_SCTP_OWN,    /* rddp's own in this process, always in UDP; needs neither a library nor privileges */
    RDDP_SCTP_KERNEL, /* the host kernel's, if it has one */
};

/* Ready-to-receive messages (RFC 6581 9.2). */
enum rddp_rtr { RDDP_RTR_SEND = 1, RDDP_RTR_WRITE = 2, RDDP_RTR_READ = 4 };

/* How the two ends talk. Each side has its own; what is in force results from both (see rddp_query_qp()). */
struct rddp_wire_attr {
    enum rddp_wire wire;
    bool crc;     /* ask for CRC32c, default yes; in force if either side asks (RFC 5044 4.4) */
    bool markers; /* ask the peer for markers in what it sends, default no. We always send them when asked. */
    /* Initiator: 1 (RFC 5044) or 2 (RFC 6581, negotiates IRD and ORD), the default. A responder answers both. */
    uint8_t mpa_revision;
    bool peer_to_peer; /* initiator, revision 2: send a ready-to-receive message, after which the responder may send */
    unsigned rtr;      /* enum rddp_rtr: which messages we support, default all */
    /* No start-up frames: markers and CRC always on, DDP version 0 (mpa.txt 8.1). Both ends must set it; there are
     * no private data and no reject. */
    bool immediate;
    /* Hand each FPDU to TCP as a record of its own (MSG_EOR), so that no segment holds two: for peers that place
     * data out of order; costs throughput. Over a device each segment is one FPDU anyway; there it says that the
     * peer's are, too, so that FPDUs behind a lost segment are found without markers. Default no. */
    bool aligned;
    struct rddp_device *device; /* use the library's own TCP behind this device; NULL: the kernel's */
    /* Initiator: delay from the peer's reply to our first FPDU, default 5: Linux siw may overlook one that comes at
     * once. One that has nothing more to send, and to which nothing has come back, sends an empty RDMA Write 10, 30, 70
     * and 150 times as long after the reply: siw then finds what it has overlooked. 0: neither. */
    uint32_t first_delay_ms;
    uint32_t startup_timeout_ms; /* TCP connect and start-up together, default 10000 */
    /* Limit for a peer that stops in the middle of an FPDU or message: default 30000, 0: none. */
    uint32_t stall_timeout_ms;
    uint32_t close_timeout_ms; /* how long a closing connection waits for the peer, default 2000 */
    /* RDDP_WIRE_SCTP only. */
    enum rddp_sctp_adaptation sctp_adaptation; /* what we indicate, independent of the peer */
    /* UDP port of a listener or of the peer, default 9899 (RFC 6951). RDDP_SCTP_KERNEL: the peer's alone, while ours is
     * the sysctl net.sctp.udp_port; 0: SCTP directly in IP. */
    uint16_t sctp_udp_port;
    uint16_t sctp_mtu;                     /* octets of the path's packets, default 1500, 576 to 64000 */
    enum rddp_sctp_provider sctp_provider; /* default RDDP_SCTP_OWN */
    /* RDDP_SCTP_KERNEL: addresses of this end to announce to the peer, of the family of the address that is called or
     * listened on; ports are ignored. Read during the call only. A listener adds its own address, which must not be the
     * wildcard, and rddp_connect() adds the address that it connects from. Without any, rddp_connect() announces the
     * address that packets to the peer leave from. */
    const struct sockaddr_storage *sctp_addresses;
    uint32_t sctp_address_count; /* at most 7 */
    /* RDDP_WIRE_ROCE, rddp_listen() alone: a service of datagrams, in rdma_cm's UDP port space. Its requests are
     * answered with rddp_answer() or rddp_reject(), and never become connections. Default no. */
    bool datagrams;
};

#ifdef __cplusplus
}
#endif
#endif
