/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_packet.h - packets as they lie in a batch: sealed with their ICRC on the way out, verified on the way in. */
#ifndef RDDP_ROCE_IO_ROCE_PACKET_H
#define RDDP_ROCE_IO_ROCE_PACKET_H

#include "conn/rc_pair.h"
#include "roce/io/roce_port.h"

/* Adds the packet to the batch that waits for this peer. */
void roce_packet_put(struct udp *udp, const struct sockaddr_storage *to, const struct icrc_path *path,
                     struct rc_packet *packet);

/* The same for as many as rc_pair_emit_train() has built. */
void roce_packet_put_train(struct udp *udp, const struct sockaddr_storage *to, const struct icrc_path *path,
                           struct rc_packet *packet, uint32_t packets);

enum roce_packet_result {
    ROCE_PACKET_OK,
    ROCE_PACKET_MALFORMED, /* or of another partition */
    ROCE_PACKET_ICRC,      /* damaged, or forged */
};

/* Reads the packet that begins at *at of a run, and moves *at behind it. `octets` is its length. */
enum roce_packet_result roce_packet_next(struct roce_host *host, const struct icrc_path *path,
                                         const struct roce_run *run, uint16_t pkey, uint32_t *at, struct bth *b,
                                         uint32_t *octets);

#endif
