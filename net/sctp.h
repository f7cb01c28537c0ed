/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp.h - the interface between an association and a stack of SCTP: messages of one DATA chunk, unordered, and events
 * in order. The stack never calls up: an event waits until the owner takes it. */
#ifndef RDDP_NET_SCTP_H
#define RDDP_NET_SCTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"

enum {
    SCTP_PORT_UDP = 9899, /* port of UDP encapsulation (RFC 6951) */
    SCTP_MTU = 1500,      /* octets of the path's packets, if nothing else is known */
    SCTP_MTU_MIN = 576,
    SCTP_MTU_MAX = 64000,
    SCTP_STREAMS_MAX = 16, /* streams requested, each way */
};

enum sctp_news_kind {
    SCTP_NEWS_UP, /* INIT and INIT-ACK were exchanged */
    SCTP_NEWS_MESSAGE,
    SCTP_NEWS_SHUTDOWN, /* the peer sends nothing more, or both ends have shut down */
    SCTP_NEWS_ABORTED,  /* aborted by the peer */
    SCTP_NEWS_LOST,     /* no answer for too long */
    SCTP_NEWS_REFUSED,  /* instead of UP: no one listens at the peer's address */
};

/* An event. Its owner frees `data` with usctp_free(). */
struct sctp_news {
    enum sctp_news_kind kind;
    uint8_t *data; /* MESSAGE: the message; ABORTED: the reason */
    uint32_t octets;
    uint32_t tsn; /* MESSAGE: of its first chunk; UP: the peer's initial TSN */
    uint32_t ppid;
    uint16_t stream;
    bool unordered;
    uint32_t indication;  /* UP: the peer's adaptation indication, 0 if it sent none */
    uint32_t payload_max; /* UP: octets of the largest message */
};

/* What we request. The times are those of SCTP (RFC 9260 16). */
struct sctp_attr {
    uint32_t indication; /* 0: none */
    uint16_t mtu;        /* octets of the path's packets, IP headers included */
    uint16_t udp_port;   /* of the peer, and of a listener; 0: SCTP_PORT_UDP */
    /* Give up after about this many milliseconds if an INIT is not answered; 0: the default of SCTP. */
    uint32_t connect_ms;
    bool alone; /* the socket makes one association: an ICMP error for its packets refuses the association */
};

#endif
