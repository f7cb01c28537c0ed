/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram.h - the queues of a queue pair without a peer (QP_DATAGRAMS): each request names its destination, and each
 * receive begins with where its message came from. */
#ifndef RDDP_CORE_DATAGRAM_H
#define RDDP_CORE_DATAGRAM_H

#include "core/qp.h"

enum { DATAGRAM_ADDRESS = 16 /* octets of an address, which the engine does not read */ };

/* An address handle: the path to a host. */
struct rddp_ah {
    struct pd *pd;
    uint8_t local[DATAGRAM_ADDRESS], peer[DATAGRAM_ADDRESS];
    uint32_t scope; /* of a link-local address */
    uint32_t mtu;   /* octets of the largest message */
};

/* The destination of a request. */
struct destination {
    struct rddp_ah path;
    uint32_t qpn, q_key;
};

/* Numbers messages so; before anything is posted, of a queue pair that was made with QP_DATAGRAMS. Requests are then
 * Sends of one packet, and their address handles are copied by the post. They leave by the calls of packets.h. Received
 * is, by qp_place(), a whole Send whose `head` goes in front of its payload. */
void qp_use_datagrams(struct qp *qp);

/* The destination of a request that was taken. */
const struct destination *qp_destination(const struct qp *qp, uint32_t at);

#endif
