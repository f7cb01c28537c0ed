/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_peer.h - a TCP peer of the tests' own, segment by segment, behind a TUN device of its own: it acknowledges what
 * and when a test wants. */
#ifndef RDDP_TESTS_SUITE_RAW_PEER_H
#define RDDP_TESTS_SUITE_RAW_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tcp/packet.h"

/* One connection. Numbers are as in the segments. */
struct raw_peer {
    int fd; /* of the device, which several may share */
    struct utcp_name own, other;
    uint32_t next;     /* of the octet that it sends next */
    uint32_t received; /* everything before has come */
    uint32_t acked;    /* what it has told of that */
    uint16_t window;
    uint32_t heard; /* segments */
    bool over;      /* the other end has finished or reset */
};

/* Makes a device whose addresses are those of `net` (network.h); fails the test if it cannot. */
int raw_peer_device(uint32_t net);

/* Connects from `port` of host 2 of `net` with this window, without any option but the MSS. False: refused, or no
 * answer within `limit_ms`. */
bool raw_peer_connect(struct raw_peer *peer, int fd, uint32_t net, uint16_t port, const struct sockaddr_storage *to,
                      uint16_t window, int limit_ms);

/* Sends a segment of its connection, not a SYN or a FIN, with `acked` and `window` as they are now. */
void raw_peer_say(struct raw_peer *peer, uint8_t flags, const void *octets, uint32_t n);

/* Takes the next segment of its connection, and notes what has come in order. False: there is none within `limit_ms`.
 */
bool raw_peer_hear(struct raw_peer *peer, struct utcp_segment *s, int limit_ms);

#endif
