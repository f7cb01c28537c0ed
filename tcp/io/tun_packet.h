/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun_packet.h - sends packets of our TCP by a TUN device. */
#ifndef RDDP_TCP_IO_TUN_PACKET_H
#define RDDP_TCP_IO_TUN_PACKET_H

#include <stdint.h>

#include "tcp/packet.h"

/* Sends a packet, whose payload the device cuts into segments of `each` octets if it is longer. One that the device
 * does not accept is lost, as on any path. */
void tun_send_packet(int fd, const struct utcp_packet *p, uint32_t each);

#endif
