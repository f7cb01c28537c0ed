/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* grh.h - the 40 octets in front of a datagram that was received, which say where it came from: a header of IPv6, or
 * 20 octets of zeros and a header of IPv4. */
#ifndef RDDP_ROCE_GRH_H
#define RDDP_ROCE_GRH_H

#include <stdbool.h>
#include <stdint.h>

enum { GRH_OCTETS = 40, GRH_ADDRESS = 16 /* octets of an address: IPv6, or IPv4 mapped (RFC 4291 2.5.5.2) */ };

/* Writes the header of a packet with a UDP payload of `octets`. What a socket is not told has its usual value: no
 * traffic class and flow label, 64 hops, identification 0, DF. */
void grh_write(uint8_t grh[GRH_OCTETS], const uint8_t from[GRH_ADDRESS], const uint8_t to[GRH_ADDRESS],
               uint32_t octets);

/* Whether what grh_write() wrote is of a packet that came by IPv4. */
bool grh_is_ipv4(const uint8_t grh[GRH_OCTETS]);

/* Reads the addresses. Returns false if it is neither such header: of IPv4 the checksum must be right, too. */
bool grh_read(const uint8_t grh[GRH_OCTETS], uint8_t from[GRH_ADDRESS], uint8_t to[GRH_ADDRESS]);

#endif
