/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp.h - what an association needs of a stack of SCTP, whichever it is: messages of one DATA chunk, unordered, and
 * what happened, in order. Nothing here calls up: what came waits until its owner takes it. */
#ifndef RDDP_NET_SCTP_H
#define RDDP_NET_SCTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"

enum {
    SCTP_PORT_UDP = 9899, /* of UDP encapsulation (RFC 6951) */
    SCTP_MTU = 1500,      /* of the path, where nothing else is known */
    SCTP_MTU_MIN = 576,
    SCTP_MTU_MAX = 64000,
    SCTP_STREAMS_MAX = 16, /* asked for */
};

enum sctp_news_kind {
    SCTP_NEWS_UP, /* INIT and INIT-ACK have been exchanged */
    SCTP_NEWS_MESSAGE,
    SCTP_NEWS_SHUTDOWN, /* the peer says no more, or both ends have shut it down */
    SCTP_NEWS_ABORTED,  /* by the peer */
    SCTP_NEWS_LOST,     /* no answer, for too long */
    SCTP_NEWS_REFUSED,  /* instead of UP: nobody is there */
};

/* The event whose owner it is keeps `data` until sctp_free(). */
struct sctp_news {
    enum sctp_news_kind kind;
    uint8_t *data; /* MESSAGE: the message; ABORTED: the reason */
    uint32_t octets;
    uint32_t tsn; /* MESSAGE: of its first chunk; UP: the peer's initial TSN */
    uint32_t ppid;
    uint16_t stream;
    bool unordered;
    uint32_t indication;  /* UP: the peer's adaptation, 0 if it had none */
    uint32_t payload_max; /* UP: octets of a message */
};

/* What we ask for. Times are SCTP's own (RFC 9260 16). */
struct sctp_attr {
    uint32_t indication; /* 0: none */
    uint16_t mtu;        /* of the path, headers of IP included */
    uint16_t udp_port;   /* of the peer, and of a listener; 0: SCTP_PORT_UDP */
    uint32_t connect_ms; /* an INIT without an answer is given up after about this time */
    bool alone;          /* one association is made from the socket: who refuses its packets (ICMP) refuses it */
};

#endif
